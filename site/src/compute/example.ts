// Examples for any operation, from its description alone: the shapes tell the sizes, the domains tell the numbers.

import { baseValue } from '../catalog/catalog';
import type { InputSpec, Operation, Setting, Shape } from '../catalog/types';
import { evaluate } from './evaluate';
import { Random } from './random';
import { count, type Tensor } from './tensor';

export type Sizes = Record<string, number>;

const ATTEMPTS = 60;
/** Lengths of the example's responses: none equal, one of them a single token. */
const LENGTHS = [6, 3, 5, 1, 4, 2];

/** Inputs of an example that the operation accepts; drawn anew until it does. Seed 0 is the default example. */
export function example(
  operation: Operation,
  dialect: string | null,
  params: Record<string, Setting>,
  seed: number,
): Record<string, Tensor> {
  let optional = new Set(operation.inputs.filter(isUsual).map((input) => input.name));
  let inputs: Record<string, Tensor> = {};
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const random = new Random(seed * ATTEMPTS + attempt, operation.id);
    const sizes = sizesOf(operation, dialect, params, random, seed > 0);
    inputs = draw(operation, sizes, random, optional);
    const { refusal } = evaluate({ operation, dialect, dtype: 'f64', params, inputs });
    if (refusal === null) return inputs;
    const missing = operation.inputs.find((input) => input.name === refusal.argument && !(input.name in inputs));
    if (missing) optional = new Set([...optional, missing.name]);
  }
  return inputs;
}

/** One input's numbers at given sizes, for an input or a row that is added. */
export function exampleInput(operation: Operation, input: InputSpec, shape: Shape, sizes: Sizes, seed: number): Tensor {
  const random = new Random(seed, `${operation.id}/${input.name}`);
  return values(input, shape, sizes, random, []);
}

/** Optional inputs that an example has from the start: those that a batch of tokens usually comes with. */
function isUsual(input: InputSpec): boolean {
  return input.optional && (input.name === 'mask' || input.domain === 'log_prob' || input.domain === 'advantage');
}

function sizesOf(
  operation: Operation,
  dialect: string | null,
  params: Record<string, Setting>,
  random: Random,
  vary: boolean,
): Sizes {
  const grouped = operation.inputs.some((input) => input.domain === 'group' && !input.optional);
  const usual: Sizes = { B: grouped ? 6 : 3, T: 6, N: 5, V: 5, S: 4, A: 3, K: 3, D: 3, P: 4, Z: 5, M: 4, H: 2 };
  const sizes: Sizes = {};
  for (const name of operation.inputs.flatMap((input) => input.shapes).flat()) {
    const size = usual[name] ?? 3;
    sizes[name] ??= vary ? Math.max(2, size - 1 + random.below(3)) : size;
  }
  // A parameter may set the size of a dimension.
  for (const param of operation.params) {
    const isSize = operation.outputs.some((output) => output.shape.includes(param.name));
    const value = params[param.name] ?? baseValue(operation, dialect, param);
    if (isSize && typeof value === 'number') sizes[param.name] = value;
  }
  return sizes;
}

function draw(operation: Operation, sizes: Sizes, random: Random, optional: Set<string>): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = {};
  const related: Tensor[] = [];
  for (const input of operation.inputs) {
    if (input.optional && !optional.has(input.name)) continue;
    const drawn = values(input, input.shapes[0]!, sizes, random, related);
    if (input.domain === 'log_prob') related.push(drawn);
    inputs[input.name] = drawn;
  }
  return inputs;
}

function values(input: InputSpec, shape: Shape, sizes: Sizes, random: Random, related: Tensor[]): Tensor {
  const extent = shape.map((name) => sizes[name] ?? 3);
  const total = count(extent);
  const last = extent.at(-1) ?? 1;
  const data = new Float64Array(total);
  const beside = related.find((other) => other.data.length === total);
  for (let index = 0; index < total; index += 1) {
    data[index] = number(input, shape, extent, index, sizes, random, beside);
  }
  const lastName = shape.at(-1);
  if (input.domain === 'probability' && lastName !== undefined && lastName !== 'B' && lastName !== 'T') {
    for (let row = 0; row < total; row += last) normalise(data.subarray(row, row + last));
  }
  if (input.domain === 'real' && extent.length === 2 && shape[0] === shape[1]) makeDefinite(data, last);
  return { shape: extent, data };
}

function number(
  input: InputSpec,
  shape: Shape,
  extent: number[],
  index: number,
  sizes: Sizes,
  random: Random,
  beside: Tensor | undefined,
): number {
  switch (input.domain) {
    case 'log_prob':
      return beside ? Math.min(-0.001, rounded(beside.data[index]! + random.between(-0.45, 0.45))) : random.between(-2.4, -0.5);
    case 'log_ratio':
      return random.between(-0.6, 0.6);
    case 'logit':
      return random.between(-2, 2, 2);
    case 'advantage':
      return rounded((index % 2 === 0 ? 1 : -1) * random.between(0.3, 1.5, 2));
    case 'reward':
      return random.between(-1, 2, 2);
    case 'value':
      return random.between(-1, 1.5, 2);
    case 'probability':
      return random.between(0.1, 0.9, 2);
    case 'positive':
      return random.between(0.4, 2, 2);
    case 'non_negative':
      return random.between(0.1, 1.8, 2);
    case 'count':
      return 1 + random.below(4);
    case 'group':
      return Math.floor((index * 2) / Math.max(2, extent[0] ?? 2));
    case 'index':
      return random.below(Math.max(1, sizes[input.indexes ?? ''] ?? 1));
    case 'done':
      return 0;
    case 'mask':
      if (shape.length === 2 && input.name === 'mask') {
        const columns = extent[1]!;
        const length = Math.max(1, Math.min(columns, Math.ceil((LENGTHS[Math.floor(index / columns) % LENGTHS.length]! * columns) / 6)));
        return index % columns < length ? 1 : 0;
      }
      return index === 0 || random.below(4) > 0 || input.name === 'mask' ? 1 : 0;
    default:
      return random.between(-1.5, 1.5, 2);
  }
}

function rounded(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Make a row a distribution with two decimals each. */
function normalise(row: Float64Array): void {
  const sum = row.reduce((total, value) => total + value, 0);
  let left = 100;
  row.forEach((value, index) => {
    const share = index === row.length - 1 ? left : Math.min(left, Math.round((value / sum) * 100));
    left -= share;
    row[index] = share / 100;
  });
}

/** Make a square matrix symmetric with a dominant diagonal, as a Fisher matrix is. */
function makeDefinite(data: Float64Array, size: number): void {
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < row; column += 1) {
      const value = rounded(data[row * size + column]! / 4);
      data[row * size + column] = value;
      data[column * size + row] = value;
    }
    data[row * size + row] = rounded(size / 2 + Math.abs(data[row * size + row]!));
  }
}
