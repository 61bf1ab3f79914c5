// Any formula: an output against any number of its form.

import { useState } from 'preact/hooks';
import { isLegal, spanOf } from '../catalog/range';
import type { Operation } from '../catalog/types';
import { costOf, evaluate } from '../compute/evaluate';
import { position } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled, token, valueOf } from '../state/state';
import { dimensionName, shapeOf } from '../views/layout';
import { Plot, type Series } from './Plot';
import { linspace } from './sample';

const POINTS = 81;
/** A curve that takes longer than this (ms) is drawn when it is asked for. */
const MOST_TIME = 250;
/** Domains whose numbers can be moved continuously. */
const WHOLE = new Set(['mask', 'done', 'group', 'index', 'count']);

export function ResponsePlot({ operation }: { operation: Operation }) {
  const params = operation.params.filter((param) => (param.kind === 'number' || param.kind === 'optional number') && typeof valueOf(settled.value.state, param.name) === 'number');
  const inputs = operation.inputs.filter((input) => !WHOLE.has(input.domain) && settled.value.state.inputs[input.name]);
  const axes = [...inputs.map((input) => `input ${input.name}`), ...params.map((param) => `param ${param.name}`)];
  const [chosenAxis, setAxis] = useState<string | null>(null);
  const [chosenOutput, setOutput] = useState<string | null>(null);
  const { outputs } = settled.value.result;
  const axis = axes.includes(chosenAxis ?? '') ? chosenAxis! : axes[0];
  const available = operation.outputs.filter((output) => outputs?.[output.name]);
  const output = available.find((candidate) => candidate.name === chosenOutput) ?? available[0];
  const [asked, setAsked] = useState<unknown>(null);
  if (!axis || !output || !outputs) return null;

  const [kind, name] = axis.split(' ') as ['input' | 'param', string];
  const param = operation.params.find((candidate) => candidate.name === name);
  const input = operation.inputs.find((candidate) => candidate.name === name);
  const given = settled.value.state.inputs[name];
  const place = kind === 'input' ? Math.min(token.value, given!.data.length - 1) : 0;
  const now = kind === 'param' ? (valueOf(settled.value.state, name) as number) : given!.data[place]!;
  const span = kind === 'param' ? spanOf(param!, now) : { low: now - 2, high: now + 2 };
  const at = linspace(span.low, span.high, POINTS).filter((x) => kind === 'input' || isLegal(x, param!));
  const shown = outputs[output.name]!;
  const element = shown.data.length === 1 ? 0 : Math.min(kind === 'input' && shown.data.length === given!.data.length ? place : token.value, shown.data.length - 1);
  const gradientName = kind === 'input' && output === operation.outputs[0] ? operation.outputs.find((candidate) => candidate.gradient_of === name)?.name : undefined;
  const wanted = [output.name, ...(gradientName && outputs[gradientName] ? [gradientName] : [])];

  const slow = costOf(operation) * POINTS > MOST_TIME;
  if (slow && asked !== settled.value.state) {
    return (
      <div class="response">
        <p class="quiet">A curve over one number takes {POINTS} evaluations, which is slow here.</p>
        <button type="button" onClick={() => setAsked(settled.value.state)}>
          Draw the curve
        </button>
      </div>
    );
  }
  const { dialect, params: settings, inputs: all } = settled.value.state;
  const values = at.map((x) => {
    const moved = kind === 'input' ? { ...all, [name]: { shape: given!.shape, data: given!.data.with(place, x) } } : all;
    const changed = kind === 'param' ? { ...settings, [name]: x } : settings;
    return evaluate({ operation, dialect, dtype: 'f64', params: changed, inputs: moved, outputs: wanted }).outputs;
  });
  const series: Series[] = [
    { name: output.name, colour: 1, points: at.map((x, index): [number, number] => [x, values[index]?.[output.name]?.data[element] ?? NaN]) },
  ];
  if (wanted.length > 1) {
    series.push({ name: wanted[1]!, colour: 2, dashed: true, points: at.map((x, index): [number, number] => [x, values[index]?.[wanted[1]!]?.data[place] ?? NaN]) });
  }
  const finite = series[0]!.points.filter(([, y]) => Number.isFinite(y));
  if (finite.length < 2) return null;
  const where = (shape: string[], sizes: number[], index: number) =>
    shape.length === 0 ? '' : ` at ${position(sizes, index).map((here, at) => `${dimensionName(shape[at]!)} ${here}`).join(', ')}`;
  const xName = kind === 'param' ? name : `${name}${where(shapeOf(input!, given!), given!.shape, place)}`;
  const yName = `${output.name}${where(output.shape, shown.shape, element)}`;
  const title = `${yName} against ${xName}`;
  return (
    <div class="response">
      <div class="axis-choice">
        <label>
          Across{' '}
          <select aria-label="Horizontal axis" value={axis} onChange={(event) => setAxis(event.currentTarget.value)}>
            {axes.map((candidate) => (
              <option key={candidate} value={candidate}>
                {candidate.split(' ')[1]}
              </option>
            ))}
          </select>
        </label>
        <label>
          up{' '}
          <select aria-label="Vertical axis" value={output.name} onChange={(event) => setOutput(event.currentTarget.value)}>
            {available.map((candidate) => (
              <option key={candidate.name} value={candidate.name}>
                {candidate.name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Plot
        title={title}
        description={`${yName} goes from ${short(finite[0]![1])} at ${short(finite[0]![0])} to ${short(finite.at(-1)![1])} at ${short(finite.at(-1)![0])}; now it is ${short(shown.data[element]!)} at ${short(now)}.`}
        xLabel={kind === 'param' ? name : name}
        yLabel={output.name}
        series={series}
        front={({ x, y }) => (Number.isFinite(shown.data[element]!) ? <circle class="point fill-1" r="5" cx={x(now)} cy={y(shown.data[element]!)} /> : null)}
      />
    </div>
  );
}
