// Two formulas on the same numbers, with what differs marked.

import { families, findOperation, words } from '../catalog/catalog';
import type { Operation, Setting } from '../catalog/types';
import { bits, exact, short } from '../numbers/format';
import { comparedResult, patch, result, state, valueOf, type Setup } from '../state/state';
import { Tex } from './Tex';

const SEPARATOR = '|';

export function Compare({ operation }: { operation: Operation }) {
  const { compare } = state.value;
  return (
    <section class="card compare" aria-labelledby="compare-heading">
      <div class="card-head">
        <h2 id="compare-heading">Side by side</h2>
        <label class="field">
          <span class="quiet">beside</span>{' '}
          <Choice operation={operation} chosen={compare} />
        </label>
        {compare && (
          <>
            <button type="button" onClick={swap}>
              Swap
            </button>
            <button type="button" onClick={() => patch({ compare: null })}>
              Close
            </button>
          </>
        )}
      </div>
      {compare ? <Differences operation={operation} compare={compare} /> : <p class="quiet">Choose another formula, or another preset of this one, to see both on the same numbers.</p>}
    </section>
  );
}

function Choice({ operation, chosen }: { operation: Operation; chosen: Setup | null }) {
  const key = (id: string, dialect: string | null) => `${id}${SEPARATOR}${dialect ?? ''}`;
  const presets = [null, ...operation.dialects.map((dialect) => dialect.name)];
  const choose = (value: string) => {
    if (value === '') return patch({ compare: null });
    const [id, dialect] = value.split(SEPARATOR) as [string, string];
    patch({ compare: { operation: id, dialect: dialect === '' ? null : dialect, params: {} } });
  };
  return (
    <select aria-label="Formula to compare with" value={chosen ? key(chosen.operation, chosen.dialect) : ''} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">nothing</option>
      <optgroup label={`${operation.title}, other preset`}>
        {presets.map((name) => (
          <option key={name} value={key(operation.id, name)}>
            {name ?? 'defaults'}
          </option>
        ))}
      </optgroup>
      {families().map(([family, operations]) => (
        <optgroup key={family} label={words(family)}>
          {operations
            .filter((other) => other.id !== operation.id)
            .flatMap((other) => [null, ...other.dialects.map((dialect) => dialect.name)].map((name) => ({ other, name })))
            .filter(({ name, other }) => name === null || other.family === operation.family)
            .map(({ other, name }) => (
              <option key={key(other.id, name)} value={key(other.id, name)}>
                {other.title}
                {name ? `, ${name}` : ''}
              </option>
            ))}
        </optgroup>
      ))}
    </select>
  );
}

function swap(): void {
  const { compare, operation, dialect, params } = state.value;
  if (compare) patch({ operation: compare.operation, dialect: compare.dialect, params: compare.params, compare: { operation, dialect, params } });
}

function titleOf(setup: Setup): string {
  const title = findOperation(setup.operation)?.title ?? setup.operation;
  const changed = Object.keys(setup.params).length > 0 ? ', changed' : '';
  return `${title}, ${setup.dialect ?? 'defaults'}${changed}`;
}

/** The parameters in which two setups differ; what only one of them has counts as a difference where it is not off. */
export function differingParams(left: Setup, right: Setup): { name: string; left: string; right: string }[] {
  const described = (setup: Setup) => findOperation(setup.operation)?.params.map((param) => param.name) ?? [];
  const names = [...new Set([...described(left), ...described(right)])];
  const text = (setup: Setup, name: string) => (described(setup).includes(name) ? show(valueOf(setup, name)) : 'has none');
  return names.map((name) => ({ name, left: text(left, name), right: text(right, name) })).filter((row) => row.left !== row.right);
}

function show(value: Setting): string {
  return value === null ? 'off' : typeof value === 'number' ? exact(value, 'f64') : words(String(value));
}

function Differences({ operation, compare }: { operation: Operation; compare: Setup }) {
  const other = findOperation(compare.operation)!;
  const left = result.value;
  const right = comparedResult.value!;
  const params = differingParams(state.value, compare);
  const sameFormula = operation.formula === other.formula;
  const common = operation.outputs.filter((output) => left.outputs?.[output.name] && right.outputs?.[output.name]);
  const scalars = common.filter((output) => left.outputs![output.name]!.data.length === 1 && right.outputs![output.name]!.data.length === 1);
  const arrays = common.filter((output) => !scalars.includes(output) && left.outputs![output.name]!.data.length === right.outputs![output.name]!.data.length);
  const { dtype } = state.value;
  return (
    <>
      {sameFormula ? (
        <p class="quiet">The same formula with other parameters.</p>
      ) : (
        <div class="two">
          {[operation, other].map((one) => (
            <div key={one.id}>
              <h3>{one.title}</h3>
              <Tex display>{one.formula}</Tex>
            </div>
          ))}
        </div>
      )}
      {right.refusal && (
        <p class="refusal" role="alert">
          {other.title}: {right.refusal.message}
        </p>
      )}
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Differences">
        <table class="numbers side">
          <thead>
            <tr>
              <th scope="col" class="name">
                parameters
              </th>
              <th scope="col">{titleOf(state.value)}</th>
              <th scope="col">{titleOf(compare)}</th>
              <th scope="col">difference</th>
            </tr>
          </thead>
          <tbody>
            {params.length === 0 && (
              <tr>
                <td colSpan={4} class="name">
                  no parameter differs
                </td>
              </tr>
            )}
            {params.map((row) => (
              <tr key={row.name} class="differs" data-differs={row.name}>
                <th scope="row" class="name">
                  {row.name}
                </th>
                <td>{row.left}</td>
                <td>{row.right}</td>
                <td />
              </tr>
            ))}
            {scalars.map((output) => {
              const [here, there] = [left.outputs![output.name]!.data[0]!, right.outputs![output.name]!.data[0]!];
              const equal = bits(here, dtype) === bits(there, dtype);
              return (
                <tr key={output.name} class={equal ? '' : 'differs'} data-differs={equal ? undefined : output.name}>
                  <th scope="row" class="name">
                    {output.name}
                  </th>
                  <td>{short(here)}</td>
                  <td>{short(there)}</td>
                  <td>{equal ? 'the same bits' : relative(here, there)}</td>
                </tr>
              );
            })}
            {arrays.map((output) => {
              const [here, there] = [left.outputs![output.name]!.data, right.outputs![output.name]!.data];
              const apart = Array.from(here, (value, index) => (bits(value, dtype) === bits(there[index]!, dtype) ? -1 : index)).filter((index) => index >= 0);
              const worst = apart.reduce((best, index) => (Math.abs(here[index]! - there[index]!) > Math.abs(here[best]! - there[best]!) ? index : best), apart[0] ?? 0);
              return (
                <tr key={output.name} class={apart.length === 0 ? '' : 'differs'} data-differs={apart.length === 0 ? undefined : output.name}>
                  <th scope="row" class="name">
                    {output.name}
                  </th>
                  {apart.length === 0 ? (
                    <td colSpan={2}>all {here.length}</td>
                  ) : (
                    <>
                      <td>
                        {short(here[worst]!)} <span class="quiet">[{worst}]</span>
                      </td>
                      <td>{short(there[worst]!)}</td>
                    </>
                  )}
                  <td>{apart.length === 0 ? 'the same bits' : `${apart.length} of ${here.length}; worst ${relative(here[worst]!, there[worst]!)}`}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </>
  );
}

function relative(here: number, there: number): string {
  const difference = there - here;
  const scale = Math.max(Math.abs(here), Math.abs(there));
  return `${difference > 0 ? '+' : ''}${short(difference)}${scale > 0 && Number.isFinite(difference) ? ` (${((100 * Math.abs(difference)) / scale).toPrecision(3)} %)` : ''}`;
}
