// Rewards of each group and the advantages that come of them.

import { hasInput, hasOutput } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { short } from '../numbers/format';
import { settled } from '../state/state';
import { extent, MARGIN, padded, Plot, type Scales } from './Plot';

export const NAMED = { inputs: ['reward', 'group'], outputs: ['advantage'] };

export function hasGroups(operation: Operation): boolean {
  return hasInput(operation, 'reward') && hasInput(operation, 'group') && hasOutput(operation, 'advantage')
    && operation.outputs.some((output) => output.name === 'advantage' && output.shape.length === 1);
}

export function GroupPlot() {
  const { reward, group } = settled.value.state.inputs;
  const advantage = settled.value.result.outputs?.advantage;
  if (!reward || !group || !advantage || advantage.shape.length !== 1 || reward.data.length !== advantage.data.length) return null;
  const groups = [...new Set(group.data)];
  const rows = Array.from(reward.data, (value, index) => ({ group: group.data[index]!, reward: value, advantage: advantage.data[index]! }));
  const text = groups.map((name) => {
    const members = rows.filter((row) => row.group === name);
    return `group ${name}: rewards ${members.map((row) => short(row.reward)).join(', ')} become ${members.map((row) => short(row.advantage)).join(', ')}`;
  });
  return (
    <Plot
      title="Rewards and advantages by group"
      description={`${text.join('; ')}.`}
      xLabel="reward"
      yLabel="advantage"
      series={groups.map((name, index) => ({
        name: `group ${name}`,
        colour: (index % 7) + 1,
        points: rows.filter((row) => row.group === name).map((row): [number, number] => [row.reward, row.advantage]).sort((left, right) => left[0] - right[0]),
      }))}
      xDomain={padded(extent(rows.map((row) => row.reward)))}
      yDomain={padded(extent([0, ...rows.map((row) => row.advantage)]))}
      front={({ x, y, height }: Scales) =>
        rows.map((row, index) => (
          <g key={index}>
            <circle class={`point fill-${(groups.indexOf(row.group) % 7) + 1}`} r="5" cx={x(row.reward)} cy={y(row.advantage)} />
            <line class={`series tick colour-${(groups.indexOf(row.group) % 7) + 1}`} x1={x(row.reward)} x2={x(row.reward)} y1={height - MARGIN.bottom} y2={height - MARGIN.bottom - 6} />
          </g>
        ))
      }
      table={{ head: ['response', 'group', 'reward', 'advantage'], rows: rows.map((row, index) => [index, row.group, row.reward, row.advantage]) }}
    />
  );
}
