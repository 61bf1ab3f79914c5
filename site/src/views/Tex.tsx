// Typeset mathematics. KaTeX writes MathML beside what is seen, so that screen readers read the formula.

import katex from 'katex';
import { useMemo } from 'preact/hooks';

export function Tex({ children, display = false }: { children: string; display?: boolean }) {
  const html = useMemo(
    () =>
      katex.renderToString(children, {
        displayMode: display,
        throwOnError: false,
        strict: 'ignore',
        trust: (context) => context.command === '\\htmlClass',
      }),
    [children, display],
  );
  // A long formula scrolls, so the keyboard must come to it.
  return display ? (
    <div class="tex display" tabIndex={0} role="group" aria-label="formula" dangerouslySetInnerHTML={{ __html: html }} />
  ) : (
    <span class="tex" dangerouslySetInnerHTML={{ __html: html }} />
  );
}
