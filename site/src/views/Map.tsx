// How the objectives grew out of each other: each as what it changes in the one before.

import { allOperations, findOperation, hasParam } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { batch } from '@preact/signals';
import { open, patch, valueOf, type Setup } from '../state/state';
import { differingParams } from './Compare';

/** Which objective another one starts from; what it changes is read from the catalog. */
const FROM: [from: string, to: string[]][] = [
  ['objective.reinforce', ['objective.ppo', 'objective.remax', 'objective.rloo', 'objective.gpg']],
  ['objective.ppo', ['objective.grpo', 'objective.reinforce_plus_plus', 'objective.dppo', 'objective.dro', 'objective.clip_cov', 'objective.kl_cov']],
  ['objective.grpo', ['objective.dr_grpo', 'objective.dapo', 'objective.gspo', 'objective.sapo', 'objective.bnpo']],
  ['objective.dapo', ['objective.cispo']],
  ['objective.gspo', ['objective.gspo_token', 'objective.gmpo', 'objective.luspo', 'objective.vespo']],
];
const ROOT = 'objective.reinforce';

/** The five choices, as the parameters that make them. */
export const CHOICES: { title: string; params: string[] }[] = [
  { title: 'Where the advantage comes from', params: ['advantage_estimator'] },
  { title: 'What the ratio is of', params: ['ratio_level'] },
  { title: 'What is clipped, and how the gradient passes', params: ['surrogate', 'clip_ratio_low', 'clip_ratio_high', 'clip_ratio_c'] },
  { title: 'What keeps it near the reference', params: ['kl_coefficient', 'kl_estimator', 'kl_weight'] },
  { title: 'What the loss is divided by', params: ['aggregation'] },
];

export const NAMED = {
  operations: [...new Set(FROM.flatMap(([from, to]) => [from, ...to]))],
  params: CHOICES.flatMap((choice) => choice.params),
};

const setup = (operation: Operation): Setup => ({ operation: operation.id, dialect: null, params: {} });

export function AlgorithmMap() {
  const placed = new Set(NAMED.operations);
  const others = allOperations().filter((operation) => hasParam(operation, 'surrogate') && hasParam(operation, 'aggregation') && !placed.has(operation.id));
  const root = findOperation(ROOT);
  return (
    <article class="map">
      <header class="title">
        <h1>Algorithm map</h1>
        <p class="summary">
          One composition, a few choices: each objective with what it changes in the one it starts from, in the defaults of
          this catalog.
        </p>
      </header>
      <div class="tree" tabIndex={0} role="region" aria-label="Algorithm map">
        <ul>{root && <Branch operation={root} from={null} />}</ul>
      </div>
      {others.length > 0 && (
        <section class="card" aria-labelledby="others-heading">
          <h2 id="others-heading">Also of this composition</h2>
          <ul class="chips">
            {others.map((operation) => (
              <li key={operation.id}>
                <a class="link" href={`#${operation.id}`}>
                  {operation.title}
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
      <section class="card" aria-labelledby="choices-heading">
        <h2 id="choices-heading">The choices</h2>
        <Table />
      </section>
    </article>
  );
}

function Branch({ operation, from }: { operation: Operation; from: Operation | null }) {
  const next = FROM.find(([id]) => id === operation.id)?.[1] ?? [];
  const changes = from ? differingParams(setup(from), setup(operation)) : [];
  return (
    <li data-algorithm={operation.id}>
      <div class="algorithm">
        <a class="link" href={`#${operation.id}`} onClick={(event) => {
          event.preventDefault();
          open(operation);
        }}>
          {operation.title}
        </a>
        {from && changes.length === 0 && <p class="quiet">the same defaults as {from.title}</p>}
        {changes.map((change) => (
          <p key={change.name}>
            <code>{change.name}</code> {change.left} → <b>{change.right}</b>
          </p>
        ))}
        {from && (
          <button
            type="button"
            class="small"
            onClick={() =>
              batch(() => {
                open(operation);
                patch({ compare: setup(from) });
              })
            }
          >
            beside {from.title}
          </button>
        )}
      </div>
      {next.length > 0 && (
        <ul>
          {next.map((id) => {
            const child = findOperation(id);
            return child ? <Branch key={id} operation={child} from={operation} /> : null;
          })}
        </ul>
      )}
    </li>
  );
}

function Table() {
  const rows = NAMED.operations.flatMap((id) => findOperation(id) ?? []);
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="The choices of each algorithm">
      <table class="numbers side">
        <thead>
          <tr>
            <th scope="col" class="name">
              algorithm
            </th>
            {CHOICES.map((choice) => (
              <th key={choice.title} scope="col" class="name wrap">
                {choice.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((operation) => (
            <tr key={operation.id}>
              <th scope="row" class="name">
                {operation.title}
              </th>
              {CHOICES.map((choice) => (
                <td key={choice.title} class="name">
                  {choice.params
                    .map((name) => valueOf(setup(operation), name))
                    .map((value) => (value === null ? 'off' : String(value)))
                    .join(', ')}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
