// The tables of numbers: inputs to edit, outputs beside them.

import { useState } from 'preact/hooks';
import type { InputSpec, Operation } from '../catalog/types';
import { exampleInput, type Sizes } from '../compute/example';
import { count, position, resized, type Tensor } from '../compute/tensor';
import { bits, exact, parseNumber, short } from '../numbers/format';
import { hex, patch, result, setInput, state, token } from '../state/state';
import { derivedColumns, type Derived } from './derived';
import { dimensionName, shapeOf, tables, type Column, type Table } from './layout';
import { NumberBox } from './NumberBox';
import { openPaste } from './Paste';
import { Prose } from './Prose';
import { Pager } from './Pager';

function ClipboardIcon() {
  return (
    <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true" class="icon">
      <path d="M5.5 3H3.5v11h9V3h-2M5.5 2h5v2.5h-5zM6 8h4M6 11h4" />
    </svg>
  );
}

/** Rows of a table that are shown at once. */
const PAGE = 48;

export function Data({ operation }: { operation: Operation }) {
  const { inputs } = state.value;
  const outputs = result.value.outputs ?? {};
  return (
    <section class="card data" aria-labelledby="data-heading">
      <div class="card-head">
        <h2 id="data-heading">Numbers</h2>
        <label class="switch">
          <input type="checkbox" checked={hex.value} onChange={(event) => (hex.value = event.currentTarget.checked)} />
          <span>bits</span>
        </label>
        <div class="segmented" role="radiogroup" aria-label="Precision">
          {(['f64', 'f32'] as const).map((dtype) => (
            <label key={dtype}>
              <input type="radio" name="dtype" checked={state.value.dtype === dtype} onChange={() => patch({ dtype })} />
              <span>{dtype}</span>
            </label>
          ))}
        </div>
        <button type="button" onClick={() => openPaste(null)}>
          Paste…
        </button>
      </div>
      <Dimensions operation={operation} />
      <OptionalInputs operation={operation} />
      {tables(operation, inputs, outputs).map((table) =>
        table.grid ? (
          <Grid key={table.columns[0]!.name} table={table} />
        ) : (
          <Columns key={table.shape.join()} table={table} operation={operation} />
        ),
      )}
    </section>
  );
}

/** Sizes of the dimensions that the inputs have. */
function sizesOf(operation: Operation): Sizes {
  const sizes: Sizes = {};
  for (const input of operation.inputs) {
    const given = state.value.inputs[input.name];
    if (given) shapeOf(input, given).forEach((name, axis) => (sizes[name] = given.shape[axis]!));
  }
  return sizes;
}

function Dimensions({ operation }: { operation: Operation }) {
  const sizes = sizesOf(operation);
  const resize = (dimension: string, size: number) => {
    const next: Sizes = { ...sizes, [dimension]: size };
    const inputs: Record<string, Tensor> = {};
    for (const input of operation.inputs) {
      const given = state.value.inputs[input.name];
      if (!given) continue;
      const shape = shapeOf(input, given);
      const extent = shape.map((name) => next[name]!);
      inputs[input.name] = shape.includes(dimension)
        ? resized(given, extent, exampleInput(operation, input, shape, next, 1))
        : given;
    }
    patch({ inputs });
  };
  if (Object.keys(sizes).length === 0) return null;
  return (
    <div class="dimensions">
      {Object.entries(sizes).map(([name, size]) => (
        <div key={name} class="dimension">
          <span>
            <b>{name}</b> {dimensionName(name) === name ? '' : `${dimensionName(name)}s`}
          </span>
          <button type="button" class="step" aria-label={`One ${dimensionName(name)} fewer`} disabled={size <= 1} onClick={() => resize(name, size - 1)}>
            −
          </button>
          <NumberBox
            label={`Number of ${dimensionName(name)}s`}
            value={String(size)}
            check={(value) => (Number.isInteger(value) && value >= 1 && value <= 4096 ? null : 'a whole number from 1 to 4096')}
            onValue={(value) => resize(name, value)}
          />
          <button type="button" class="step" aria-label={`One ${dimensionName(name)} more`} onClick={() => resize(name, size + 1)}>
            +
          </button>
        </div>
      ))}
    </div>
  );
}

function OptionalInputs({ operation }: { operation: Operation }) {
  const optional = operation.inputs.filter((input) => input.optional);
  if (optional.length === 0) return null;
  const toggle = (input: InputSpec, on: boolean) => {
    if (!on) return setInput(input.name, null);
    const sizes = sizesOf(operation);
    const shape = input.shapes[0]!;
    setInput(input.name, exampleInput(operation, input, shape, sizes, 1));
  };
  return (
    <fieldset class="optional">
      <legend>Optional inputs</legend>
      <div class="chips">
        {optional.map((input) => (
          <label key={input.name} class="chip" title={input.meaning}>
            <input
              type="checkbox"
              checked={input.name in state.value.inputs}
              onChange={(event) => toggle(input, event.currentTarget.checked)}
            />
            <span>{input.name}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function edit(column: Column, index: number, value: number): void {
  const given = state.value.inputs[column.name];
  if (!given) return;
  const data = given.data.slice();
  data[index] = value;
  setInput(column.name, { shape: given.shape, data }, `cell/${column.name}/${index}`);
}

/** Numbers copied from a spreadsheet go into the cells from the one they are pasted in. */
function pasteCells(event: ClipboardEvent, columns: Column[], at: number, index: number): void {
  const text = event.clipboardData?.getData('text/plain') ?? '';
  const rows = text.replace(/\r/g, '').replace(/\n$/, '').split('\n').map((line) => line.split('\t'));
  if (rows.length < 2 && rows[0]!.length < 2) return;
  event.preventDefault();
  const inputs = { ...state.value.inputs };
  rows.forEach((cells, down) =>
    cells.forEach((cell, right) => {
      const column = columns[at + right];
      const number = parseNumber(cell);
      if (!column?.input || number === null) return;
      const given = inputs[column.name]!;
      if (index + down >= given.data.length) return;
      const data = given === state.value.inputs[column.name] ? given.data.slice() : given.data;
      data[index + down] = number;
      inputs[column.name] = { shape: given.shape, data };
    }),
  );
  patch({ inputs });
}

/** Arrow keys go from cell to cell, as in a spreadsheet. */
function moveBetweenCells(event: KeyboardEvent): void {
  const rows = { ArrowDown: 1, Enter: 1, ArrowUp: -1 }[event.key];
  if (rows === undefined) return;
  const cell = (event.currentTarget as HTMLElement).closest('td');
  const row = cell?.parentElement as HTMLTableRowElement | null;
  const table = row?.closest('table');
  if (!cell || !row || !table) return;
  let next = table.rows[row.rowIndex + rows];
  while (next && !next.cells[cell.cellIndex]?.querySelector('input')) next = table.rows[next.rowIndex + rows];
  const box = next?.cells[cell.cellIndex]?.querySelector('input');
  if (!box) return;
  event.preventDefault();
  box.focus();
  if (box.type === 'text') box.select();
}

interface CellProperties {
  column: Column;
  columns: Column[];
  at: number;
  index: number;
  where: string;
  idle: boolean;
}

function Cell({ column, columns, at, index, where, idle }: CellProperties) {
  const { dtype } = state.value;
  const value = column.tensor.data[index]!;
  const { refusal } = result.value;
  const wrong = column.input !== null && refusal?.argument === column.name && refusal.index === index;
  if (column.input === null) {
    return (
      <td class={`out${idle ? ' absent' : ''}`} data-output={`${column.name}/${index}`} data-bits={bits(value, dtype)}>
        {hex.value ? bits(value, dtype) : <span title={exact(value, dtype)}>{short(value)}</span>}
      </td>
    );
  }
  const label = `${column.name}, ${where}`;
  const properties = { onKeyDown: moveBetweenCells, onFocus: () => (token.value = index) };
  if ((column.input.domain === 'mask' || column.input.domain === 'done') && (value === 0 || value === 1)) {
    return (
      <td class={wrong ? 'in wrong' : 'in'} data-cell={`${column.name}/${index}`} data-shape={column.tensor.shape.join()}>
        <input
          type="checkbox"
          aria-label={label}
          checked={value === 1}
          onChange={(event) => edit(column, index, event.currentTarget.checked ? 1 : 0)}
          {...properties}
        />
      </td>
    );
  }
  return (
    <td class={wrong ? 'in wrong' : idle ? 'in absent' : 'in'} data-cell={`${column.name}/${index}`} data-shape={column.tensor.shape.join()}>
      <NumberBox
        class="cell"
        label={label}
        invalid={wrong}
        describedBy={wrong ? 'refusal' : undefined}
        value={exact(value, dtype === 'f32' && Math.fround(value) === value ? 'f32' : 'f64')}
        onValue={(next) => edit(column, index, next)}
        onPaste={(event) => pasteCells(event, columns, at, index)}
        {...properties}
      />
      {hex.value && <span class="bits">{bits(value, dtype)}</span>}
    </td>
  );
}

function Head({ column }: { column: Column }) {
  return (
    <th scope="col" class={column.input ? 'in' : 'out'} title={column.meaning}>
      {column.name}
      {column.input && (
        <button type="button" class="small" aria-label={`Paste ${column.name}`} onClick={() => openPaste(column.name)}>
          <ClipboardIcon />
        </button>
      )}
    </th>
  );
}

function Columns({ table, operation }: { table: Table; operation: Operation }) {
  const [first, setFirst] = useState(0);
  const rows = count(table.sizes);
  const from = Math.min(first, Math.max(0, rows - 1));
  const isTokens = table.shape.length === 2;
  const derived: Derived[] = isTokens ? derivedColumns(operation, state.value, result.value.outputs) : [];
  const mask = state.value.inputs.mask;
  const maskOf = (index: number): boolean => {
    if (!mask) return true;
    return mask.data.length === rows ? mask.data[index] !== 0 : true;
  };
  const shown = Array.from({ length: Math.min(PAGE, rows - from) }, (_, offset) => from + offset);
  const inputs = table.columns.filter((column) => column.input);
  const outputs = table.columns.filter((column) => !column.input);
  const all = [...inputs, ...outputs];
  return (
    <div class="table-frame">
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${table.shape.map(dimensionName).join(' × ') || 'scalar'} table`}>
        <table class="numbers">
          <caption class="visually-hidden">
            {all.map((column) => column.name).join(', ')} for each {table.shape.map(dimensionName).join(' and ') || 'scalar'}
          </caption>
          <thead>
            <tr>
              {table.shape.map((name) => (
                <th key={name} scope="col" class="place">
                  {dimensionName(name)}
                </th>
              ))}
              {inputs.map((column) => (
                <Head key={column.name} column={column} />
              ))}
              {derived.map((column) => (
                <th key={column.name} scope="col" class="out derived" title={column.meaning}>
                  {column.name}
                </th>
              ))}
              {outputs.map((column) => (
                <Head key={column.name} column={column} />
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((index) => {
              const place = position(table.sizes, index);
              const where = place.map((at, axis) => `${dimensionName(table.shape[axis]!)} ${at}`).join(', ');
              const kept = !isTokens || maskOf(index);
              const begins = isTokens && place[1] === 0;
              const classes = [kept ? '' : 'masked', begins ? 'begins' : '', isTokens && index === token.value ? 'current' : ''];
              return (
                <tr key={index} class={classes.filter(Boolean).join(' ')} onClick={() => isTokens && (token.value = index)}>
                  {place.map((at, axis) => (
                    <th key={axis} scope="row" class="place">
                      {at}
                    </th>
                  ))}
                  {inputs.map((column, at) => (
                    <Cell key={column.name} column={column} columns={inputs} at={at} index={index} where={where} idle={!kept} />
                  ))}
                  {derived.map((column) => (
                    <td key={column.name} class={`out derived${kept ? '' : ' absent'}`}>
                      {kept ? column.text(index, hex.value) : ''}
                    </td>
                  ))}
                  {outputs.map((column) => (
                    <Cell key={column.name} column={column} columns={[]} at={0} index={index} where={where} idle={!kept} />
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {rows > PAGE && (
        <Pager from={from} rows={rows} page={PAGE} onFirst={setFirst}>
          {from + 1} to {from + shown.length} of {rows}
        </Pager>
      )}
    </div>
  );
}

/** Columns of a grid that are shown at once. */
const ACROSS = 24;

function Grid({ table }: { table: Table }) {
  const column = table.columns[0]!;
  const across = table.sizes.at(-1)!;
  const rows = count(table.sizes) / Math.max(1, across);
  const [first, setFirst] = useState(0);
  const from = Math.min(first, Math.max(0, rows - 1));
  const shown = Array.from({ length: Math.min(PAGE, rows - from) }, (_, offset) => from + offset);
  const columns = Array.from({ length: Math.min(across, ACROSS) }, (_, at) => at);
  const leading = table.shape.slice(0, -1);
  const last = table.shape.at(-1)!;
  return (
    <div class="table-frame">
      <h3 class="grid-title">
        <code>{column.name}</code>
        <span class="quiet">
          <Prose>{column.meaning}</Prose>
        </span>
        {column.input && (
          <button type="button" class="small" aria-label={`Paste ${column.name}`} onClick={() => openPaste(column.name)}>
            <ClipboardIcon />
          </button>
        )}
      </h3>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`${column.name} table`}>
        <table class="numbers">
          <thead>
            <tr>
              {leading.map((name, axis) => (
                <th key={axis} scope="col" class="place">
                  {dimensionName(name)}
                </th>
              ))}
              {columns.map((at) => (
                <th key={at} scope="col">
                  {at === 0 ? `${dimensionName(last)} 0` : at}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => {
              const place = position(table.sizes.slice(0, -1), row);
              return (
                <tr key={row}>
                  {place.map((at, axis) => (
                    <th key={axis} scope="row" class="place">
                      {at}
                    </th>
                  ))}
                  {columns.map((at) => {
                    const where = `${place.map((here, axis) => `${dimensionName(leading[axis]!)} ${here}`).join(', ')}, ${dimensionName(last)} ${at}`;
                    return <Cell key={at} column={column} columns={[column]} at={0} index={row * across + at} where={where} idle={false} />;
                  })}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {(rows > PAGE || across > ACROSS) && (
        <Pager from={from} rows={rows} page={PAGE} onFirst={setFirst}>
          rows {from + 1} to {from + shown.length} of {rows}
          {across > ACROSS ? `, the first ${ACROSS} of ${across} columns` : ''}
        </Pager>
      )}
    </div>
  );
}

/** Bring the cell that a refusal names into view. */
export function goToCell(argument: string, index: number | null): void {
  const cell = document.querySelector(`[data-cell="${argument}/${index ?? 0}"] input, #param-${CSS.escape(argument)}`);
  if (cell instanceof HTMLElement) {
    cell.scrollIntoView({ block: 'center' });
    cell.focus();
  }
}

