// How much each token counts under each way of averaging: what a mode does to long and to short responses.

import { choices, findOperation, hasInput, hasParam } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { evaluate } from '../compute/evaluate';
import { tensor } from '../compute/tensor';
import { short } from '../numbers/format';
import { settled, valueOf } from '../state/state';
import { Alternative } from './Plot';

export const NAMED = {
  operations: ['reduce.aggregate'],
  inputs: ['mask', 'token_loss', 'group'],
  params: ['aggregation', 'empty_row', 'length_eps', 'length_normaliser', 'token_count', 'sequence_count', 'world_size', 'loss_scale'],
  outputs: ['d_token_loss'],
};

/** Rows and columns beyond which the squares would be too small to see. */
const MOST = [12, 24] as const;

export function hasAggregation(operation: Operation): boolean {
  return hasParam(operation, 'aggregation') && hasInput(operation, 'mask');
}

export function AggregationPlot({ operation }: { operation: Operation }) {
  const reduce = findOperation('reduce.aggregate');
  const first = Object.values(settled.value.state.inputs).find((input) => input.shape.length === 2);
  if (!reduce || !first) return null;
  const [rows, columns] = [first.shape[0]!, first.shape[1]!];
  const { mask, group } = settled.value.state.inputs;
  const used = valueOf(settled.value.state, 'aggregation');
  const shared = Object.fromEntries(
    reduce.params.filter((param) => param.name !== 'aggregation' && hasParam(operation, param.name)).map((param) => [param.name, valueOf(settled.value.state, param.name)]),
  );
  const modes = choices(reduce.params.find((param) => param.name === 'aggregation')!);
  const weights = modes.map((mode) => {
    const { outputs } = evaluate({
      operation: reduce,
      dialect: null,
      dtype: 'f64',
      params: { ...shared, aggregation: mode },
      inputs: {
        token_loss: tensor([rows, columns], new Array(rows * columns).fill(0)),
        ...(mask ? { mask } : {}),
        // Where no prompts are given, every two responses share one.
        group: group ?? tensor([rows], Array.from({ length: rows }, (_, row) => Math.floor(row / 2))),
      },
      outputs: ['d_token_loss'],
    });
    return outputs?.d_token_loss?.data ?? null;
  });
  const shown = [Math.min(rows, MOST[0]), Math.min(columns, MOST[1])] as const;
  const lengths = Array.from({ length: rows }, (_, row) => (mask ? mask.data.slice(row * columns, (row + 1) * columns).reduce((sum, value) => sum + Number(value !== 0), 0) : columns));
  const ofRow = (data: Float64Array, row: number) => data.slice(row * columns, (row + 1) * columns).reduce((sum, value) => sum + value, 0);
  const title = 'Weight of each token under each aggregation';
  const description =
    `Responses of ${lengths.slice(0, shown[0]).join(', ')} tokens. ` +
    modes.map((mode, index) => (weights[index] ? `${mode}: a token of the responses weighs ${perToken(weights[index]!, lengths, columns)}` : `${mode}: not defined here`)).join('; ') + '.';
  return (
    <figure class="plot wide">
      <figcaption>{title}</figcaption>
      <div class="heat" role="img" aria-label={`${title}. ${description}`}>
        {modes.map((mode, index) => {
          const data = weights[index];
          const most = data ? Math.max(...data.map(Math.abs), 0) : 0;
          const cell = Math.min(18, Math.floor(168 / shown[1]));
          return (
            <div key={mode} class={`heat-mode${mode === used ? ' used' : ''}`}>
              <div class="heat-name">{mode}</div>
              {data ? (
                <svg width={shown[1] * cell + 56} height={shown[0] * cell} aria-hidden="true">
                  {Array.from({ length: shown[0] * shown[1] }, (_, at) => {
                    const [row, column] = [Math.floor(at / shown[1]), at % shown[1]];
                    const value = data[row * columns + column]!;
                    return (
                      <rect
                        key={at}
                        class={value === 0 ? 'heat-cell absent' : 'heat-cell'}
                        x={column * cell}
                        y={row * cell}
                        width={cell - 1}
                        height={cell - 1}
                        style={value === 0 ? undefined : { fillOpacity: 0.15 + (0.85 * Math.abs(value)) / most }}
                      />
                    );
                  })}
                  {Array.from({ length: shown[0] }, (_, row) => (
                    <text key={row} x={shown[1] * cell + 4} y={row * cell + cell - 5}>
                      {short(Number(ofRow(data, row).toPrecision(3)))}
                    </text>
                  ))}
                </svg>
              ) : (
                <p class="quiet">not defined on these numbers</p>
              )}
            </div>
          );
        })}
      </div>
      <p class="quiet small-print">Each row is a response; a stronger colour weighs more within its mode. Beside it stands the weight of the whole response.</p>
      <Alternative
        title={title}
        description={description}
        table={{
          head: ['response', 'tokens', ...modes],
          rows: lengths.map((length, row) => [row, length, ...weights.map((data) => (data ? ofRow(data, row) : 'not defined'))]),
        }}
      />
    </figure>
  );
}

function perToken(data: Float64Array, lengths: number[], columns: number): string {
  return lengths.slice(0, MOST[0]).map((_, row) => short(Math.max(...data.slice(row * columns, (row + 1) * columns)))).join(', ');
}
