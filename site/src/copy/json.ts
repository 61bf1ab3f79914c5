// A vector as the golden files hold it, and the file that `plumbline eval` reads.

import type { Operation, Setting } from '../catalog/types';
import type { Outputs } from '../compute/evaluate';
import type { Tensor } from '../compute/tensor';
import { bits } from '../numbers/format';
import { valueOf, type State } from '../state/state';

function array({ shape, data }: Tensor, state: State, withBits: boolean) {
  const values = Array.from(data, (value) => (Number.isFinite(value) ? value : String(value)));
  return withBits ? { shape, values, bits: Array.from(data, (value) => bits(value, state.dtype)) } : { shape, values };
}

function params(operation: Operation, state: State): Record<string, Setting> {
  return Object.fromEntries(operation.params.map((param) => [param.name, valueOf(state, param.name)]));
}

/** One case of a golden file: all parameters, numbers with their bits. */
export function vector(operation: Operation, state: State, outputs: Outputs): string {
  const rounded = (tensor: Tensor): Tensor => (state.dtype === 'f32' ? { shape: tensor.shape, data: Float64Array.from(tensor.data, Math.fround) } : tensor);
  const named = (arrays: Record<string, Tensor>) => Object.fromEntries(Object.entries(arrays).map(([name, tensor]) => [name, array(rounded(tensor), state, true)]));
  return `${JSON.stringify(
    {
      id: `calculator/${operation.id}/${state.dtype}`,
      operation: operation.id,
      dialect: state.dialect ?? 'defaults',
      flags: [],
      params: params(operation, state),
      inputs: named(state.inputs),
      expected: named(outputs),
    },
    null,
    1,
  ).replaceAll(/\[\s+([^[\]{}]*?)\s+\]/g, (_, inner: string) => `[${inner.replaceAll(/\s*\n\s*/g, ' ')}]`)}\n`;
}

/** What `plumbline eval` computes the same bits from, as one command line. */
export function command(operation: Operation, state: State): string {
  const inputs = Object.fromEntries(Object.entries(state.inputs).map(([name, tensor]) => [name, array(tensor, state, false)]));
  const request = JSON.stringify({ inputs, params: state.params });
  const dialect = state.dialect ? ` --dialect ${state.dialect}` : '';
  return `echo '${request}' | plumbline eval ${operation.id}${dialect} --dtype ${state.dtype} --grad --hex\n`;
}
