/** The precision that is computed in. */
export type Dtype = "f32" | "f64";

/** An array of numbers, row-major. */
export interface Numbers {
  shape: ArrayLike<number>;
  data:
    | Float64Array
    | Float32Array
    | Uint8Array
    | Uint8ClampedArray
    | Uint16Array
    | Uint32Array
    | Int8Array
    | Int16Array
    | Int32Array
    | readonly (number | boolean)[];
}

/** Nested lists of numbers, all of the same depth and length. */
export type Nested = readonly (number | boolean | Nested)[];

/** What an input may look like. Arrays of the type that is computed in (bytes for masks, `Uint32Array` for indices) are
 * copied once and not converted. */
export type InputArray = Numbers | Nested | number;

/** A parameter's value; `null` switches an optional number off. */
export type Parameter = number | boolean | string | null;

/** An output. */
export interface Values<D extends Dtype = "f64"> {
  shape: number[];
  data: D extends "f32" ? Float32Array : Float64Array;
}

/** What to evaluate an operation with. */
export interface Request<
  D extends Dtype = Dtype,
  Dialect extends string = string,
  Params = Record<string, Parameter | undefined>,
  Inputs = Record<string, InputArray | undefined>,
> {
  /** The library (or `paper`) whose settings the parameters start from; without it, the operation's defaults. */
  dialect?: Dialect;
  /** The precision to compute in, `"f64"` by default. */
  dtype?: D;
  /** Parameters by name; the others keep their defaults. */
  params?: Params;
  /** Inputs by name. */
  inputs: Inputs;
}

/** An operation: its outputs named in `Always` are there whenever they are not left out by `outputs`, those in `Sometimes`
 * where the inputs determine them. */
export interface OperationFunction<
  Dialect extends string,
  Params,
  Inputs,
  Always extends string,
  Sometimes extends string,
> {
  <Output extends Always | Sometimes, D extends Dtype = "f64">(
    request: Request<D, Dialect, Params, Inputs> & { outputs: readonly Output[] },
  ): { [name in Output]: Values<D> };
  <D extends Dtype = "f64">(
    request: Request<D, Dialect, Params, Inputs> & { outputs?: undefined },
  ): { [name in Always]: Values<D> } & { [name in Sometimes]?: Values<D> };
}

/** Evaluate an operation of the catalog by its identifier; without `outputs`, all outputs that the inputs determine. */
export function evaluate<D extends Dtype = "f64">(
  operation: OperationId | (string & {}),
  request: Request<D> & { outputs?: readonly string[] },
): Record<string, Values<D>>;

/** An operation as the catalog describes it. */
export interface Operation {
  id: OperationId;
  family: string;
  title: string;
  summary: string;
  /** The value, in TeX. */
  formula: string;
  /** The gradient, in TeX; empty where no input is trainable. */
  gradient: string;
  notes: string;
  sources: { title: string; reference: string; place: string }[];
  inputs: {
    name: string;
    meaning: string;
    domain: string;
    /** For an index: the dimension whose size it stays below. */
    indexes: string | null;
    shapes: string[][];
    optional: boolean;
  }[];
  params: {
    name: string;
    /** TeX. */
    symbol: string;
    meaning: string;
    kind: "number" | "optional number" | "whole number" | "flag" | "choice";
    default: Parameter;
    legal: string | { low: number; high: number } | (string | boolean)[];
    /** The legal range of a number; `null` at an end where there is none. */
    range: { low: number | null; low_inclusive: boolean; high: number | null; high_inclusive: boolean } | null;
  }[];
  outputs: {
    name: string;
    meaning: string;
    shape: string[];
    gradient_of: string | null;
    stop_gradient: boolean;
    workspace: boolean;
  }[];
  dialects: { name: string; note: string; settings: Record<string, Parameter> }[];
}

/** Everything about every operation. */
export function catalog(): Operation[];

/** How to load the WebAssembly module. */
export interface InitOptions {
  /** Whether to take the build with vector instructions; by default, where the host has them. The bits are the same. */
  simd?: boolean;
  /** The module, where it does not stand beside the package's files. */
  module?: URL | string | globalThis.Request | Response | BufferSource | WebAssembly.Module;
}

/** Load the WebAssembly module; needed before anything else in browsers, and not at all in Node. Later calls do nothing. */
export function init(options?: InitOptions): Promise<void>;

/** Why a call was refused: one sentence, and what it is about in fields. */
export class PlumblineError extends Error {
  /** One word: `missing_input`, `non_finite`, `shape_mismatch`, …. */
  readonly kind: string;
  /** The name of the input, parameter or output at fault, where one is. */
  readonly argument: string | undefined;
  /** The flat (row-major) index of the element at fault, where one is. */
  readonly index: number | undefined;
}

import type { OperationId } from "./operations.js";
export * from "./operations.js";
