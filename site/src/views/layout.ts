// How inputs and outputs are laid out: what has the same shape stands in one table.

import { sameShape } from '../catalog/catalog';
import type { InputSpec, Operation, OutputSpec, Shape } from '../catalog/types';
import type { Outputs } from '../compute/evaluate';
import type { Tensor } from '../compute/tensor';

export interface Column {
  name: string;
  meaning: string;
  input: InputSpec | null;
  output: OutputSpec | null;
  tensor: Tensor;
}

/** One table: a column for each array of that shape, or a grid where an array stands alone. */
export interface Table {
  shape: Shape;
  sizes: number[];
  columns: Column[];
  /** One array of two or more dimensions, last dimension across. */
  grid: boolean;
}

/** The named shape that an input was given in. */
export function shapeOf(input: InputSpec, tensor: Tensor): Shape {
  return input.shapes.find((shape) => shape.length === tensor.shape.length) ?? input.shapes[0]!;
}

export function tables(operation: Operation, inputs: Record<string, Tensor>, outputs: Outputs): Table[] {
  const columns: { shape: Shape; column: Column }[] = [];
  for (const input of operation.inputs) {
    const given = inputs[input.name];
    if (given) columns.push({ shape: shapeOf(input, given), column: { name: input.name, meaning: input.meaning, input, output: null, tensor: given } });
  }
  for (const output of operation.outputs) {
    const got = outputs[output.name];
    // Scalars that come out stand in the result, not in a table.
    if (got && got.shape.length > 0) columns.push({ shape: output.shape, column: { name: output.name, meaning: output.meaning, input: null, output, tensor: got } });
  }
  const found: Table[] = [];
  for (const { shape, column } of columns) {
    const long = shape.length < 2 || (shape[0] === 'B' && shape[1] === 'T' && shape.length === 2);
    const table = long ? found.find((candidate) => !candidate.grid && sameShape(candidate.shape, shape) && candidate.sizes.join() === column.tensor.shape.join()) : undefined;
    if (table) table.columns.push(column);
    else found.push({ shape, sizes: column.tensor.shape, columns: [column], grid: !long });
  }
  // Inputs first; within a table they already are.
  return found.sort((left, right) => Number(left.columns[0]!.input === null) - Number(right.columns[0]!.input === null));
}

/** What a dimension counts, in words. */
export function dimensionName(name: string): string {
  return { B: 'response', T: 'token', S: 'state', A: 'action', V: 'entry', Z: 'atom' }[name] ?? name;
}
