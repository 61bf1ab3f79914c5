// The numbers as torch tensors, with what the loss must give.

import type { Operation } from '../catalog/types';
import type { Outputs } from '../compute/evaluate';
import type { Tensor } from '../compute/tensor';
import { exact } from '../numbers/format';
import { valueOf, type State } from '../state/state';

const WHOLE = new Set(['mask', 'done', 'group', 'index', 'count']);

export function python(operation: Operation, state: State, outputs: Outputs): string {
  const dtype = state.dtype === 'f64' ? 'torch.float64' : 'torch.float32';
  const lead = operation.outputs[0]!;
  const gradients = operation.outputs.filter((output) => output.gradient_of !== null && outputs[output.name] && state.inputs[output.gradient_of]);
  const lines = [`# ${operation.title} (${operation.id}${state.dialect ? `, ${state.dialect}` : ''})`, 'import torch', ''];
  for (const input of operation.inputs) {
    const given = state.inputs[input.name];
    if (!given) continue;
    const kind = input.domain === 'mask' || input.domain === 'done' ? 'torch.bool' : WHOLE.has(input.domain) ? 'torch.long' : dtype;
    const grad = gradients.some((output) => output.gradient_of === input.name) ? ', requires_grad=True' : '';
    lines.push(`${input.name} = torch.tensor(${nested(given, state, kind)}, dtype=${kind}${grad})`);
  }
  lines.push('', 'settings = dict(');
  for (const param of operation.params) lines.push(`    ${param.name}=${literal(valueOf(state, param.name))},`);
  lines.push(')', '');
  const names = operation.inputs.filter((input) => state.inputs[input.name]).map((input) => `${input.name}=${input.name}`);
  lines.push(`# Your implementation goes here; what follows is what it is compared with.`);
  lines.push(`${lead.name} = your_function(${names.join(', ')})`, '');
  const bound = state.dtype === 'f64' ? '1e-12' : '2e-6';
  lines.push(`expected = torch.tensor(${nested(outputs[lead.name]!, state, dtype)}, dtype=${dtype})`);
  lines.push(`torch.testing.assert_close(${lead.name}, expected, rtol=${bound}, atol=${bound})`);
  if (gradients.length > 0) {
    lines.push(`${lead.name}.sum().backward()`);
    for (const output of gradients) {
      lines.push(`expected = torch.tensor(${nested(outputs[output.name]!, state, dtype)}, dtype=${dtype})`);
      lines.push(`torch.testing.assert_close(${output.gradient_of}.grad, expected, rtol=${bound}, atol=${bound})`);
    }
  }
  return `${lines.join('\n')}\n`;
}

function literal(value: unknown): string {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}

function nested({ shape, data }: Tensor, state: State, kind: string): string {
  const number = (value: number) => {
    if (kind === 'torch.bool') return value === 0 ? 'False' : 'True';
    if (Number.isNaN(value)) return 'float("nan")';
    if (!Number.isFinite(value)) return value > 0 ? 'float("inf")' : '-float("inf")';
    return exact(value, state.dtype === 'f32' && Math.fround(value) === value ? 'f32' : 'f64');
  };
  const level = (depth: number, begin: number, length: number): string => {
    if (depth === shape.length) return number(data[begin]!);
    const size = shape[depth]!;
    const each = size === 0 ? 0 : length / size;
    return `[${Array.from({ length: size }, (_, index) => level(depth + 1, begin + index * each, each)).join(', ')}]`;
  };
  return level(0, 0, data.length);
}
