// What a temporal-difference update does to each transition: from its value now to its target.

import { hasOutput } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { short } from '../numbers/format';
import { settled } from '../state/state';
import { extent, padded, Plot } from './Plot';

export const NAMED = { inputs: ['q', 'value', 'q1', 'action'], outputs: ['target', 'td_error', 'td_error1'] };

export function hasTargets(operation: Operation): boolean {
  return hasOutput(operation, 'target') && operation.inputs.some((input) => ['q', 'value', 'q1'].includes(input.name));
}

export function TargetPlot() {
  const { q, value, q1, action } = settled.value.state.inputs;
  const target = settled.value.result.outputs?.target;
  if (!target || target.shape.length !== 1) return null;
  const now = Array.from(target.data, (_, index) => {
    if (q && action) return q.data[index * q.shape[1]! + action.data[index]!]!;
    return (value ?? q1)?.data[index] ?? NaN;
  });
  const rows = Array.from(target.data, (to, index) => ({ from: now[index]!, to }));
  return (
    <Plot
      title="From the value now to the target"
      description={rows.map((row, index) => `Transition ${index}: ${short(row.from)} towards ${short(row.to)}`).join('; ')}
      xLabel="value"
      yLabel=""
      series={[]}
      height={44 + 28 * Math.min(rows.length, 16)}
      xDomain={padded(extent(rows.flatMap((row) => [row.from, row.to])))}
      yDomain={[Math.min(rows.length, 16) - 0.4, -0.6]}
      rowNames={rows.slice(0, 16).map((_, index) => `transition ${index}`)}
      front={({ x, y }) =>
        rows.slice(0, 16).map((row, index) => (
          <g key={index}>
            <line class="series colour-7" x1={x(row.from)} x2={x(row.to)} y1={y(index)} y2={y(index)} />
            <circle class="point fill-7" r="4" cx={x(row.from)} cy={y(index)} />
            <circle class="point fill-2" r="5" cx={x(row.to)} cy={y(index)} />
          </g>
        ))
      }
      table={{ head: ['transition', 'now', 'target', 'difference'], rows: rows.map((row, index) => [index, row.from, row.to, row.to - row.from]) }}
    />
  );
}
