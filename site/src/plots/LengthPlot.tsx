// A penalty against the length of the response.

import { hasInput } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { tensor } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled, valueOf } from '../state/state';
import { Plot } from './Plot';
import { linspace } from './sample';

export const NAMED = { inputs: ['length'], outputs: ['penalty'], params: ['max_length', 'buffer_length'] };

export function hasLengthPenalty(operation: Operation): boolean {
  return hasInput(operation, 'length') && operation.outputs[0]!.name === 'penalty';
}

export function LengthPlot({ operation }: { operation: Operation }) {
  const longest = valueOf(settled.value.state, 'max_length');
  const buffer = valueOf(settled.value.state, 'buffer_length');
  const given = settled.value.state.inputs.length;
  if (typeof longest !== 'number') return null;
  const reach = Math.ceil(Math.max(longest * 1.25, given ? Math.max(...given.data) : 0));
  const at = [...new Set(linspace(0, reach, 201).map(Math.round))];
  const { outputs } = evaluate({
    operation,
    dialect: settled.value.state.dialect,
    dtype: 'f64',
    params: settled.value.state.params,
    inputs: { length: tensor([at.length], at) },
    outputs: ['penalty'],
  });
  if (!outputs) return null;
  const own = settled.value.result.outputs?.penalty;
  return (
    <Plot
      title="Penalty against length"
      description={`No penalty up to ${typeof buffer === 'number' ? short(longest - buffer) : '0'} tokens, then falling to ${short(Math.min(...outputs.penalty!.data))} beyond ${short(longest)} tokens.`}
      xLabel="tokens"
      yLabel="penalty"
      series={[{ name: 'penalty', colour: 1, points: at.map((x, index): [number, number] => [x, outputs.penalty!.data[index]!]) }]}
      front={({ x, y }) =>
        own && given ? Array.from(given.data, (length, index) => <circle key={index} class="point fill-2" r="4.5" cx={x(length)} cy={y(own.data[index]!)} />) : null
      }
    />
  );
}
