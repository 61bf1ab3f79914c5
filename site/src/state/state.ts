// What the page shows, as one value; changes go through `change`, which also remembers them for undo.

import { batch, computed, effect, signal } from '@preact/signals';
import { baseValue, findOperation } from '../catalog/catalog';
import type { Operation, Setting } from '../catalog/types';
import { evaluate, type Dtype, type Result } from '../compute/evaluate';
import { example } from '../compute/example';
import { History } from './history';
import type { Tensor } from '../compute/tensor';

/** A formula with its settings: the dialect's, then those that were changed by hand. */
export interface Setup {
  operation: string;
  dialect: string | null;
  params: Record<string, Setting>;
}

export interface State extends Setup {
  dtype: Dtype;
  inputs: Record<string, Tensor>;
  /** The second formula of a side by side. */
  compare: Setup | null;
}

/** The page's other views. */
export type Page = 'formula' | 'map' | 'identify';

export const FIRST = 'objective.grpo';

export const page = signal<Page>('formula');
export const state = signal<State>({ operation: FIRST, dialect: null, params: {}, dtype: 'f64', inputs: {}, compare: null });
/** The token (flat index) that the plots and the worked line show. */
export const token = signal(0);
/** Whether numbers are shown as their bits. */
export const hex = signal(false);

const history = new History<State>();
export const canUndo = signal(false);
export const canRedo = signal(false);

/** The state of an operation before anyone changes anything. */
export function fresh(operation: Operation, dialect: string | null = null): State {
  return {
    operation: operation.id,
    dialect,
    params: {},
    dtype: 'f64',
    inputs: example(operation, dialect, {}, 0),
    compare: null,
  };
}

export const operation = computed<Operation>(() => findOperation(state.value.operation)!);

/** All outputs of the current state, or why there are none. */
export const result = computed<Result>(() => evaluateSetup(state.value, state.value));

/** The second formula's outputs on the same inputs. */
export const comparedResult = computed<Result | null>(() => {
  const { compare } = state.value;
  return compare === null ? null : evaluateSetup(compare, state.value);
});

/** Above this many input numbers the plots follow when the numbers rest, so that the result is there at once. */
const MANY = 4000;
/** How long they must rest (ms). */
const REST = 120;

/** State and result as the plots show them. */
export const settled = signal<{ state: State; result: Result }>({ state: state.value, result: { outputs: {}, refusal: null } });

/** Begin to evaluate; the catalog is there. */
export function follow(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  effect(() => {
    const next = { state: state.value, result: result.value };
    clearTimeout(timer);
    const size = Object.values(next.state.inputs).reduce((total, input) => total + input.data.length, 0);
    if (size <= MANY || next.state.operation !== settled.peek().state.operation) settled.value = next;
    else timer = setTimeout(() => (settled.value = next), REST);
  });
}

/** A formula on a state's inputs: those that it has, the others left out. */
export function evaluateSetup(setup: Setup, on: State, outputs?: string[]): Result {
  const described = findOperation(setup.operation);
  if (!described) {
    return { outputs: null, refusal: { message: `no operation is called \`${setup.operation}\``, argument: null, index: null } };
  }
  const inputs: Record<string, Tensor> = {};
  for (const input of described.inputs) {
    const given = on.inputs[input.name];
    if (given) inputs[input.name] = given;
  }
  return evaluate({
    operation: described,
    dialect: setup.dialect,
    dtype: on.dtype,
    params: setup.params,
    inputs,
    ...(outputs ? { outputs } : {}),
  });
}

/** The value of a parameter in a setup. */
export function valueOf(setup: Setup, name: string): Setting {
  const described = findOperation(setup.operation);
  const param = described?.params.find((candidate) => candidate.name === name);
  if (!described || !param) return null;
  return name in setup.params ? setup.params[name]! : baseValue(described, setup.dialect, param);
}

/**
 * Go to another state. Changes with the same `key` that follow each other quickly are one step of undo, so that
 * dragging a slider is.
 */
export function change(next: State, key: string | null = null): void {
  history.push(state.value, key, performance.now());
  show(next);
}

export function patch(part: Partial<State>, key: string | null = null): void {
  change({ ...state.value, ...part }, key);
}

export function setParam(name: string, value: Setting): void {
  const { params } = state.value;
  const described = operation.value;
  const param = described.params.find((candidate) => candidate.name === name)!;
  const next = { ...params };
  if (Object.is(baseValue(described, state.value.dialect, param), value)) delete next[name];
  else next[name] = value;
  patch({ params: next }, `param/${name}`);
}

export function setInput(name: string, tensor: Tensor | null, key: string | null = null): void {
  const inputs = { ...state.value.inputs };
  if (tensor === null) delete inputs[name];
  else inputs[name] = tensor;
  patch({ inputs }, key);
}

export function open(described: Operation): void {
  batch(() => {
    page.value = 'formula';
    if (described.id !== state.value.operation) {
      token.value = 0;
      change(fresh(described));
    }
  });
}

export function undo(): void {
  const previous = history.undo(state.value);
  if (previous) show(previous);
}

export function redo(): void {
  const next = history.redo(state.value);
  if (next) show(next);
}

/** Show a state without remembering the one before: at the start, and when the address changes. */
export function show(next: State): void {
  batch(() => {
    state.value = next;
    canUndo.value = history.canUndo;
    canRedo.value = history.canRedo;
  });
}
