// Give pasted numbers the shape that an input takes.

import { sameShape } from '../catalog/catalog';
import type { InputSpec, Operation } from '../catalog/types';
import { exampleInput, type Sizes } from '../compute/example';
import { count, resized, type Tensor } from '../compute/tensor';
import type { State } from '../state/state';
import { shapeOf } from '../views/layout';
import type { Pasted } from './parse';

/** The pasted array in a rank that the input accepts; a flat list takes the shape that the input has now where it fits. */
export function asInput(input: InputSpec, pasted: Tensor, now: Tensor | undefined): Tensor {
  const ranks = input.shapes.map((shape) => shape.length);
  if (ranks.includes(pasted.shape.length)) return { shape: pasted.shape, data: pasted.data };
  if (now && pasted.data.length === now.data.length) return { shape: now.shape, data: pasted.data };
  const rank = ranks[0]!;
  const shape = [...pasted.shape];
  while (shape.length < rank) shape.unshift(1);
  while (shape.length > rank && shape[0] === 1) shape.shift();
  if (shape.length !== rank && rank === 1) return { shape: [pasted.data.length], data: pasted.data };
  return { shape, data: pasted.data };
}

export interface Fitted {
  inputs: Record<string, Tensor>;
  /** Names in the text that the operation has no input for. */
  unknown: string[];
  /** Inputs that were not pasted and take another size now. */
  refitted: string[];
}

/** The inputs of a state after pasting; with `target`, an array without a name goes there. */
export function fit(operation: Operation, state: State, pasted: Pasted, target: string | null, refit: boolean): Fitted {
  const inputs = { ...state.inputs };
  const unknown: string[] = [];
  const fresh = new Set<string>();
  const sizes: Sizes = {};
  for (const [name, array] of pasted) {
    const wanted = pasted.size === 1 && target !== null ? target : name;
    const input = operation.inputs.find((candidate) => candidate.name === wanted);
    if (!input) {
      unknown.push(name);
      continue;
    }
    const shaped = asInput(input, array, state.inputs[wanted]);
    inputs[wanted] = shaped;
    fresh.add(wanted);
    shapeOf(input, shaped).forEach((dimension, axis) => (sizes[dimension] = shaped.shape[axis] ?? 1));
  }
  const refitted: string[] = [];
  if (refit) {
    for (const input of operation.inputs) {
      const given = inputs[input.name];
      if (!given || fresh.has(input.name)) continue;
      const shape = shapeOf(input, given);
      const all: Sizes = { ...Object.fromEntries(shape.map((name, axis) => [name, given.shape[axis]!])), ...sizes };
      const extent = shape.map((name) => all[name]!);
      if (sameShape(extent.map(String), given.shape.map(String)) || count(extent) > 1 << 20) continue;
      inputs[input.name] = resized(given, extent, exampleInput(operation, input, shape, all, 1));
      refitted.push(input.name);
    }
  }
  return { inputs, unknown, refitted };
}
