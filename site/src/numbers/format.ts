// Numbers as text: short for tables, exact for boxes, bits in hexadecimal.

import type { Dtype } from '../compute/evaluate';

/** At most six significant digits, for tables and headings. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(4) : String(Number(value.toPrecision(6)));
  return text.replace('-', '−').replace(/\.?0+e/, 'e').replace('e+', 'e').replace('e-', 'e−');
}

/** The shortest decimal that reads back as the same number. */
export function exact(value: number, dtype: Dtype): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity';
  if (Object.is(value, -0)) return '-0';
  if (dtype === 'f64') return String(value);
  for (let digits = 1; digits < 9; digits += 1) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

const view = new DataView(new ArrayBuffer(8));

/** The bits in hexadecimal, sign first. */
export function bits(value: number, dtype: Dtype): string {
  if (dtype === 'f32') {
    view.setFloat32(0, value);
    return view.getUint32(0).toString(16).padStart(8, '0');
  }
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, '0');
}

/** A number that somebody typed; `null` where it is none. Words for what is not finite are understood. */
export function parseNumber(text: string): number | null {
  const plain = text.trim().replaceAll('−', '-').replaceAll('_', '');
  if (/^[+-]?(inf|infinity|∞)$/i.test(plain)) return plain.startsWith('-') ? -Infinity : Infinity;
  if (/^nan$/i.test(plain)) return NaN;
  if (/^true$/i.test(plain)) return 1;
  if (/^false$/i.test(plain)) return 0;
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return null;
  return Number(plain);
}
