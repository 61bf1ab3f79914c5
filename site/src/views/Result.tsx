// What comes out: the scalars at once, the first of them large; or why there is nothing.

import type { Operation } from '../catalog/types';
import { bits, exact, short } from '../numbers/format';
import { hex, result, state } from '../state/state';
import { goToCell } from './Data';
import { SameBits } from './SameBits';

export function ResultCard({ operation }: { operation: Operation }) {
  const { outputs, refusal } = result.value;
  const { dtype } = state.value;
  if (refusal) {
    const { argument, index } = refusal;
    return (
      <section class="card result refused" aria-labelledby="result-heading">
        <h2 id="result-heading">Result</h2>
        <p id="refusal" class="refusal" role="alert">
          {refusal.message}
        </p>
        {argument !== null && (
          <button type="button" onClick={() => goToCell(argument, index)}>
            Go to {argument}
          </button>
        )}
      </section>
    );
  }
  const scalars = operation.outputs.filter((output) => outputs![output.name]?.shape.length === 0);
  const first = operation.outputs[0]!;
  const lead = scalars.find((output) => output.name === first.name) ?? null;
  const others = scalars.filter((output) => output !== lead);
  const arrays = operation.outputs.filter((output) => (outputs![output.name]?.shape.length ?? 0) > 0);
  return (
    <section class="card result" aria-labelledby="result-heading">
      <h2 id="result-heading">Result</h2>
      {lead && (
        <div class="lead" data-output={`${lead.name}/0`} data-bits={bits(outputs![lead.name]!.data[0]!, dtype)}>
          <span class="lead-name">{lead.name}</span>
          <output class="lead-value" aria-live="off">
            {exact(outputs![lead.name]!.data[0]!, dtype)}
          </output>
          {hex.value && <span class="bits">{bits(outputs![lead.name]!.data[0]!, dtype)}</span>}
          <span class="meaning">{lead.meaning}</span>
        </div>
      )}
      {!lead && arrays.length > 0 && (
        <dl class="scalars">
          {arrays.slice(0, 3).map((output) => {
            const { data, shape } = outputs![output.name]!;
            return (
              <div key={output.name} title={output.meaning}>
                <dt>{output.name}</dt>
                <dd>
                  {data.length === 0 ? 'empty' : `${short(least(data))} … ${short(most(data))}`} <span class="quiet">[{shape.join(' × ')}]</span>
                </dd>
              </div>
            );
          })}
        </dl>
      )}
      {others.length > 0 && (
        <dl class="scalars">
          {others.map((output) => {
            const value = outputs![output.name]!.data[0]!;
            return (
              <div key={output.name} title={output.meaning} data-output={`${output.name}/0`} data-bits={bits(value, dtype)}>
                <dt>{output.name}</dt>
                <dd title={exact(value, dtype)}>{hex.value ? bits(value, dtype) : short(value)}</dd>
              </div>
            );
          })}
        </dl>
      )}
      <SameBits operation={operation} />
    </section>
  );
}

function least(data: Float64Array): number {
  return data.reduce((low, value) => Math.min(low, value), Infinity);
}

function most(data: Float64Array): number {
  return data.reduce((high, value) => Math.max(high, value), -Infinity);
}
