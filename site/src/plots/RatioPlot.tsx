// A policy loss and its gradient against the log-ratio, for a positive and a negative advantage, with the regions of the
// clip and the chosen token.

import { hasInput, hasOutput, hasParam } from '../catalog/catalog';
import type { Operation, Setting } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { tensor } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled, token } from '../state/state';
import { advantages, clipBounds, ratios, REGIONS, regionOf } from '../views/derived';
import { MARGIN, Plot, type Scales } from './Plot';
import { linspace } from './sample';

export const NAMED = {
  inputs: ['log_prob', 'old_log_prob', 'advantage', 'ref_log_prob'],
  outputs: ['token_loss', 'd_log_prob', 'token_weight'],
  params: ['advantage_estimator', 'aggregation', 'kl_coefficient', 'world_size', 'loss_scale', 'token_count'],
};

const POINTS = 241;
const REACH = 1.2;

export function hasRatioCurve(operation: Operation): boolean {
  return ['log_prob', 'old_log_prob', 'advantage'].every((name) => hasInput(operation, name))
    && ['token_loss', 'd_log_prob'].every((name) => hasOutput(operation, name));
}

/** Loss and gradient of single tokens: each log-ratio is a response of one token, so that no mean mixes them. */
function curve(operation: Operation, advantage: number, at: number[]) {
  const { params, dialect } = settled.value.state;
  const forced: Record<string, Setting> = {};
  // The curve is of the policy term of one token: given advantage, no KL term, a plain sum.
  if (hasParam(operation, 'advantage_estimator')) forced.advantage_estimator = 'given';
  if (hasParam(operation, 'kl_coefficient')) forced.kl_coefficient = 0;
  if (hasParam(operation, 'aggregation')) forced.aggregation = 'token_sum';
  for (const name of ['world_size', 'loss_scale']) if (hasParam(operation, name)) forced[name] = 1;
  const old = -Math.log(4);
  const shape = [at.length, 1];
  const { outputs } = evaluate({
    operation,
    dialect,
    dtype: 'f64',
    params: { ...params, ...forced },
    inputs: {
      log_prob: tensor(shape, at.map((x) => old + x)),
      old_log_prob: tensor(shape, at.map(() => old)),
      advantage: tensor(shape, at.map(() => advantage)),
    },
    outputs: ['token_loss', 'd_log_prob'],
  });
  return outputs ? { loss: outputs.token_loss!.data, gradient: outputs.d_log_prob!.data } : null;
}

export function RatioPlot({ operation }: { operation: Operation }) {
  return (
    <>
      <OneSign operation={operation} sign={1} />
      <OneSign operation={operation} sign={-1} />
    </>
  );
}

function OneSign({ operation, sign }: { operation: Operation; sign: 1 | -1 }) {
  const bounds = clipBounds(operation, settled.value.state);
  const reach = Math.max(REACH, bounds && Number.isFinite(bounds.high) ? 1.6 * Math.log(Math.max(1, bounds.high)) : 0);
  const at = linspace(-reach, reach, POINTS);
  const got = curve(operation, sign, at);
  if (!got) return null;
  const loss = at.map((x, index): [number, number] => [x, got.loss[index]!]);
  const gradient = at.map((x, index): [number, number] => [x, got.gradient[index]!]);
  const letter = sign > 0 ? 'A > 0' : 'A < 0';
  const edges = bounds
    ? { low: bounds.low > 0 ? Math.log(bounds.low) : -Infinity, high: Number.isFinite(bounds.high) ? Math.log(bounds.high) : Infinity }
    : null;
  const point = chosen(operation, sign);
  const flat = gradient.filter(([, value]) => value === 0).map(([x]) => x);
  const description =
    `Loss of one token and its gradient by the log-probability for an advantage of ${sign}, log-ratios from ${short(-reach)} to ${short(reach)}.` +
    (edges ? ` The clip bounds are ratios ${short(bounds!.low)} and ${short(bounds!.high)}.` : '') +
    (flat.length > 0 ? ` The gradient is 0 for log-ratios from ${short(Math.min(...flat))} to ${short(Math.max(...flat))}.` : ' The gradient is nowhere 0.') +
    (point ? ` The chosen token has log-ratio ${short(point[0])}.` : '');
  const behind = ({ x, height, width }: Scales) => {
    if (!edges) return null;
    const left = MARGIN.left;
    const right = width - MARGIN.right;
    const low = Math.max(left, Math.min(right, x(edges.low)));
    const high = Math.max(left, Math.min(right, x(edges.high)));
    const band = height - MARGIN.bottom - MARGIN.top;
    const part = (from: number, to: number, ratio: number, anchor: string) => {
      const region = regionOf(ratio, sign, bounds!);
      const stops = region === 'gain taken' || region === 'loss taken';
      return to > from ? (
        <g key={region}>
          <title>{REGIONS[region]}</title>
          <rect class={stops ? 'clipped' : region === 'inside' ? 'inside' : 'free'} x={from} y={MARGIN.top} width={to - from} height={band} />
          {to - from > 60 && (
            <text x={anchor === 'start' ? from + 5 : anchor === 'end' ? to - 5 : (from + to) / 2} y={height - MARGIN.bottom - 6} text-anchor={anchor}>
              {region}
            </text>
          )}
        </g>
      ) : null;
    };
    return (
      <>
        {part(left, low, bounds!.low / 2, 'middle')}
        {part(low, high, 1, 'middle')}
        {part(high, right, bounds!.high * 2, 'middle')}
      </>
    );
  };
  return (
    <Plot
      title={`One token, ${letter}`}
      description={description}
      xLabel="log-ratio"
      yLabel={sign > 0 ? 'A = 1' : 'A = −1'}
      series={[
        { name: 'loss', colour: 1, points: loss },
        { name: 'gradient by log π', colour: 2, points: gradient, dashed: true },
      ]}
      xDomain={[-reach, reach]}
      behind={behind}
      front={({ x, y }) =>
        point && Math.abs(point[0]) <= reach ? (
          <g>
            <title>the chosen token</title>
            <circle class="point fill-1" r="5" cx={x(point[0])} cy={y(point[1])} />
            <circle class="point fill-2" r="4" cx={x(point[0])} cy={y(point[2])} />
          </g>
        ) : null
      }
    />
  );
}

/** The chosen token's log-ratio, and the two curves there; only on the plot of its advantage's sign. */
function chosen(operation: Operation, sign: 1 | -1): [number, number, number] | null {
  const ratio = ratios(operation, settled.value.state, settled.value.state);
  if (!ratio) return null;
  const index = Math.min(token.value, ratio.length - 1);
  const advantage = advantages(operation, settled.value.state, settled.value.result.outputs, ratio.length)?.(index) ?? 0;
  const { mask } = settled.value.state.inputs;
  if (advantage * sign <= 0 || (mask && mask.data[index] === 0)) return null;
  const at = Math.log(ratio[index]!);
  const here = curve(operation, sign, [at]);
  return here ? [at, here.loss[0]!, here.gradient[0]!] : null;
}
