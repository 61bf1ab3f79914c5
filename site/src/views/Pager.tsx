// Steps through the rows of a table that shows so many at once.

import type { ComponentChildren } from 'preact';

interface Properties {
  from: number;
  rows: number;
  page: number;
  onFirst: (first: number) => void;
  children: ComponentChildren;
}

export function Pager({ from, rows, page, onFirst, children }: Properties) {
  return (
    <div class="pager">
      <button type="button" disabled={from === 0} onClick={() => onFirst(Math.max(0, from - page))}>
        Earlier
      </button>
      <span>{children}</span>
      <button type="button" disabled={from + page >= rows} onClick={() => onFirst(from + page)}>
        Later
      </button>
    </div>
  );
}
