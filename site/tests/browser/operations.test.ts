// Every operation's page: opens, evaluates its example and a golden case, to the bits of core.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { go, link, shownBits, visit, type LinkPayload } from './harness';
import { coreBits, numbers, type Arrays } from './native';

const GOLDEN = fileURLToPath(new URL('../../../fixtures/golden', import.meta.url));
/** Tables show this many rows at a time; a case with more is not read whole. */
const ROWS = 48;

interface Case {
  id: string;
  operation: string;
  dialect?: string | null;
  params: Record<string, unknown>;
  inputs: Arrays;
  dtype: 'f32' | 'f64';
}

/** For each operation the largest golden case of each precision that fits on the page without turning over. */
function goldenCases(): Map<string, Case> {
  const found = new Map<string, Case>();
  const size = (one: Case) => Object.values(one.inputs).reduce((sum, input) => sum + input.values.length, 0);
  for (const folder of readdirSync(GOLDEN)) {
    for (const file of readdirSync(join(GOLDEN, folder)).filter((name) => name.endsWith('.json'))) {
      const { provenance, cases } = JSON.parse(readFileSync(join(GOLDEN, folder, file), 'utf8')) as { provenance: { dtype: 'f32' | 'f64' }; cases: Case[] };
      for (const one of cases) {
        const fits = Object.values(one.inputs).every(({ shape }) => (shape.length > 2 ? shape.slice(0, -1) : shape).reduce((product, size) => product * size, 1) <= ROWS);
        if (!fits) continue;
        const key = `${one.operation}/${provenance.dtype}`;
        const before = found.get(key);
        if (!before || size(one) > size(before)) found.set(key, { ...one, dtype: provenance.dtype });
      }
    }
  }
  return found;
}

test('the page of every operation opens and gives the bits of core', async () => {
  const golden = goldenCases();
  await visit('', async ({ page }) => {
    const operations = await page.evaluate(() => [...document.querySelectorAll<HTMLAnchorElement>('nav.sidebar a')].map((link) => link.hash.slice(1)));
    expect(operations.length).toBeGreaterThan(200);
    expect(new Set(operations).size).toBe(operations.length);

    const problems: string[] = [];
    let compared = 0;
    let goldenCompared = 0;
    const compare = async (what: string, expected: Awaited<ReturnType<typeof coreBits>>): Promise<number> => {
      const refusal = await page.locator('#refusal').allTextContents();
      if (expected.complaint !== null || refusal.length > 0) {
        problems.push(`${what}: core says ${expected.complaint}, the page ${refusal.join()}`);
        return 0;
      }
      const shown = await shownBits(page);
      const names = Object.keys(expected.bits);
      const wrong = names.filter((name) => shown[name] !== expected.bits[name]);
      if (names.length === 0 || wrong.length > 0) problems.push(`${what}: ${wrong.length} of ${names.length} differ, first ${wrong[0]}: core ${expected.bits[wrong[0]!]}, page ${shown[wrong[0]!]}`);
      return names.length;
    };

    for (const operation of operations) {
      await go(page, `#${operation}`, operation);
      expect(await page.locator('h1').count()).toBe(1);
      const inputs = await exampleInputs(operation);
      const dialects = await page.locator('input[name=preset]').evaluateAll((radios) => radios.map((radio) => (radio as HTMLInputElement).value));
      compared += await compare(`${operation}, example`, await coreBits({ operation, dtype: 'f64', params: {}, inputs }));
      for (const dtype of ['f64', 'f32'] as const) {
        const stored = golden.get(`${operation}/${dtype}`);
        if (!stored) continue;
        // A golden case states all its parameters; its dialect need not be one of the operation's.
        const one = { ...stored, dialect: dialects.includes(stored.dialect ?? '') ? stored.dialect : null };
        const expected = coreBits(one);
        const payload: LinkPayload = { i: Object.fromEntries(Object.entries(one.inputs).map(([name, array]) => [name, [array.shape, numbers(array)]])), p: one.params, t: dtype };
        if (one.dialect) payload.d = one.dialect;
        await go(page, link(operation, payload), operation);
        const number = await compare(one.id, await expected);
        compared += number;
        goldenCompared += number;
      }
    }
    expect(problems).toEqual([]);
    console.log(`${operations.length} operations, ${golden.size} golden cases, ${compared} numbers with the bits of core (${goldenCompared} of golden cases)`);

    /** The numbers that stand in the page's cells. */
    async function exampleInputs(operation: string): Promise<Arrays> {
      const cells = await page.evaluate(() => {
        const tables = new Map<string, { rank: number[]; values: string[] }>();
        for (const cell of document.querySelectorAll<HTMLElement>('td[data-cell]')) {
          const name = cell.dataset.cell!.split('/')[0]!;
          const box = cell.querySelector('input')!;
          const entry = tables.get(name) ?? { rank: cell.dataset.shape!.split(',').filter(Boolean).map(Number), values: [] };
          entry.values.push(box.type === 'checkbox' ? (box.checked ? '1' : '0') : box.value);
          tables.set(name, entry);
        }
        return [...tables];
      });
      expect(cells.length, operation).toBeGreaterThan(0);
      return Object.fromEntries(cells.map(([name, { rank, values }]) => [name, { shape: rank, values: values.map((value) => (value !== '-0' && Number.isFinite(Number(value)) ? Number(value) : value)) }]));
    }
  });
}, 300_000);
