// Start: the package, the state of the address, the page.

import 'katex/dist/katex.min.css';
import './style/page.css';

import { effect } from '@preact/signals';
import { render } from 'preact';
import { App } from './app';
import { findOperation } from './catalog/catalog';
import { start } from './compute/evaluate';
import { fromHash, LinkError, toHash } from './state/link';
import { change, FIRST, follow, fresh, show, state } from './state/state';
import { notice } from './views/notice';

/** Browsers refuse more than about a hundred changes of the address in half a minute. */
const ADDRESS_PAUSE = 300;

function stateOfAddress() {
  try {
    return fromHash(location.hash);
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    notice.value = `This link cannot be read: ${error.message}.`;
    return null;
  }
}

async function main(): Promise<void> {
  // The formula's letters are there before it is painted, so that nothing moves afterwards.
  const letters = ['1em KaTeX_Main', 'italic 1em KaTeX_Math', '1em KaTeX_Size1'].map((font) => document.fonts.load(font));
  await Promise.all([start(), ...letters]);
  show(stateOfAddress() ?? fresh(findOperation(FIRST)!));
  follow();

  let written = location.hash;
  let timer = 0;
  effect(() => {
    const current = state.value;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      // An address that somebody has just entered is on its way to be shown: it is not overwritten.
      if (location.hash !== written) return;
      const hash = toHash(current) ?? `#${current.operation}`;
      if (hash === written) return;
      written = hash;
      history.replaceState(null, '', hash);
    }, ADDRESS_PAUSE);
    document.title = `${findOperation(current.operation)!.title} · Plumbline calculator`;
  });
  window.addEventListener('hashchange', () => {
    if (location.hash === written) return;
    written = location.hash;
    const next = stateOfAddress();
    if (next) change(next);
  });

  const root = document.getElementById('app')!;
  root.replaceChildren();
  render(<App />, root);
  document.documentElement.dataset.ready = 'true';

  if ('serviceWorker' in navigator && import.meta.env.PROD) {
    navigator.serviceWorker.register(new URL('./worker.js', document.baseURI), { scope: './' }).catch(() => {
      // Without a service worker (a page opened as a file) everything works but the offline reload.
    });
  }
}

main().catch((error: unknown) => {
  const text = document.createElement('p');
  text.className = 'starting';
  text.textContent = `The calculator could not start: ${error instanceof Error ? error.message : String(error)}`;
  document.getElementById('app')!.replaceChildren(text);
  throw error;
});
