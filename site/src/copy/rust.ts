// The same evaluation in Rust, with core alone.

import type { Operation } from '../catalog/types';
import type { Outputs } from '../compute/evaluate';
import { bits } from '../numbers/format';
import { valueOf, type State } from '../state/state';

const MASKS = new Set(['mask', 'done']);
const WHOLE = new Set(['group', 'index', 'count']);

export function rust(operation: Operation, state: State, outputs: Outputs): string {
  const type = state.dtype;
  const lead = operation.outputs[0]!;
  const lines = [
    'use plumbline_core::catalog;',
    'use plumbline_core::spec::{Data, Given, GivenValue, Input, Output, evaluate};',
    '',
    'fn main() {',
    `    let operation = catalog::find("${operation.id}").unwrap();`,
    '    let params = [',
  ];
  for (const name of Object.keys(state.params)) {
    const value = valueOf(state, name);
    const given =
      value === null ? 'GivenValue::None'
      : typeof value === 'number' ? `GivenValue::Number(${real(value, 'f64')})`
      : typeof value === 'boolean' ? `GivenValue::Flag(${value})`
      : `GivenValue::Name("${value}")`;
    lines.push(`        Given { name: "${name}", value: ${given} },`);
  }
  lines.push('    ];', '    let inputs = [');
  for (const input of operation.inputs) {
    const given = state.inputs[input.name];
    if (!given) continue;
    const kind = MASKS.has(input.domain) ? 'Mask' : WHOLE.has(input.domain) ? 'Index' : 'Real';
    const numbers = Array.from(given.data, (value) => (kind === 'Real' ? real(value, type) : String(value))).join(', ');
    lines.push(`        Input { name: "${input.name}", shape: &[${given.shape.join(', ')}], data: Data::${kind}(&[${numbers}]) },`);
  }
  const value = outputs[lead.name]!;
  lines.push(
    '    ];',
    `    let mut ${lead.name} = [0.0_${type}; ${value.data.length}];`,
    `    let dialect = ${state.dialect === null ? 'None' : `Some("${state.dialect}")`};`,
    `    evaluate(operation, dialect, &params, &inputs, &mut [Output { name: "${lead.name}", data: &mut ${lead.name} }]).unwrap();`,
    `    assert_eq!(${lead.name}[0].to_bits(), 0x${bits(value.data[0] ?? 0, type)});`,
    '}',
  );
  return `${lines.join('\n')}\n`;
}

function real(value: number, type: 'f32' | 'f64'): string {
  if (Number.isNaN(value)) return `${type}::NAN`;
  if (!Number.isFinite(value)) return value > 0 ? `${type}::INFINITY` : `${type}::NEG_INFINITY`;
  const text = Object.is(value, -0) ? '-0.0' : String(value);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
