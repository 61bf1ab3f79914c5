// What a slider spans, and whether a number is legal.

import type { ParamSpec, Range } from './types';

/** The stretch of a parameter's legal range that a slider covers; the box beside it takes all of the range. */
export interface Span {
  low: number;
  high: number;
  step: number;
  /** Whether the slider moves by factors and not by differences. */
  logarithmic: boolean;
}

export function isLegal(value: number, param: ParamSpec): boolean {
  if (param.kind === 'whole number' && !Number.isInteger(value)) return false;
  if (!Number.isFinite(value)) return false;
  const { range } = param;
  if (range === null) return true;
  const above = range.low === null || value > range.low || (range.low_inclusive && value === range.low);
  const below = range.high === null || value < range.high || (range.high_inclusive && value === range.high);
  return above && below;
}

/** What is legal, in words. */
export function legalText(param: ParamSpec): string {
  if (typeof param.legal === 'string') {
    const legal = param.legal.replace('>=', '≥').replace('<=', '≤');
    return param.kind === 'optional number' ? `${legal}, or off` : legal;
  }
  const { range } = param;
  if (param.kind === 'whole number' && range) {
    return range.high === null ? `a whole number ≥ ${range.low}` : `a whole number from ${range.low} to ${range.high}`;
  }
  return '';
}

export function spanOf(param: ParamSpec, value: number): Span {
  const fallback = typeof param.default === 'number' ? param.default : 0;
  const range: Range = param.range ?? { low: null, low_inclusive: false, high: null, high_inclusive: false };
  const whole = param.kind === 'whole number';
  const size = Math.max(Math.abs(fallback), 0);
  // Small positive numbers (the epsilons) differ by powers of ten.
  if (!whole && size > 0 && size <= 0.005 && (range.low ?? -1) >= 0) {
    const end = range.high === null ? 1 : range.high_inclusive ? range.high : range.high * 0.99;
    return { low: Math.min(size / 1e4, positive(value)), high: Math.max(Math.min(1, end), value), step: 0.01, logarithmic: true };
  }
  const reach = whole ? Math.max(4 * size, 10) : Math.max(3 * size, size === 0 ? 2 : 1);
  const bounded = range.high !== null && range.high - (range.low ?? 0) <= 1e4;
  let low = range.low ?? (range.high === null ? -reach : range.high - reach);
  let high = bounded ? range.high! : Math.max(low + reach, fallback + reach);
  low = Math.min(low, value);
  high = Math.max(high, value);
  const step = whole ? 1 : niceStep((high - low) / 200);
  // An end that is itself illegal is left out by one step.
  if (range.low !== null && !range.low_inclusive && low === range.low) low += step;
  if (range.high !== null && !range.high_inclusive && high === range.high) high -= step;
  return { low, high, step, logarithmic: false };
}

function positive(value: number): number {
  return value > 0 ? value : Infinity;
}

function niceStep(raw: number): number {
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= raw * 0.999) ?? 10;
  return factor * power;
}

/** The slider's position (0 … 1000) of a value, and back. */
export function toPosition(span: Span, value: number): number {
  if (span.logarithmic) {
    if (value <= 0) return 0;
    return (1000 * Math.log(value / span.low)) / Math.log(span.high / span.low);
  }
  return (1000 * (value - span.low)) / (span.high - span.low);
}

export function fromPosition(span: Span, position: number): number {
  if (span.logarithmic) {
    return Number((span.low * (span.high / span.low) ** (position / 1000)).toPrecision(2));
  }
  const raw = span.low + (position / 1000) * (span.high - span.low);
  const steps = Math.round((raw - span.low) / span.step);
  const value = span.low + steps * span.step;
  return Number(Math.min(span.high, Math.max(span.low, value)).toPrecision(12));
}
