// Put numbers in the place of symbols in a TeX formula.

/** Commands whose group is text, where a letter is no symbol. */
const TEXT = new Set(['\\mathrm', '\\text', '\\operatorname', '\\mathbf', '\\textrm', '\\begin', '\\end']);

function tokens(tex: string): string[] {
  return tex.match(/\\[a-zA-Z]+\*?|\\.|\s+|[^\\\s]/g) ?? [];
}

/** `tex` with each symbol of `values` replaced by its number, marked with the class `live`. */
export function substitute(tex: string, values: [symbol: string, number: string][]): string {
  const wanted = values
    .map(([symbol, number]) => ({ symbol: tokens(symbol).filter((token) => token.trim() !== ''), number }))
    .filter(({ symbol }) => symbol.length > 0)
    .sort((left, right) => right.symbol.length - left.symbol.length);
  const source = tokens(tex);
  let result = '';
  let at = 0;
  while (at < source.length) {
    const token = source[at]!;
    const skipped = token === '_' || TEXT.has(token) ? groupEnd(source, at + 1) : at;
    if (skipped > at) {
      result += source.slice(at, skipped).join('');
      at = skipped;
      continue;
    }
    const found = wanted.find(({ symbol }) => symbol.every((part, offset) => source[at + offset] === part));
    const after = found ? source[at + found.symbol.length] : undefined;
    if (found && after !== '_' && after !== "'") {
      const number = found.number.startsWith('-') ? `(${found.number})` : found.number;
      result += `{\\htmlClass{live}{${number}}}`;
      at += found.symbol.length;
    } else {
      // A command must not grow together with the letter that follows it.
      result += token;
      at += 1;
    }
  }
  return result;
}

/** Where the group (or the single token) that starts at `at` ends. */
function groupEnd(source: string[], at: number): number {
  let start = at;
  while (source[start]?.trim() === '') start += 1;
  if (source[start] !== '{') return start + 1;
  let depth = 0;
  for (let index = start; index < source.length; index += 1) {
    if (source[index] === '{') depth += 1;
    if (source[index] === '}') depth -= 1;
    if (depth === 0) return index + 1;
  }
  return source.length;
}

/** A number as TeX: `1.2 \cdot 10^{-8}` where the decimal would be long. */
export function texNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? '\\mathrm{NaN}' : value > 0 ? '\\infty' : '-\\infty';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    const [mantissa, exponent] = value.toExponential(3).split('e') as [string, string];
    const short = String(Number(mantissa));
    const power = `10^{${Number(exponent)}}`;
    return short === '1' ? power : `${short} \\cdot ${power}`;
  }
  return String(Number(value.toPrecision(5)));
}
