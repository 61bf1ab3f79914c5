// The page: formulas on the left, the chosen view beside them.

import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { canRedo, canUndo, change, fresh, operation, page, redo, state, undo, type Page } from './state/state';
import { example } from './compute/example';
import { notice } from './views/notice';
import { Copy, openCopy } from './views/Copy';
import { FormulaPage } from './views/FormulaPage';
import { Later } from './views/Later';
import { AlgorithmMap } from './views/Map';
import { Paste } from './views/Paste';
import { Share } from './views/Share';
import { Sidebar } from './views/Sidebar';
import { setTheme, theme, type Theme } from './views/theme';

const PAGES: [Page, string][] = [
  ['formula', 'Formula'],
  ['map', 'Algorithm map'],
  ['identify', 'Identify'],
];

const loadIdentify = () => import('./views/Identify').then(({ Identify }) => Identify);

export function App() {
  const drawer = useSignal(false);

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.closest('input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select, dialog');
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === 'z' && !(event.target as HTMLElement).closest('textarea, dialog, [type=search]')) {
        event.preventDefault();
        if (event.shiftKey) redo();
        else undo();
      } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'y' && !typing) {
        event.preventDefault();
        redo();
      } else if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        drawer.value = true;
        document.getElementById('search')?.focus();
      } else if (event.key === 'Escape' && drawer.value) {
        drawer.value = false;
      }
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);

  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>
        To the formula
      </a>
      <header class="bar">
        <button type="button" class="drawer-button" aria-expanded={drawer.value} aria-controls="formulas" onClick={() => (drawer.value = !drawer.value)}>
          Formulas
        </button>
        <span class="brand">
          <svg viewBox="0 0 20 32" width="13" height="21" aria-hidden="true">
            <path d="M10 1v15" />
            <path d="M4.5 15h11L10 30z" class="bob" />
          </svg>
          Plumbline
        </span>
        <nav class="pages" aria-label="Views">
          {PAGES.map(([name, title]) => (
            <button key={name} type="button" aria-pressed={page.value === name} onClick={() => (page.value = name)}>
              {title}
            </button>
          ))}
        </nav>
        <span class="spacer" />
        <Actions />
      </header>
      <div class={`layout${drawer.value ? ' drawer-open' : ''}`}>
        <Sidebar onPick={() => (drawer.value = false)} />
        <main id="main" tabIndex={-1}>
          {notice.value && (
            <p class="notice" role="alert">
              {notice.value}{' '}
              <button type="button" class="small" onClick={() => (notice.value = null)}>
                dismiss
              </button>
            </p>
          )}
          {page.value === 'map' && <AlgorithmMap />}
          {page.value === 'identify' && <Later load={loadIdentify} />}
          {page.value === 'formula' && <FormulaPage operation={operation.value} />}
        </main>
      </div>
      <Paste />
      <Copy />
    </>
  );
}

function Actions() {
  const seed = useSignal(0);
  return (
    <div class="actions" role="toolbar" aria-label="State">
      <button type="button" disabled={!canUndo.value} onClick={undo} title="Undo (Ctrl+Z)">
        Undo
      </button>
      <button type="button" disabled={!canRedo.value} onClick={redo} title="Redo (Ctrl+Shift+Z)">
        Redo
      </button>
      <button type="button" onClick={() => change(fresh(operation.value))} title="Back to the example and the defaults">
        Reset
      </button>
      <button
        type="button"
        onClick={() => {
          seed.value += 1;
          const { dialect, params } = state.value;
          change({ ...state.value, inputs: example(operation.value, dialect, params, seed.value) });
        }}
        title="Other numbers"
      >
        Random example
      </button>
      <button type="button" onClick={openCopy} title="Python, Rust, a JSON vector, a trainer’s settings">
        Copy as…
      </button>
      <Share />
      <label class="theme">
        <span class="visually-hidden">Colours</span>
        <select value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
          <option value="auto">system</option>
          <option value="light">light</option>
          <option value="dark">dark</option>
        </select>
      </label>
    </div>
  );
}
