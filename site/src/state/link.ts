// The state as an address: `#kl.k3` is a formula with its example, `#kl.k3~1.…` one with everything that was changed.
// The number after `~` is the version of what follows; a later version reads all earlier ones.

import { deflateSync, inflateSync, strFromU8, strToU8 } from 'fflate';
import { findOperation } from '../catalog/catalog';
import type { Setting } from '../catalog/types';
import type { Dtype } from '../compute/evaluate';
import { count, type Tensor } from '../compute/tensor';
import { fresh, type Setup, type State } from './state';

/** Longer addresses are cut by mail programs and refused by servers; a state beyond it is shared as a file. */
export const LONGEST = 30_000;
/** A link cannot make the page allocate more numbers than this. */
const MOST_NUMBERS = 1 << 20;

type Numbers = (number | string)[];

/** Version 1 of the payload. */
interface Payload {
  d?: string;
  t?: Dtype;
  p?: Record<string, Setting>;
  i: Record<string, [number[], Numbers]>;
  c?: { o: string; d?: string; p?: Record<string, Setting> };
}

export class LinkError extends Error {}

/** The address of a state; `null` where it would be too long. */
export function toHash(state: State): string | null {
  // A number takes at least a character even when it is compressed well: do not spend the time.
  const numbers = Object.values(state.inputs).reduce((total, input) => total + input.data.length, 0);
  if (numbers > LONGEST) return null;
  const described = findOperation(state.operation);
  if (described && equal(state, fresh(described))) return `#${state.operation}`;
  const payload: Payload = { i: {} };
  if (state.dialect !== null) payload.d = state.dialect;
  if (state.dtype !== 'f64') payload.t = state.dtype;
  if (Object.keys(state.params).length > 0) payload.p = state.params;
  for (const [name, input] of Object.entries(state.inputs)) {
    payload.i[name] = [input.shape, Array.from(input.data, toJson)];
  }
  if (state.compare) {
    payload.c = { o: state.compare.operation };
    if (state.compare.dialect !== null) payload.c.d = state.compare.dialect;
    if (Object.keys(state.compare.params).length > 0) payload.c.p = state.compare.params;
  }
  const text = JSON.stringify(payload);
  const hash = `#${state.operation}~1.${toBase64(deflateSync(strToU8(text), { level: 9 }))}`;
  return hash.length > LONGEST ? null : hash;
}

/** The state of an address; `null` for an empty one. */
export function fromHash(hash: string): State | null {
  const text = decodeURIComponent(hash.replace(/^#/, ''));
  if (text === '') return null;
  const [id, rest] = text.split('~', 2) as [string, string | undefined];
  const described = findOperation(id);
  if (!described) throw new LinkError(`the link names the formula “${id}”, which this version does not have`);
  const start = fresh(described);
  if (rest === undefined) return start;
  const [version, body] = rest.split('.', 2) as [string, string | undefined];
  if (version !== '1' || body === undefined) {
    throw new LinkError(`the link is of version ${version}, this page reads version 1`);
  }
  return { ...start, ...read(id, body) };
}

function read(id: string, body: string): State {
  let payload: Payload;
  try {
    payload = JSON.parse(strFromU8(inflateSync(fromBase64(body)))) as Payload;
  } catch {
    throw new LinkError('the link is damaged: part of it is missing or was changed');
  }
  const inputs: Record<string, Tensor> = {};
  for (const [name, [shape, numbers]] of Object.entries(payload.i ?? {})) {
    if (count(shape) !== numbers.length || numbers.length > MOST_NUMBERS) {
      throw new LinkError(`the link is damaged: the numbers of “${name}” do not fit its shape`);
    }
    inputs[name] = { shape, data: Float64Array.from(numbers, fromJson) };
  }
  const compare: Setup | null =
    payload.c && findOperation(payload.c.o)
      ? { operation: payload.c.o, dialect: payload.c.d ?? null, params: payload.c.p ?? {} }
      : null;
  return {
    operation: id,
    dialect: payload.d ?? null,
    dtype: payload.t === 'f32' ? 'f32' : 'f64',
    params: payload.p ?? {},
    inputs,
    compare,
  };
}

function equal(left: State, right: State): boolean {
  if (left.dialect !== right.dialect || left.dtype !== right.dtype || left.compare || right.compare) return false;
  if (Object.keys(left.params).length > 0 || Object.keys(right.params).length > 0) return false;
  const names = Object.keys(left.inputs);
  return (
    names.length === Object.keys(right.inputs).length &&
    names.every((name) => {
      const other = right.inputs[name];
      const mine = left.inputs[name]!;
      return (
        other !== undefined &&
        mine.shape.join() === other.shape.join() &&
        mine.data.every((value, index) => Object.is(value, other.data[index]))
      );
    })
  );
}

function toJson(value: number): number | string {
  if (Number.isFinite(value)) return Object.is(value, -0) ? '-0' : value;
  return String(value);
}

function fromJson(value: number | string): number {
  return Number(value);
}

function toBase64(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function fromBase64(text: string): Uint8Array {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}
