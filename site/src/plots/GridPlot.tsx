// Value iteration on a small grid, sweep by sweep: the operation itself runs with a limit on its sweeps.

import { useState } from 'preact/hooks';
import { findOperation, hasOutput, hasParam } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { tensor } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled, valueOf } from '../state/state';
import { Alternative } from './Plot';

export const NAMED = {
  operations: ['bellman.value_iteration'],
  inputs: ['transition', 'reward', 'initial_value'],
  params: ['discount', 'max_sweeps', 'tolerance'],
  outputs: ['value', 'action', 'residual'],
};

const SIDE = 4;
const STATES = SIDE * SIDE;
const ARROWS = ['↑', '→', '↓', '←'];
const MOVES = [[-1, 0], [0, 1], [1, 0], [0, -1]] as const;
const SWEEPS = 12;

export function hasGrid(operation: Operation): boolean {
  return operation.family === 'bellman' && hasParam(operation, 'discount') && (hasOutput(operation, 'value') || hasOutput(operation, 'backup'));
}

/** Sutton and Barto's grid: reward −1 a step, corners end the episode, walls hold one in place. */
function grid() {
  const transition = new Float64Array(STATES * 4 * STATES);
  const reward = new Float64Array(STATES * 4);
  for (let from = 0; from < STATES; from += 1) {
    MOVES.forEach(([down, right], action) => {
      const [row, column] = [Math.floor(from / SIDE) + down, (from % SIDE) + right];
      const ends = from === 0 || from === STATES - 1;
      const inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
      const to = ends || !inside ? from : row * SIDE + column;
      transition[(from * 4 + action) * STATES + to] = 1;
      reward[from * 4 + action] = ends ? 0 : -1;
    });
  }
  return { transition: tensor([STATES, 4, STATES], transition), reward: tensor([STATES, 4], reward) };
}

export function GridPlot() {
  const [sweeps, setSweeps] = useState(2);
  const iteration = findOperation('bellman.value_iteration');
  const given = valueOf(settled.value.state, 'discount');
  if (!iteration) return null;
  const discount = typeof given === 'number' ? given : 1;
  const run = (limit: number) =>
    limit === 0
      ? null
      : evaluate({ operation: iteration, dialect: null, dtype: 'f64', params: { discount, max_sweeps: limit, tolerance: 0 }, inputs: { ...grid(), initial_value: tensor([STATES], new Array(STATES).fill(0)) } }).outputs;
  const outputs = run(sweeps);
  const value = outputs?.value?.data ?? new Float64Array(STATES);
  const action = outputs?.action?.data;
  const least = Math.min(...value, -1e-9);
  const title = `Value iteration on a 4 × 4 grid, ${sweeps} ${sweeps === 1 ? 'sweep' : 'sweeps'}, discount ${short(discount)}`;
  const description = `Two corners end the episode, each step costs 1. Values row by row: ${Array.from(value, short).join(', ')}.`;
  return (
    <figure class="plot">
      <figcaption>{title}</figcaption>
      <div class="grid-world" role="img" aria-label={`${title}. ${description}`}>
        {Array.from(value, (here, index) => {
          const ends = index === 0 || index === STATES - 1;
          return (
            <div key={index} class={ends ? 'grid-state ends' : 'grid-state'} style={{ '--depth': String(ends ? 0 : here / least) }}>
              <b>{short(here)}</b>
              <span>{ends ? 'end' : action ? ARROWS[action[index]!] : '·'}</span>
            </div>
          );
        })}
      </div>
      <div class="steps">
        <button type="button" disabled={sweeps === 0} onClick={() => setSweeps(sweeps - 1)}>
          One sweep back
        </button>
        <button type="button" disabled={sweeps >= SWEEPS} onClick={() => setSweeps(sweeps + 1)}>
          One sweep on
        </button>
        {outputs && <span class="quiet">largest change {short(outputs.residual!.data[0]!)}</span>}
      </div>
      <Alternative
        title={title}
        description={description}
        table={{ head: ['state', 'value', 'best action'], rows: Array.from(value, (here, index) => [index, here, action ? ['up', 'right', 'down', 'left'][action[index]!]! : '']) }}
      />
    </figure>
  );
}
