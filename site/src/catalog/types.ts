// The catalog as the package hands it over (`evaluate/src/describe.rs` writes it).

/** A parameter's value: `null` is switched off. */
export type Setting = null | number | boolean | string;

export type Shape = string[];

export interface Range {
  low: number | null;
  low_inclusive: boolean;
  high: number | null;
  high_inclusive: boolean;
}

export interface ParamSpec {
  name: string;
  symbol: string;
  meaning: string;
  kind: 'number' | 'optional number' | 'whole number' | 'flag' | 'choice';
  default: Setting;
  legal: unknown;
  range: Range | null;
}

export interface InputSpec {
  name: string;
  meaning: string;
  domain: string;
  indexes: string | null;
  shapes: Shape[];
  optional: boolean;
}

export interface OutputSpec {
  name: string;
  meaning: string;
  shape: Shape;
  gradient_of: string | null;
  stop_gradient: boolean;
}

export interface Dialect {
  name: string;
  note: string;
  settings: Record<string, Setting>;
}

export interface Source {
  title: string;
  reference: string;
  place: string;
}

export interface Operation {
  id: string;
  family: string;
  title: string;
  summary: string;
  formula: string;
  gradient: string;
  notes: string;
  sources: Source[];
  inputs: InputSpec[];
  params: ParamSpec[];
  outputs: OutputSpec[];
  dialects: Dialect[];
}
