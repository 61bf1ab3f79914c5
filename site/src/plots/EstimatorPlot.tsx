// The KL estimators: the curve of each against the log-ratio, and how far each is off and spreads on a policy whose KL is
// known.

import { choices, findOperation } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { tensor } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled } from '../state/state';
import { Plot, type Series } from './Plot';
import { linspace } from './sample';

export const NAMED = {
  operations: ['kl.categorical_estimators'],
  inputs: ['logits', 'ref_logits', 'log_prob', 'ref_log_prob'],
  params: ['kl_estimator'],
  outputs: ['kl', 'bias', 'variance', 'mean_estimate'],
};

/** Where the page has no policies of its own: five entries, moderately apart. */
const LOGITS = [0.9, 0.3, 0, -0.4, -1.1];
const REF_LOGITS = [0.2, 0.6, -0.2, 0.1, -0.9];

export function hasEstimators(operation: Operation): boolean {
  return operation.family === 'kl' && operation.inputs.some((input) => input.name === 'ref_log_prob' || input.name === 'ref_logits');
}

export function EstimatorPlot({ operation }: { operation: Operation }) {
  const enumeration = findOperation('kl.categorical_estimators');
  const estimators = enumeration ? choices(enumeration.params.find((param) => param.name === 'kl_estimator')!) : [];
  if (!enumeration) return null;
  return (
    <>
      <Curves operation={operation} estimators={estimators} />
      <Spread enumeration={enumeration} estimators={estimators} />
    </>
  );
}

function Curves({ operation, estimators }: { operation: Operation; estimators: string[] }) {
  const at = linspace(-2, 2, 161);
  const series: Series[] = [];
  for (const name of estimators) {
    const estimator = findOperation(`kl.${name}`);
    if (!estimator) continue;
    const { outputs } = evaluate({
      operation: estimator,
      dialect: null,
      dtype: 'f64',
      params: estimator.id === operation.id ? settled.value.state.params : {},
      inputs: { log_prob: tensor([1, at.length], at.map((x) => -2.5 + x)), ref_log_prob: tensor([1, at.length], at.map(() => -2.5)) },
      outputs: ['kl'],
    });
    const data = outputs?.kl?.data;
    if (!data) continue;
    const points = at.map((x, index): [number, number] => [x, data[index]!]);
    // A straight-through form has the value of its plain one.
    const twin = series.find((other) => other.points.every(([, y], index) => y === points[index]![1]));
    if (twin) twin.name += `, ${name}`;
    else series.push({ name, colour: (series.length % 7) + 1, points });
  }
  const ends = series.map(({ name, points }) => `${name} goes from ${short(points[0]![1])} to ${short(points.at(-1)![1])}`).join('; ');
  return (
    <Plot
      title="The estimators against the log-ratio"
      description={`Estimate of one token for log-ratios from −2 to 2: ${ends}.`}
      xLabel="log π − log π_ref"
      yLabel="estimate (nats)"
      series={series}
      yDomain={[-2, 4]}
    />
  );
}

function Spread({ enumeration, estimators }: { enumeration: Operation; estimators: string[] }) {
  const { logits, ref_logits: reference } = settled.value.state.inputs;
  const own = logits?.shape.length === 1 && reference?.shape.length === 1;
  const inputs = own
    ? { logits: logits!, ref_logits: reference! }
    : { logits: tensor([LOGITS.length], LOGITS), ref_logits: tensor([REF_LOGITS.length], REF_LOGITS) };
  const found = estimators.flatMap((name) => {
    const { outputs } = evaluate({ operation: enumeration, dialect: null, dtype: 'f64', params: { kl_estimator: name }, inputs });
    if (!outputs) return [];
    const scalar = (output: string) => outputs[output]!.data[0]!;
    return [{ name, mean: scalar('mean_estimate'), bias: scalar('bias'), spread: Math.sqrt(scalar('variance')), kl: scalar('kl') }];
  });
  const kl = found[0]?.kl ?? 0;
  const low = Math.min(0, ...found.map(({ mean, spread }) => mean - spread));
  const high = Math.max(kl, ...found.map(({ mean, spread }) => mean + spread));
  return (
    <Plot
      title={`Mean and spread of each estimator${own ? '' : ' on two example policies'}`}
      description={`The true KL is ${short(kl)} nats. ${found.map(({ name, bias, spread }) => `${name} has bias ${short(bias)} and standard deviation ${short(spread)}`).join('; ')}.`}
      xLabel="nats"
      yLabel=""
      series={[]}
      xDomain={[low - 0.05 * (high - low), high + 0.05 * (high - low)]}
      yDomain={[found.length - 0.4, -0.6]}
      height={40 + 30 * found.length}
      front={({ x, y, height }) => (
        <>
          <line class="series colour-3 dashed" x1={x(kl)} x2={x(kl)} y1={14} y2={height - 34} />
          <text x={x(kl) + 4} y={12}>
            true KL
          </text>
          {found.map(({ name, mean, spread }, index) => (
            <g key={name}>
              <line class="series colour-1" x1={x(mean - spread)} x2={x(mean + spread)} y1={y(index)} y2={y(index)} />
              <circle class="point fill-1" r="4.5" cx={x(mean)} cy={y(index)} />
            </g>
          ))}
        </>
      )}
      rowNames={found.map(({ name }) => name)}
      table={{ head: ['estimator', 'mean', 'bias', 'standard deviation'], rows: found.map(({ name, mean, bias, spread }) => [name, mean, bias, spread]) }}
    />
  );
}
