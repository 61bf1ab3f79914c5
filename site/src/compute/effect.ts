// Which parameters change anything on the numbers at hand: found by trying, so that it holds for every formula.

import { choices } from '../catalog/catalog';
import { isLegal } from '../catalog/range';
import type { Operation, ParamSpec, Setting } from '../catalog/types';
import { valueOf, type State } from '../state/state';
import { costOf, evaluate, type Outputs } from './evaluate';

/** Beyond this (ms for one evaluation) the trial is left out and every parameter counts as having an effect. */
const MOST_TIME = 2;

/** The names of the parameters that change some output bit when they take another legal value. */
export function effective(operation: Operation, state: State): Set<string> {
  const all = new Set(operation.params.map((param) => param.name));
  const { params, inputs, dialect } = state;
  const at = (changed: Record<string, Setting>) => evaluate({ operation, dialect, dtype: 'f64', params: changed, inputs });
  const base = at(params);
  if (base.outputs === null || costOf(operation) > MOST_TIME) return all;
  const found = new Set<string>();
  for (const param of operation.params) {
    const current = valueOf(state, param.name);
    const matters = others(param, current).some((value) => {
      const other = at({ ...params, [param.name]: value });
      return other.outputs === null || !sameBits(base.outputs, other.outputs);
    });
    if (matters) found.add(param.name);
  }
  return found;
}

function others(param: ParamSpec, current: Setting): Setting[] {
  if (param.kind === 'choice') return choices(param).filter((name) => name !== current);
  if (param.kind === 'flag') return [!current];
  const candidates = [0, 1e-3, 0.05, 0.5, 0.9, 1, 1.5, 2, 5, 100, -0.5, -5].filter(
    (value) => value !== current && isLegal(value, param),
  );
  return param.kind === 'optional number' && current !== null ? [null, ...candidates] : candidates;
}

function sameBits(left: Outputs, right: Outputs): boolean {
  return Object.entries(left).every(([name, output]) => {
    const other = right[name];
    return other !== undefined && output.data.length === other.data.length
      && output.data.every((value, index) => Object.is(value, other.data[index]));
  });
}
