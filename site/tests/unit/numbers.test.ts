import { expect, test } from 'vitest';
import { fromPosition, isLegal, legalText, spanOf, toPosition } from '../../src/catalog/range';
import type { ParamSpec } from '../../src/catalog/types';
import { bits, exact, parseNumber, short } from '../../src/numbers/format';
import { substitute, texNumber } from '../../src/numbers/substitute';
import { History } from '../../src/state/history';

test('numbers are written short, exactly, and as bits', () => {
  expect(short(-0.3740251764160128)).toBe('−0.374025');
  expect(short(1.5e-9)).toBe('1.5e−9');
  expect(short(2e7)).toBe('2e7');
  expect(short(0)).toBe('0');
  expect(short(-Infinity)).toBe('−∞');
  expect(exact(Math.fround(0.1), 'f32')).toBe('0.1');
  expect(exact(0.1, 'f64')).toBe('0.1');
  expect(exact(-0, 'f64')).toBe('-0');
  expect(Math.fround(Number(exact(Math.fround(1 / 3), 'f32')))).toBe(Math.fround(1 / 3));
  expect(bits(0.1, 'f32')).toBe('3dcccccd');
  expect(bits(-0, 'f64')).toBe('8000000000000000');
  expect(bits(1, 'f64')).toBe('3ff0000000000000');
});

test('numbers are read as people type them', () => {
  expect(parseNumber(' −1.5e-3 ')).toBe(-0.0015);
  expect(parseNumber('.5')).toBe(0.5);
  expect(parseNumber('-inf')).toBe(-Infinity);
  expect(parseNumber('nan')).toBeNaN();
  for (const text of ['', '1,5', '1e', '--1', '0x10', 'one']) expect(parseNumber(text), text).toBeNull();
});

const param = (part: Partial<ParamSpec>): ParamSpec => ({
  name: 'p', symbol: '', meaning: '', kind: 'number', default: 0.2, legal: '>= 0',
  range: { low: 0, low_inclusive: true, high: null, high_inclusive: false }, ...part,
});

test('a slider covers a useful part of the legal range, and its positions lead back', () => {
  for (const one of [
    param({}),
    param({ default: 1e-8 }),
    param({ default: 3, range: { low: 1, low_inclusive: false, high: null, high_inclusive: false } }),
    param({ default: 0.99, range: { low: 0, low_inclusive: true, high: 1, high_inclusive: true } }),
    param({ kind: 'whole number', default: 200, range: { low: 1, low_inclusive: true, high: 1e9, high_inclusive: true } }),
    param({ default: 0, range: { low: null, low_inclusive: false, high: null, high_inclusive: false } }),
  ]) {
    const start = one.default as number;
    const span = spanOf(one, start);
    for (const position of [0, 250, 500, 1000]) {
      const value = fromPosition(span, position);
      expect(isLegal(value, one), `${one.default} at ${position} gives ${value}`).toBe(true);
      expect(fromPosition(span, toPosition(span, value))).toBeCloseTo(value, 9);
    }
    expect(Math.abs(fromPosition(span, toPosition(span, start)) - start)).toBeLessThanOrEqual(span.step);
  }
  expect(isLegal(-0.1, param({}))).toBe(false);
  expect(isLegal(1.5, param({ kind: 'whole number' }))).toBe(false);
  expect(legalText(param({}))).toBe('≥ 0');
});

test('numbers go where their symbols stand, and nowhere else', () => {
  const put = (tex: string, ...values: [string, string][]) => substitute(tex, values).replaceAll(/\{\\htmlClass\{live\}\{([^}]*)\}\}/g, '<$1>');
  expect(put('\\beta k + \\beta_0 + x_\\beta', ['\\beta', '0.1'])).toBe('<0.1> k + \\beta_0 + x_\\beta');
  expect(put('1-\\epsilon_{\\mathrm{low}}', ['\\epsilon_{\\mathrm{low}}', '0.2'], ['\\epsilon', '9'])).toBe('1-\\epsilon_{\\mathrm{low}}'.replace('\\epsilon_{\\mathrm{low}}', '<0.2>'));
  expect(put('\\mathrm{clip}(r, c)', ['c', '3'])).toBe('\\mathrm{clip}(r, <3>)');
  expect(put('\\gamma^k', ['\\gamma', '-1'])).toBe('<(-1)>^k');
  expect(texNumber(1e-8)).toBe('10^{-8}');
  expect(texNumber(0.25)).toBe('0.25');
});

test('undo goes back over changes of one thing that follow each other at once', () => {
  const history = new History<number>();
  history.push(0, 'slider', 0);
  history.push(1, 'slider', 100);
  history.push(2, 'slider', 200);
  history.push(3, 'other', 300);
  expect(history.undo(4)).toBe(3);
  expect(history.undo(3)).toBe(0);
  expect(history.canUndo).toBe(false);
  expect(history.redo(0)).toBe(3);
  expect(history.redo(3)).toBe(4);
  expect(history.canRedo).toBe(false);
});
