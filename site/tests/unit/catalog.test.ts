// What this page names of the catalog must be there, and what it makes of the catalog must hold for all of it.

import { readFileSync } from 'node:fs';
import { catalog, evaluate, init } from 'plumbline-rl';
import { beforeAll, expect, test } from 'vitest';
import { allOperations, findOperation, search, setCatalog } from '../../src/catalog/catalog';
import { isLegal, spanOf } from '../../src/catalog/range';
import type { Operation } from '../../src/catalog/types';
import { example } from '../../src/compute/example';
import * as configuration from '../../src/copy/configuration';
import { command, vector } from '../../src/copy/json';
import { python } from '../../src/copy/python';
import { rust } from '../../src/copy/rust';
import * as aggregation from '../../src/plots/AggregationPlot';
import * as estimator from '../../src/plots/EstimatorPlot';
import * as gae from '../../src/plots/GaePlot';
import * as grid from '../../src/plots/GridPlot';
import * as group from '../../src/plots/GroupPlot';
import * as length from '../../src/plots/LengthPlot';
import * as mixture from '../../src/plots/MixturePlot';
import * as ratio from '../../src/plots/RatioPlot';
import * as target from '../../src/plots/TargetPlot';
import { fromHash, toHash } from '../../src/state/link';
import { fresh, type State } from '../../src/state/state';
import * as derived from '../../src/views/derived';
import * as map from '../../src/views/Map';

const PACKAGE = process.env.PLUMBLINE_PACKAGE ?? new URL('../../../target/npm/plumbline-rl/index.js', import.meta.url).pathname;

beforeAll(async () => {
  await init({ module: readFileSync(PACKAGE.replace(/index\.js$/, 'bindings/plumbline_wasm_scalar.wasm')) });
  setCatalog(catalog() as unknown as Operation[]);
});

test('every name that a view or a plot uses is in the catalog', () => {
  const named: { operations?: string[]; inputs?: string[]; outputs?: string[]; params?: string[] }[] = [
    derived.NAMED, map.NAMED, configuration.NAMED, aggregation.NAMED, estimator.NAMED, gae.NAMED, grid.NAMED, group.NAMED, length.NAMED, mixture.NAMED, ratio.NAMED, target.NAMED,
  ];
  const all = allOperations();
  const inputs = new Set(all.flatMap((operation) => operation.inputs.map((input) => input.name)));
  const outputs = new Set(all.flatMap((operation) => operation.outputs.map((output) => output.name)));
  const params = new Set(all.flatMap((operation) => operation.params.map((param) => param.name)));
  for (const names of named) {
    for (const id of names.operations ?? []) expect(findOperation(id), id).toBeDefined();
    for (const name of names.inputs ?? []) expect(inputs, name).toContain(name);
    for (const name of names.outputs ?? []) expect(outputs, name).toContain(name);
    for (const name of names.params ?? []) expect(params, name).toContain(name);
  }
});

test('every curated plot has a formula, and every ratio level and KL estimator that is named by a choice is an operation', () => {
  const kinds = [ratio.hasRatioCurve, aggregation.hasAggregation, estimator.hasEstimators, mixture.hasMixtureFit, group.hasGroups, gae.hasTraceDecay, length.hasLengthPenalty, grid.hasGrid, target.hasTargets];
  for (const applies of kinds) expect(allOperations().filter(applies).length, applies.name).toBeGreaterThan(0);
  const choice = (id: string, name: string) => findOperation(id)!.params.find((param) => param.name === name)!.legal as string[];
  for (const level of choice('objective.grpo', 'ratio_level')) expect(findOperation(`ratio.${level}`), level).toBeDefined();
  for (const name of choice('kl.categorical_estimators', 'kl_estimator')) expect(findOperation(`kl.${name}`), name).toBeDefined();
});

test('every operation has an example that it accepts, another for every seed, and a link back to it', () => {
  for (const operation of allOperations()) {
    for (const seed of [0, 1, 2]) {
      const inputs = example(operation, null, {}, seed);
      expect(() => evaluate(operation.id, { inputs }), `${operation.id}, seed ${seed}`).not.toThrow();
    }
    const start = fresh(operation);
    expect(toHash(start)).toBe(`#${operation.id}`);
    const changed: State = { ...start, dtype: 'f32' };
    expect(fromHash(toHash(changed)!)).toEqual(changed);
  }
});

test('every slider starts at its default and stays within what is legal', () => {
  let sliders = 0;
  for (const operation of allOperations()) {
    for (const param of operation.params) {
      if (typeof param.default !== 'number') continue;
      sliders += 1;
      const span = spanOf(param, param.default);
      expect(isLegal(span.low, param), `${operation.id} ${param.name} from ${span.low}`).toBe(true);
      expect(isLegal(span.high, param), `${operation.id} ${param.name} to ${span.high}`).toBe(true);
      expect(span.low).toBeLessThanOrEqual(param.default);
      expect(span.high).toBeGreaterThanOrEqual(param.default);
    }
  }
  expect(sliders).toBeGreaterThan(500);
});

test('an operation is found first by its own name', () => {
  for (const operation of allOperations()) {
    const name = operation.id.split('.')[1]!;
    const same = allOperations().filter((other) => other.id.endsWith(`.${name}`)).length;
    expect(search(operation.id).map((found) => found.id)[0], operation.id).toBe(operation.id);
    expect(search(name).slice(0, same + 2).map((found) => found.id), name).toContain(operation.id);
  }
});

test('settings of trainers are those of their dialects', () => {
  const grpo = findOperation('objective.grpo')!;
  const at = (id: string, dialect: string | null, params: State['params'] = {}): State => ({ ...fresh(findOperation(id)!, dialect), params });
  expect(configuration.isConfigurable(grpo)).toBe(true);
  expect(configuration.trl(grpo, at('objective.grpo', 'trl-1.16', { kl_coefficient: 0.04 }))).toBe(
    '# GRPO as trl.GRPOConfig\nfrom trl import GRPOConfig\n\nconfig = GRPOConfig(\n    loss_type="grpo",\n    importance_sampling_level="token",\n    epsilon=0.2,\n    beta=0.04,\n    use_bias_correction_kl=True,\n)\n',
  );
  expect(configuration.verl(grpo, at('objective.dapo', 'verl-0.9'))).toContain('actor_rollout_ref.actor.clip_ratio_high=0.28\nactor_rollout_ref.actor.clip_ratio_c=');
  expect(configuration.verl(grpo, at('objective.vespo', null))).toContain('# verl: no loss_mode is the surrogate vespo.');
  expect(configuration.trl(grpo, at('objective.ppo', 'verl-0.9'))).toContain('# TRL: no dual clip (clip_ratio_c).');
});

test('code and vectors hold every number', () => {
  for (const id of ['objective.grpo', 'td.q_learning', 'kl.adaptive_controller', 'bellman.value_iteration']) {
    const operation = findOperation(id)!;
    const state = fresh(operation);
    const raw = evaluate(id, { inputs: state.inputs });
    const outputs = Object.fromEntries(Object.entries(raw).map(([name, { shape, data }]) => [name, { shape, data: Float64Array.from(data) }]));
    const stored = JSON.parse(vector(operation, state, outputs)) as { inputs: Record<string, { values: number[] }>; expected: Record<string, { bits: string[] }>; params: object };
    for (const [name, input] of Object.entries(state.inputs)) expect(stored.inputs[name]!.values).toEqual(Array.from(input.data));
    expect(Object.keys(stored.params)).toEqual(operation.params.map((param) => param.name));
    expect(Object.values(stored.expected).every(({ bits }) => bits.every((word) => word.length === 16))).toBe(true);
    for (const text of [python(operation, state, outputs), rust(operation, state, outputs), command(operation, state)]) {
      for (const name of Object.keys(state.inputs)) expect(text).toContain(name);
      expect(text).not.toMatch(/undefined|\[object/);
    }
  }
});
