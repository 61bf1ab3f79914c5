// Forward and reverse KL on a mixture: one covers it, the other picks a mode.

import { findOperation, hasInput, hasOutput } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { tensor } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled } from '../state/state';
import { Plot } from './Plot';
import { linspace } from './sample';

export const NAMED = {
  operations: ['logits.logprob_gaussian'],
  inputs: ['component_weight', 'component_mean', 'component_std', 'action', 'mean', 'log_std'],
  outputs: ['forward_mean', 'forward_std', 'forward_kl', 'reverse_mean', 'reverse_std', 'reverse_kl', 'log_prob'],
};

export function hasMixtureFit(operation: Operation): boolean {
  return hasInput(operation, 'component_mean') && hasOutput(operation, 'reverse_mean');
}

function density(at: number[], mean: number, std: number): number[] {
  const gaussian = findOperation('logits.logprob_gaussian')!;
  const shape = [at.length, 1];
  const { outputs } = evaluate({
    operation: gaussian,
    dialect: null,
    dtype: 'f64',
    params: {},
    inputs: { action: tensor(shape, at), mean: tensor(shape, at.map(() => mean)), log_std: tensor(shape, at.map(() => Math.log(std))) },
    outputs: ['log_prob'],
  });
  return outputs ? Array.from(outputs.log_prob!.data, Math.exp) : at.map(() => NaN);
}

export function MixturePlot() {
  const { component_weight: weight, component_mean: mean, component_std: std } = settled.value.state.inputs;
  const { outputs } = settled.value.result;
  if (!weight || !mean || !std || !outputs) return null;
  const low = Math.min(...mean.data.map((value, index) => value - 3.2 * std.data[index]!));
  const high = Math.max(...mean.data.map((value, index) => value + 3.2 * std.data[index]!));
  const at = linspace(low, high, 221);
  const total = weight.data.reduce((sum, value) => sum + value, 0);
  const parts = Array.from(mean.data, (value, index) => density(at, value, std.data[index]!).map((p) => (p * weight.data[index]!) / total));
  const scalar = (name: string) => outputs[name]!.data[0]!;
  const points = (values: number[]) => at.map((x, index): [number, number] => [x, values[index]!]);
  return (
    <Plot
      title="The mixture and the two fits"
      description={`The forward fit has mean ${short(scalar('forward_mean'))} and deviation ${short(scalar('forward_std'))}, at a KL of ${short(scalar('forward_kl'))} nats: it covers the mixture. The reverse fit has mean ${short(scalar('reverse_mean'))} and deviation ${short(scalar('reverse_std'))}, at ${short(scalar('reverse_kl'))} nats: it seeks a mode.`}
      xLabel="x"
      yLabel="density"
      series={[
        { name: 'mixture', colour: 7, points: points(at.map((_, index) => parts.reduce((sum, part) => sum + part[index]!, 0))) },
        { name: 'forward KL (covers)', colour: 1, points: points(density(at, scalar('forward_mean'), scalar('forward_std'))) },
        { name: 'reverse KL (seeks a mode)', colour: 2, points: points(density(at, scalar('reverse_mean'), scalar('reverse_std'))), dashed: true },
      ]}
    />
  );
}
