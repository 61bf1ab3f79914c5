// One evaluation through the package: the only place that calls it.

import { catalog, evaluate as compute, init } from 'plumbline-rl';
import { setCatalog } from '../catalog/catalog';
import type { Operation, Setting } from '../catalog/types';
import type { Tensor } from './tensor';

export type Dtype = 'f32' | 'f64';

export interface Request {
  operation: Operation;
  dialect: string | null;
  dtype: Dtype;
  params: Record<string, Setting>;
  inputs: Record<string, Tensor>;
  /** Only these outputs; without it all that the inputs determine. */
  outputs?: string[];
}

export type Outputs = Record<string, Tensor>;

/** What was refused, with the argument and the flat index where there are such. */
export interface Refusal {
  message: string;
  argument: string | null;
  index: number | null;
}

export type Result = { outputs: Outputs; refusal: null } | { outputs: null; refusal: Refusal };

/** Start the package and read its catalog. */
export async function start(): Promise<void> {
  await init();
  setCatalog(catalog() as unknown as Operation[]);
}

/** How long the last evaluation of an operation took (ms): what asks for many of them looks here first. */
const costs = new Map<string, number>();

export function costOf(operation: Operation): number {
  return costs.get(operation.id) ?? 0;
}

export function evaluate(request: Request): Result {
  const begin = performance.now();
  try {
    const outputs = compute(request.operation.id, {
      ...(request.dialect === null ? {} : { dialect: request.dialect }),
      dtype: request.dtype,
      params: request.params,
      inputs: Object.fromEntries(Object.entries(request.inputs).map(([name, input]) => [name, { shape: input.shape, data: packed(request, name, input) }])),
      ...(request.outputs ? { outputs: request.outputs } : {}),
    }) as unknown as Record<string, { shape: ArrayLike<number>; data: ArrayLike<number> }>;
    const read: Outputs = {};
    for (const [name, output] of Object.entries(outputs)) {
      read[name] = { shape: Array.from(output.shape), data: output.data instanceof Float64Array ? output.data : Float64Array.from(output.data) };
    }
    return { outputs: read, refusal: null };
  } catch (error) {
    return { outputs: null, refusal: refusalOf(error) };
  } finally {
    costs.set(request.operation.id, performance.now() - begin);
  }
}

type Packed = Uint8Array | Uint32Array | Float32Array | Float64Array;

/** Inputs in the type that the package takes without converting, kept as long as the input itself. */
const packedInputs = { mask: new WeakMap<Float64Array, Packed>(), whole: new WeakMap<Float64Array, Packed>(), f32: new WeakMap<Float64Array, Packed>() };

function packed(request: Request, name: string, { data }: Tensor): Packed {
  const domain = request.operation.inputs.find((input) => input.name === name)?.domain ?? '';
  const isMask = domain === 'mask' || domain === 'done';
  const isWhole = domain === 'group' || domain === 'index' || domain === 'count';
  if (!isMask && !isWhole && request.dtype === 'f64') return data;
  const kept = packedInputs[isMask ? 'mask' : isWhole ? 'whole' : 'f32'];
  let made = kept.get(data);
  if (!made) {
    made = isMask ? Uint8Array.from(data) : isWhole ? Uint32Array.from(data) : Float32Array.from(data);
    // A number that its type does not hold goes over as it is, to be refused with its index.
    if ((isMask || isWhole) && !made.every((value, index) => value === data[index])) made = data;
    kept.set(data, made);
  }
  return made;
}

function refusalOf(error: unknown): Refusal {
  const fields = error as { message?: string; argument?: string | null; index?: number | null };
  return {
    message: fields.message ?? String(error),
    argument: fields.argument ?? null,
    index: fields.index ?? null,
  };
}
