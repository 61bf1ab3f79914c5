// For everyone: an accessibility engine, the keyboard alone, narrow and wide windows, light and dark, no network.

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { address, go, ready, shownBits, stopServing, visit } from './harness';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: (root: Document, options: object) => Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } };
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations.flatMap((violation) => violation.nodes.map((node) => `${violation.id}: ${node.html.slice(0, 160)}`));
  });
}

/** What sticks out of the window to the right. */
async function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    document.documentElement.scrollWidth <= window.innerWidth
      ? []
      : ['the page', ...[...document.querySelectorAll('main *, .bar *')]
          .filter((element) => element.getBoundingClientRect().right > window.innerWidth + 1 && !element.closest('.table-scroll, .tex, .tree, svg'))
          .slice(0, 5)
          .map((element) => element.outerHTML.slice(0, 120))],
  );
}

/** Identify the page's own numbers. */
async function identifyExample(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Identify' }).click();
  await page.getByRole('button', { name: 'Take the numbers of' }).click();
  await page.locator('.identify').getByRole('button', { name: 'Identify' }).click();
  await page.locator('[data-conclusion=known]').waitFor({ timeout: 60_000 });
}

/** One for each kind of plot and table; the first two in dark colours too. */
const OPERATIONS = ['objective.grpo', 'bellman.value_iteration', 'kl.k3', 'kl.gaussian_fit', 'td.dqn', 'advantage.gae', 'reward.overlong'];

for (const width of [1440, 375]) {
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`no violation and nothing out of the window, ${width} px, ${colorScheme}`, async () => {
      await visit(
        '#objective.grpo',
        async ({ page }) => {
          for (const operation of colorScheme === 'light' ? OPERATIONS : OPERATIONS.slice(0, 2)) {
            await go(page, `#${operation}`, operation);
            await page.locator('main details').evaluateAll((all) => all.forEach((details) => ((details as HTMLDetailsElement).open = true)));
            expect(await violations(page), operation).toEqual([]);
            expect(await tooWide(page), operation).toEqual([]);
          }
          const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
          expect(background).toBe(colorScheme === 'dark' ? 'rgb(20, 24, 27)' : 'rgb(251, 250, 247)');

          await page.getByRole('button', { name: 'Copy as…' }).click();
          expect(await violations(page), 'copy').toEqual([]);
          await page.keyboard.press('Escape');
          await page.getByRole('button', { name: 'Paste…' }).click();
          await page.getByRole('dialog').getByLabel('Numbers').fill('[[1, x]]');
          expect(await violations(page), 'paste').toEqual([]);
          await page.keyboard.press('Escape');
          await page.getByRole('button', { name: 'Algorithm map' }).click();
          expect(await violations(page), 'map').toEqual([]);
          expect(await tooWide(page), 'map').toEqual([]);
          await identifyExample(page);
          expect(await violations(page), 'identify').toEqual([]);
          expect(await tooWide(page), 'identify').toEqual([]);
        },
        { colorScheme, viewport: { width, height: 900 } },
      );
    });
  }
}

test('a colour scheme that was chosen is kept', async () => {
  await visit('', async ({ page }) => {
    await page.getByLabel('Colours').selectOption('dark');
    await page.reload();
    await ready(page);
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe('dark');
    expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(20, 24, 27)');
  });
});

test('the keyboard alone: find a formula, move a parameter, change a number, copy', async () => {
  await visit('', async ({ page }) => {
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '');
    const tabTo = async (wanted: string) => {
      for (let presses = 0; presses < 400; presses += 1) {
        await page.keyboard.press('Tab');
        if ((await focused()) === wanted) return presses;
      }
      throw new Error(`the keyboard does not come to “${wanted}”`);
    };
    await page.keyboard.press('/');
    await page.keyboard.type('surrogate.ppo_clip');
    await page.keyboard.press('Enter');
    expect(await page.locator('[data-operation]').getAttribute('data-operation')).toBe('surrogate.ppo_clip');
    await tabTo('clip_ratio_high, slider');
    const before = await page.locator('#param-clip_ratio_high').inputValue();
    await page.keyboard.press('ArrowRight');
    expect(Number(await page.locator('#param-clip_ratio_high').inputValue())).toBeGreaterThan(Number(before));
    const bits = await shownBits(page);
    await tabTo('log_prob, response 0, token 0');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('-0.75');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe('log_prob, response 0, token 1');
    expect((await shownBits(page))['token_loss/0']).not.toBe(bits['token_loss/0']);
    await page.keyboard.press('Control+z');
    expect(await shownBits(page)).toEqual(bits);
    await page.getByRole('button', { name: 'Copy as…' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    // The first stop of the page leads past the list of formulas.
    await page.reload();
    await ready(page);
    await page.keyboard.press('Tab');
    expect((await focused()).trim()).toBe('To the formula');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  });
});

test('on a phone the list of formulas opens and closes', async () => {
  await visit(
    '',
    async ({ page }) => {
      expect(await page.getByRole('link', { name: 'DAPO' }).isVisible()).toBe(false);
      await page.getByRole('button', { name: 'Formulas' }).click();
      await page.getByRole('link', { name: 'DAPO' }).click();
      expect(await page.locator('h1').textContent()).toBe('DAPO');
      expect(await page.getByRole('link', { name: 'DAPO' }).isVisible()).toBe(false);
    },
    { viewport: { width: 375, height: 700 } },
  );
});

test('nothing moves while the page comes up', async () => {
  await visit('', async ({ page }) => {
    await page.addInitScript(() => {
      const seen: number[] = [];
      (window as unknown as { shifts: number[] }).shifts = seen;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) seen.push((entry as unknown as { value: number }).value);
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await page.goto(address('#objective.dapo'));
    await page.reload();
    await ready(page);
    await page.waitForTimeout(800);
    const shifts = await page.evaluate(() => (window as unknown as { shifts: number[] }).shifts);
    expect(shifts.reduce((sum, value) => sum + value, 0)).toBeLessThan(0.02);
  });
});

// Last, because it takes the server away.
test('after the first visit the page opens without a network', async () => {
  await visit('#kl.k2', async ({ page, complaints }) => {
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    const before = await shownBits(page);
    await stopServing();
    await page.goto(address('#kl.k2').replace('#', '?again#'));
    await ready(page);
    expect(await shownBits(page)).toEqual(before);
    expect(Object.keys(before).length).toBeGreaterThan(10);
    await page.getByLabel('Search formulas').fill('dapo');
    await page.keyboard.press('Enter');
    expect(await page.locator('h1').textContent()).toBe('DAPO');
    await identifyExample(page);
    // The browser reports that the network is gone; the page itself says nothing.
    complaints.splice(0, complaints.length, ...complaints.filter((complaint) => !complaint.includes('ERR_CONNECTION_REFUSED')));
  });
});
