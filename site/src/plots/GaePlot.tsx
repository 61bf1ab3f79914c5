// Advantages or returns of one response under several decays of the trace.

import type { Operation } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { short } from '../numbers/format';
import { settled, token, valueOf } from '../state/state';
import { Plot, type Series } from './Plot';

export const NAMED = { params: ['gae_lambda', 'trace_decay'] };

export function hasTraceDecay(operation: Operation): boolean {
  return decay(operation) !== undefined && operation.outputs[0]!.shape.join() === 'B,T';
}

function decay(operation: Operation): string | undefined {
  return NAMED.params.find((name) => operation.params.some((param) => param.name === name));
}

export function GaePlot({ operation }: { operation: Operation }) {
  const name = decay(operation)!;
  const output = operation.outputs[0]!.name;
  const now = valueOf(settled.value.state, name) as number;
  const first = Object.values(settled.value.state.inputs).find((input) => input.shape.length === 2);
  if (!first) return null;
  const columns = first.shape[1]!;
  const row = Math.min(first.shape[0]! - 1, Math.floor(token.value / columns));
  const { mask } = settled.value.state.inputs;
  const values = [...new Set([0, 0.5, 0.9, 1, now])].sort((left, right) => left - right);
  const series: Series[] = values.flatMap((value, index) => {
    const { dialect, inputs, params } = settled.value.state;
    const { outputs } = evaluate({ operation, dialect, dtype: 'f64', params: { ...params, [name]: value }, inputs, outputs: [output] });
    const data = outputs?.[output]?.data;
    if (!data) return [];
    const points = Array.from({ length: columns }, (_, column): [number, number] => [column, data[row * columns + column]!]).filter(
      ([column]) => !mask || mask.data[row * columns + column] !== 0,
    );
    return [{ name: `λ = ${short(value)}${value === now ? ' (now)' : ''}`, colour: value === now ? 2 : [7, 3, 1, 4, 5][index % 5]!, points, dashed: value !== now }];
  });
  return (
    <Plot
      title={`${output} of response ${row} under ${name}`}
      description={series.map((one) => `${one.name}: ${one.points.map(([, value]) => short(value)).join(', ')}`).join('; ')}
      xLabel="step"
      yLabel={output}
      series={series}
      front={({ x, y }) => series.flatMap((one) => one.points.map(([column, value]) => <circle key={`${one.name}${column}`} class={`point fill-${one.colour}`} r="3.5" cx={x(column)} cy={y(value)} />))}
    />
  );
}
