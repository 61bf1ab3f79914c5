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
  const Tag = display ? 'div' : 'span';
  return <Tag class={display ? 'tex display' : 'tex'} dangerouslySetInnerHTML={{ __html: html }} />;
}
