import type { InitOptions, InputArray, Parameter } from "./index.js";

/** An operation in a dialect; `null` where it is at its defaults. */
export interface Name {
  operation: string;
  dialect: string | null;
}

/** What the numbers say. */
export interface Answer {
  /** `known`: it is what was meant or, where nothing was, an operation of the catalog in one of its dialects; `changed`:
   * something else, named in `fits`; `gradient-differs`: the value fits, the gradient does not; `unknown`: nothing fits. */
  conclusion: "known" | "changed" | "gradient-differs" | "unknown";
  /** Whether several points fit equally, or as many would by chance. */
  cannot_tell: boolean;
  /** The size of the batch in words. */
  batch: string;
  /** How names were read, and what else was made of the inputs. */
  notes: string[];
  printed: { shape: number[]; value: number | string | null; precision: string };
  meant: Name | null;
  /** What the meant operation gives. */
  meant_value: number | string | null;
  /** All points of the simplest kind that give the number. */
  fits: {
    names: Name[];
    changes: string[];
    /** What is changed, in words that follow "if"; empty for nothing. */
    text: string;
    value: number | string;
    gradient: "not given" | "same" | "differs" | "not compared";
    gradient_difference: string | null;
  }[];
  /** Where none fits: the nearest. */
  nearest: { names: Name[]; text: string; value: number | string }[];
  /** What would tell the fitting points apart. */
  tells_apart: string | null;
  /** How many points were tried, and how many were left out because the effort was spent. */
  tried: number;
  left_out: number;
  idle_left_out: number;
  /** How many of the tried points would give a number of this precision by chance. */
  expected_by_chance: number;
}

/** Numbers as they were printed: `unit` is what the last digit stands for, where they were rounded to it. */
export type PrintedArray = InputArray | { shape: ArrayLike<number>; data: ArrayLike<number>; unit?: number };

/** Which operations, dialects, variants or mistakes give the printed number on these inputs. */
export function identify(question: {
  /** The batch, under the catalog's names or a framework's (`logprobs`, `response_mask`, …). Gradients (`d_log_prob`, `grad`)
   * and the printed number (`loss`, `pg_loss`) may stand among them. */
  inputs: Record<string, PrintedArray>;
  /** The printed number. As a text its digits tell how precise it is: `"0.1230"`. */
  loss?: number | string;
  /** The framework's gradients, by the inputs that they belong to. */
  gradients?: Record<string, PrintedArray>;
  /** The operation that is meant; without it, all that take these inputs. */
  operation?: string;
  dialect?: string;
  /** Parameters that are known. */
  params?: Record<string, Parameter>;
  /** How many numbers may be looked at before the search ends. */
  effort?: number;
  /** Called while the search goes on: so many points of a round of so many are looked at. */
  onProgress?: (done: number, of: number) => void;
}): Answer;

/** Load the module; needed first in browsers, and not at all in Node. Later calls do nothing. */
export function init(options?: Pick<InitOptions, "module">): Promise<void>;
