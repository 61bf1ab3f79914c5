// Columns of the token table that the formula itself does not put out: the ratio and where it lies, by other operations
// of the catalog.

import { findOperation, hasInput, hasParam } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { evaluate, type Outputs } from '../compute/evaluate';
import { bits, short } from '../numbers/format';
import { valueOf, type Setup, type State } from '../state/state';

export interface Derived {
  name: string;
  meaning: string;
  text: (index: number, asBits: boolean) => string;
}

/** What this file names of the catalog; a test compares it with what there is. */
export const NAMED = {
  operations: ['ratio.token'],
  inputs: ['log_prob', 'old_log_prob', 'advantage', 'mask'],
  params: ['advantage_estimator', 'ratio_level', 'clip_ratio_low', 'clip_ratio_high', 'clip_bounds'],
};

/** Ratio of each token, for operations over a policy and the one that sampled. */
export function ratios(operation: Operation, setup: Setup, on: State): Float64Array | null {
  if (!hasInput(operation, 'log_prob') || !hasInput(operation, 'old_log_prob')) return null;
  const { log_prob: current, old_log_prob: old, mask } = on.inputs;
  if (!current || !old || operation.family === 'ratio') return null;
  const level = valueOf(setup, 'ratio_level') ?? 'token';
  const ratio = findOperation(`ratio.${level}`);
  if (!ratio) return null;
  // A slider moves neither of these, so the last answer most often stands.
  const asked = [ratio, on.dtype, current, old, mask];
  if (lastRatios && asked.every((part, index) => part === lastRatios!.asked[index])) return lastRatios.ratios;
  const inputs = { log_prob: current, old_log_prob: old, ...(mask ? { mask } : {}) };
  const { outputs } = evaluate({ operation: ratio, dialect: null, dtype: on.dtype, params: {}, inputs, outputs: ['ratio'] });
  lastRatios = { asked, ratios: outputs?.ratio?.data ?? null };
  return lastRatios.ratios;
}

let lastRatios: { asked: unknown[]; ratios: Float64Array | null } | null = null;

/** The bounds of the ratio, where the operation clips it. */
export function clipBounds(operation: Operation, setup: Setup): { low: number; high: number } | null {
  if (!operation.params.some((param) => param.name === 'clip_ratio_high')) return null;
  const low = valueOf(setup, 'clip_ratio_low');
  const high = valueOf(setup, 'clip_ratio_high');
  const absolute = valueOf(setup, 'clip_bounds') === 'absolute';
  return {
    low: typeof low === 'number' ? (absolute ? low : 1 - low) : 0,
    high: typeof high === 'number' ? (absolute ? high : 1 + high) : Infinity,
  };
}

export type Region = 'inside' | 'gain taken' | 'pulled up' | 'loss taken' | 'pushed down';

/** The regions of PPO's clip: on which side of the bounds the ratio lies, and whether the advantage wants it there. */
export function regionOf(ratio: number, advantage: number, bounds: { low: number; high: number }): Region {
  if (ratio > bounds.high) return advantage > 0 ? 'gain taken' : 'pushed down';
  if (ratio < bounds.low) return advantage > 0 ? 'pulled up' : 'loss taken';
  return 'inside';
}

export const REGIONS: Record<Region, string> = {
  inside: 'the ratio is within the bounds: the full gradient',
  'gain taken': 'A > 0 and the ratio above the upper bound: PPO has taken the gain and gives no gradient',
  'pulled up': 'A > 0 and the ratio below the lower bound: the gradient pulls the probability back up',
  'loss taken': 'A < 0 and the ratio below the lower bound: PPO gives no further gradient',
  'pushed down': 'A < 0 and the ratio above the upper bound: the gradient pushes the probability down without limit',
};

export function derivedColumns(operation: Operation, state: State, outputs: Outputs | null): Derived[] {
  const ratio = ratios(operation, state, state);
  if (ratio === null) return [];
  const columns: Derived[] = [
    {
      name: 'ratio',
      meaning: 'importance ratio at the chosen level, before any clip',
      text: (index, asBits) => (asBits ? bits(ratio[index]!, state.dtype) : short(ratio[index]!)),
    },
  ];
  const bounds = clipBounds(operation, state);
  const advantage = advantages(operation, state, outputs, ratio.length);
  if (bounds && advantage) {
    columns.push({
      name: 'region',
      meaning: 'where the ratio lies between the clip bounds, and whether the advantage wants it there',
      text: (index) => {
        const value = advantage(index);
        return value === 0 ? 'A = 0' : regionOf(ratio[index]!, value, bounds);
      },
    });
  }
  return columns;
}

/** The advantage at a token, whether it was given for tokens, for responses, or estimated from rewards. */
export function advantages(operation: Operation, state: State, outputs: Outputs | null, tokens: number): ((index: number) => number) | null {
  const given = !hasParam(operation, 'advantage_estimator') || valueOf(state, 'advantage_estimator') === 'given';
  const source = given ? state.inputs.advantage : outputs?.advantage;
  if (!source || source.data.length === 0) return null;
  const each = tokens / source.data.length;
  return (index) => source.data[Math.floor(index / each)] ?? 0;
}
