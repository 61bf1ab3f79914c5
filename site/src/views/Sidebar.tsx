// Pick a formula: by words, or through the families.

import { useSignal } from '@preact/signals';
import { families, search, words } from '../catalog/catalog';
import type { Operation } from '../catalog/types';
import { open, page, state } from '../state/state';

export function Sidebar({ onPick }: { onPick: () => void }) {
  const text = useSignal('');
  const found = text.value.trim() === '' ? null : search(text.value);
  const pick = (operation: Operation) => {
    open(operation);
    onPick();
  };
  const current = page.value === 'formula' ? state.value.operation : '';
  return (
    <nav class="sidebar" id="formulas" aria-label="Formulas">
      <div class="search">
        <label class="visually-hidden" for="search">
          Search formulas
        </label>
        <input
          id="search"
          type="search"
          placeholder="Search"
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && found?.[0]) {
              event.preventDefault();
              pick(found[0]);
            }
          }}
        />
        <kbd aria-hidden="true">/</kbd>
      </div>
      <div class="list">
        {found ? (
          <>
            <p class="quiet" role="status">
              {found.length === 0 ? 'Nothing found' : `${found.length} found`}
            </p>
            <List operations={found.slice(0, 60)} current={current} onPick={pick} />
          </>
        ) : (
          families().map(([family, operations]) => (
            <details key={family} open={operations.some((operation) => operation.id === current) || family === 'objective'}>
              <summary>
                {words(family)} <span class="quiet">{operations.length}</span>
              </summary>
              <List operations={operations} current={current} onPick={pick} />
            </details>
          ))
        )}
      </div>
    </nav>
  );
}

interface ListProperties {
  operations: Operation[];
  current: string;
  onPick: (operation: Operation) => void;
}

function List({ operations, current, onPick }: ListProperties) {
  return (
    <ul>
      {operations.map((operation) => (
        <li key={operation.id}>
          <a
            href={`#${operation.id}`}
            aria-current={operation.id === current ? 'page' : undefined}
            title={operation.summary}
            onClick={(event) => {
              if (event.metaKey || event.ctrlKey || event.shiftKey) return;
              event.preventDefault();
              onPick(operation);
            }}
          >
            {operation.title}
          </a>
        </li>
      ))}
    </ul>
  );
}
