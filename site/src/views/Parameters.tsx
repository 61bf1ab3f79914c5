// The form of a formula's parameters, written from the catalog.

import { useState } from 'preact/hooks';
import { baseValue, choices, words } from '../catalog/catalog';
import { fromPosition, isLegal, legalText, spanOf, toPosition } from '../catalog/range';
import type { Operation, ParamSpec, Setting } from '../catalog/types';
import { exact } from '../numbers/format';
import { patch, result, setParam, state, valueOf } from '../state/state';
import { NumberBox } from './NumberBox';
import { Prose } from './Prose';
import { Tex } from './Tex';
import { useEffective } from './useEffective';

export function Parameters({ operation }: { operation: Operation }) {
  const { params } = state.value;
  const withEffect = useEffective(operation);
  const isShown = (param: ParamSpec) => withEffect.has(param.name) || param.name in params;
  const shown = operation.params.filter(isShown);
  const idle = operation.params.filter((param) => !isShown(param));

  return (
    <section class="card parameters" aria-labelledby="parameters-heading">
      <h2 id="parameters-heading">Parameters</h2>
      {operation.dialects.length > 0 && <Presets operation={operation} />}
      {operation.params.length === 0 && <p class="quiet">This formula has no parameters.</p>}
      {shown.map((param) => (
        <Parameter key={param.name} operation={operation} param={param} />
      ))}
      {idle.length > 0 && (
        <details class="idle">
          <summary>
            {idle.length} without effect on these numbers
          </summary>
          {idle.map((param) => (
            <Parameter key={param.name} operation={operation} param={param} />
          ))}
        </details>
      )}
    </section>
  );
}

function Presets({ operation }: { operation: Operation }) {
  const names = [null, ...operation.dialects.map((dialect) => dialect.name)];
  const { dialect, params } = state.value;
  const note = operation.dialects.find((candidate) => candidate.name === dialect)?.note;
  const changed = Object.keys(params).length;
  return (
    <fieldset class="presets">
      <legend>Preset</legend>
      <div class="chips">
        {names.map((name) => (
          <label key={name ?? ''} class="chip">
            <input
              type="radio"
              name="preset"
              value={name ?? ''}
              checked={dialect === name}
              onChange={() => patch({ dialect: name, params: {} })}
            />
            <span>{name ?? 'defaults'}</span>
          </label>
        ))}
      </div>
      <p class="note">
        {note ?? 'The operation’s own defaults.'}
        {changed > 0 && ` ${changed} changed by hand.`}
      </p>
    </fieldset>
  );
}

function Parameter({ operation, param }: { operation: Operation; param: ParamSpec }) {
  const value = valueOf(state.value, param.name);
  const base = baseValue(operation, state.value.dialect, param);
  const changed = param.name in state.value.params;
  const { refusal } = result.value;
  const [complaint, setComplaint] = useState<string | null>(null);
  const message = complaint ?? (refusal?.argument === param.name ? refusal.message : null);
  const id = `param-${param.name}`;
  return (
    <div class={`parameter${changed ? ' changed' : ''}${message ? ' wrong' : ''}`} data-param={param.name}>
      <div class="parameter-head">
        <label for={id}>
          {param.symbol !== '' && <Tex>{param.symbol}</Tex>}
          <code>{param.name}</code>
        </label>
        {changed && (
          <button type="button" class="small" onClick={() => setParam(param.name, base)} aria-label={`Set ${param.name} back to ${showSetting(base)}`}>
            back to {showSetting(base)}
          </button>
        )}
      </div>
      <Control id={id} param={param} value={value} onComplaint={setComplaint} />
      <p class="meaning" id={`${id}-meaning`}>
        <Prose>{param.meaning}</Prose>
        {legalText(param) !== '' && <> <span class="legal">({legalText(param)})</span></>}
      </p>
      {message && (
        <p class="complaint" role="alert">
          {message}
        </p>
      )}
    </div>
  );
}

interface ControlProperties {
  id: string;
  param: ParamSpec;
  value: Setting;
  onComplaint: (complaint: string | null) => void;
}

function Control({ id, param, value, onComplaint }: ControlProperties) {
  const described = `${id}-meaning`;
  switch (param.kind) {
    case 'choice':
      return (
        <select id={id} aria-describedby={described} value={String(value)} onChange={(event) => setParam(param.name, event.currentTarget.value)}>
          {choices(param).map((name) => (
            <option key={name} value={name}>
              {words(name)}
            </option>
          ))}
        </select>
      );
    case 'flag':
      return (
        <label class="switch">
          <input id={id} type="checkbox" aria-describedby={described} checked={value === true} onChange={(event) => setParam(param.name, event.currentTarget.checked)} />
          <span>{value === true ? 'yes' : 'no'}</span>
        </label>
      );
    default:
      return <NumberControl id={id} param={param} value={value} onComplaint={onComplaint} />;
  }
}

function NumberControl({ id, param, value, onComplaint }: ControlProperties) {
  const off = value === null;
  const number = typeof value === 'number' ? value : startOf(param);
  const span = spanOf(param, number);
  return (
    <div class={`number-control${off ? ' off' : ''}`}>
      {param.kind === 'optional number' && (
        <input
          type="checkbox"
          class="toggle"
          aria-label={`${param.name} is on`}
          checked={!off}
          onChange={(event) => setParam(param.name, event.currentTarget.checked ? number : null)}
        />
      )}
      <input
        type="range"
        min={0}
        max={1000}
        step="any"
        aria-label={`${param.name}, slider`}
        aria-valuetext={exact(number, 'f64')}
        disabled={off}
        value={toPosition(span, number)}
        style={{ '--fill': `${toPosition(span, number) / 10}%` }}
        onInput={(event) => setParam(param.name, fromPosition(span, Number(event.currentTarget.value)))}
        onKeyDown={(event) => {
          const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
          if (steps === undefined) return;
          event.preventDefault();
          const position = toPosition(span, number);
          const one = span.logarithmic ? 25 : (1000 * span.step) / (span.high - span.low);
          setParam(param.name, fromPosition(span, Math.min(1000, Math.max(0, position + steps * one))));
        }}
      />
      <NumberBox
        id={id}
        label={param.name}
        describedBy={`${id}-meaning`}
        value={off ? '' : exact(number, 'f64')}
        disabled={off}
        check={(candidate) => (isLegal(candidate, param) ? null : `${param.name} is ${exact(candidate, 'f64')}, legal is ${legalText(param)}`)}
        onComplaint={onComplaint}
        onValue={(next) => setParam(param.name, next)}
      />
    </div>
  );
}

/** What an optional number starts at when it is switched on. */
function startOf(param: ParamSpec): number {
  if (typeof param.default === 'number') return param.default;
  return [1, 2, 0.5, -1, 0].find((candidate) => isLegal(candidate, param)) ?? 0;
}

function showSetting(value: Setting): string {
  return value === null ? 'off' : typeof value === 'number' ? exact(value, 'f64') : words(String(value));
}
