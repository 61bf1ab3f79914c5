// The form of a formula: parameters, cells, history, links, paste.

import { expect, test } from 'vitest';
import type { Page } from 'playwright-core';
import { go, link, ready, shownBits, visit } from './harness';

const lead = (page: Page) => page.locator('.lead-value').textContent();
const box = (page: Page, name: string) => page.locator(`#param-${name}`);
const cell = (page: Page, input: string, index: number) => page.locator(`[data-cell="${input}/${index}"] input`);

/** Golden: GRPO's loss of two tokens whose ratios are e^0.5 and e^-0.5, A = 1 and -1: (−1.2 + 0.8) / 2, clipped. */
const TWO = link('objective.grpo', {
  i: { log_prob: [[1, 2], [-0.5, -1]], old_log_prob: [[1, 2], [-1, -0.5]], advantage: [[1, 2], [1, -1]] },
});

test('sliders, boxes and presets change the result at once, and undo and redo go back and forth', async () => {
  await visit(TWO, async ({ page }) => {
    expect(Number(await lead(page))).toBeCloseTo(-0.2, 15);
    await box(page, 'clip_ratio_high').fill('0.5');
    expect(Number(await lead(page))).toBeCloseTo((-1.5 + 0.8) / 2, 15);
    const slider = page.getByLabel('clip_ratio_high, slider');
    await slider.focus();
    await page.keyboard.press('ArrowLeft');
    expect(Number(await box(page, 'clip_ratio_high').inputValue())).toBeLessThan(0.5);
    await slider.evaluate((element: HTMLInputElement) => {
      element.value = '0';
      element.dispatchEvent(new Event('input', { bubbles: true }));
    });
    expect(await box(page, 'clip_ratio_high').inputValue()).toBe('0');
    expect(Number(await lead(page))).toBeCloseTo((-1 + 0.8) / 2, 15);

    await page.getByRole('radio', { name: 'verl-0.9' }).check({ force: true });
    expect(await page.locator('#param-aggregation').inputValue()).toBe('token_mean');
    expect(await box(page, 'clip_ratio_high').inputValue()).toBe('0.2');
    await page.getByRole('button', { name: 'Undo' }).click();
    expect(await page.locator('#param-aggregation').inputValue()).toBe('seq_mean_token_mean');
    expect(await box(page, 'clip_ratio_high').inputValue()).toBe('0');
    await page.keyboard.press('Control+Shift+Z');
    expect(await page.locator('#param-aggregation').inputValue()).toBe('token_mean');
    await page.getByRole('button', { name: 'Reset' }).click();
    expect(await cell(page, 'log_prob', 17).count()).toBe(1);
    expect(await page.locator('.parameter.changed').count()).toBe(0);
  });
});

test('an illegal number is refused beside its box, and the result stays', async () => {
  await visit(TWO, async ({ page }) => {
    const before = await lead(page);
    for (const [text, complaint] of [
      ['-0.1', 'clip_ratio_high is -0.1, legal is ≥ 0'],
      ['x', '“x” is no number'],
      ['', 'a number is missing'],
    ]) {
      await box(page, 'clip_ratio_high').fill(text!);
      expect(await page.locator('[data-param=clip_ratio_high] .complaint').textContent()).toBe(complaint);
      expect(await box(page, 'clip_ratio_high').getAttribute('aria-invalid')).toBe('true');
      expect(await lead(page)).toBe(before);
    }
    await box(page, 'clip_ratio_high').fill('0.3');
    expect(await page.locator('.complaint').count()).toBe(0);
  });
});

test('a refusal names the cell and leads to it', async () => {
  await visit(TWO, async ({ page }) => {
    await cell(page, 'old_log_prob', 1).fill('NaN');
    expect(await page.locator('#refusal').textContent()).toBe('`old_log_prob` at index 1 is not finite');
    expect(await cell(page, 'old_log_prob', 1).getAttribute('aria-invalid')).toBe('true');
    expect(await cell(page, 'old_log_prob', 0).getAttribute('aria-invalid')).toBe('false');
    await page.getByRole('button', { name: 'Go to old_log_prob' }).click();
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('old_log_prob, response 0, token 1');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('-0.5');
    expect(Number(await lead(page))).toBeCloseTo(-0.2, 15);
  });
});

test('cells, sizes and optional inputs', async () => {
  await visit(TWO, async ({ page }) => {
    await cell(page, 'advantage', 0).fill('2');
    expect(Number(await lead(page))).toBeCloseTo((-2.4 + 0.8) / 2, 15);
    await cell(page, 'advantage', 0).press('ArrowDown');
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('advantage, response 0, token 1');
    await page.getByRole('checkbox', { name: 'mask', exact: true }).check({ force: true });
    await cell(page, 'mask', 1).uncheck();
    expect(Number(await lead(page))).toBeCloseTo(-2.4, 15);
    await page.getByRole('button', { name: 'One response more' }).click();
    expect(await cell(page, 'log_prob', 3).count()).toBe(1);
    expect(await cell(page, 'advantage', 0).inputValue()).toBe('2');
    await page.getByRole('button', { name: 'One response fewer' }).click();
    expect(Number(await lead(page))).toBeCloseTo(-2.4, 15);
    await page.getByRole('checkbox', { name: 'bits' }).check();
    expect(await page.locator('[data-output="d_log_prob/1"]').textContent()).toBe('0000000000000000');
    await page.locator('.segmented label', { hasText: 'f32' }).click();
    expect(await page.locator('[data-output="d_log_prob/1"]').textContent()).toBe('00000000');
    expect(Number(await lead(page))).toBeCloseTo(-2.4, 6);
  });
});

test('a random example is another one, and any formula takes it', async () => {
  await visit('#kl.k3', async ({ page }) => {
    const seen = new Set<string>();
    for (let round = 0; round < 4; round += 1) {
      seen.add((await shownBits(page))['kl/0']!);
      await page.getByRole('button', { name: 'Random example' }).click();
      expect(await page.locator('#refusal').count()).toBe(0);
    }
    expect(seen.size).toBe(4);
  });
});

test('a link holds everything, and leads back to it', async () => {
  await visit('#objective.ppo', async ({ page, context }) => {
    await page.getByRole('radio', { name: 'verl-0.9' }).check({ force: true });
    await box(page, 'clip_ratio_low').fill('0.31');
    await cell(page, 'log_prob', 2).fill('-0.123456789012345678');
    await cell(page, 'log_prob', 17).fill('nan');
    await page.locator('.segmented label', { hasText: 'f32' }).click();
    const before = await shownBits(page);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('link copied').waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toContain('#objective.ppo~1.');
    // The address follows by itself.
    await page.waitForFunction((wanted) => location.href === wanted, copied);
    const other = await context.newPage();
    await other.goto(copied);
    await ready(other);
    expect(await shownBits(other)).toEqual(before);
    expect(Object.keys(before).length).toBeGreaterThan(50);
    expect(await box(other, 'clip_ratio_low').inputValue()).toBe('0.31');
    expect(await cell(other, 'log_prob', 17).inputValue()).toBe('NaN');
    expect(await other.getByRole('radio', { name: 'verl-0.9' }).isChecked()).toBe(true);
  });
});

test('an old link still opens', async () => {
  // Of version 1, from the first day of this page; it stays here as it is.
  const OLD =
    '#objective.grpo~1.bY7BDoMgEET_Zc-rEYxJy68YQlApUhGsUi_Gf-_ipT30tjv7dmYOGEDAblZfVOUdEBKtj5rTtIA4oPduUatOLqrR2RFEVfIb_so9iPD2HkFbuxqbtUAem3mp2eigUpxMuEY4EVw29dGqZY0diLZlWEtsKbzBgmHBpUSIflB_GDpfGC95kzE97Dokbc3FEMGyOutt-j4xZFhJScnU84BIzWL3NH1yuykHvUQ4zw8';
  await visit(OLD, async ({ page }) => {
    // Ratios e^0.5 (clipped at 1.28) and e^-0.5, A = 1, and verl's 1e-8 beside the length.
    expect(Number(await lead(page))).toBeCloseTo(-0.94326532, 7);
    expect(await page.getByRole('radio', { name: 'verl-0.9' }).isChecked()).toBe(true);
    expect(await box(page, 'clip_ratio_high').inputValue()).toBe('0.28');
    expect(await page.locator('#param-aggregation').inputValue()).toBe('seq_mean_token_mean');
    expect(await page.locator('.segmented input:checked + span').textContent()).toBe('f32');
    expect(await cell(page, 'mask', 2).isChecked()).toBe(false);
    expect(await cell(page, 'old_log_prob', 2).inputValue()).toBe('-2.25');
  });
});

test('a link that cannot be read is said to be, and the page opens all the same', async () => {
  for (const [hash, complaint] of [
    ['#no.such', 'the link names the formula “no.such”, which this version does not have'],
    ['#kl.k1~9.abc', 'the link is of version 9, this page reads version 1'],
    ['#kl.k1~1.!!', 'the link is damaged'],
    [link('kl.k1', { i: { log_prob: [[2], [1]] } }), 'the link is damaged: the numbers of “log_prob” do not fit its shape'],
  ]) {
    await visit(hash!, async ({ page }) => {
      expect(await page.locator('.notice').textContent()).toContain(complaint);
      expect(await page.locator('h1').textContent()).toBe('GRPO');
    });
  }
});

test('numbers are pasted from elsewhere, and a broken text is refused with its place', async () => {
  await visit(TWO, async ({ page }) => {
    await page.getByRole('button', { name: 'Paste…' }).click();
    const dialog = page.getByRole('dialog');
    const text = dialog.getByLabel('Numbers');
    await text.fill('log_prob = tensor([[-0.5, -1.0], [-0.3, x]])');
    expect(await dialog.locator('.complaint').textContent()).toContain('line 1, column 41: “x” is no number');
    expect(await dialog.getByRole('button', { name: 'Use these numbers' }).isDisabled()).toBe(true);
    await text.fill('[[1, 2]]');
    expect(await dialog.locator('.complaint').textContent()).toContain('choose above where its numbers go');
    await text.fill('log_prob = tensor([[-0.5, -1.0], [-0.3, -0.4]], dtype=torch.float64)\nadvantage = [[1, -1], [0, 0]]');
    expect(await dialog.locator('.report').textContent()).toContain('Other sizes, with example numbers in new slots: old_log_prob');
    await dialog.getByRole('button', { name: 'Use these numbers' }).click();
    expect(await cell(page, 'log_prob', 3).inputValue()).toBe('-0.4');
    expect(await cell(page, 'old_log_prob', 1).inputValue()).toBe('-0.5');
    // The new response has advantage 0: the mean over two responses is half of what it was.
    expect(Number(await lead(page))).toBeCloseTo(-0.1, 15);

    await page.getByRole('button', { name: 'Paste log_prob' }).click();
    await text.fill('-0.5,-1\n-0.3,-0.9');
    await dialog.getByRole('button', { name: 'Use these numbers' }).click();
    expect(await cell(page, 'log_prob', 3).inputValue()).toBe('-0.9');

    // Cells of a spreadsheet go in from the cell where they are pasted.
    await cell(page, 'log_prob', 1).evaluate((element) => {
      const data = new DataTransfer();
      data.setData('text/plain', '-1.5\t-0.25\n-1.75\t-0.75\n');
      element.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
    });
    expect(await cell(page, 'log_prob', 1).inputValue()).toBe('-1.5');
    expect(await cell(page, 'log_prob', 2).inputValue()).toBe('-1.75');
    expect(await cell(page, 'old_log_prob', 2).inputValue()).toBe('-0.75');
  });
});

test('formulas are found by words, families and addresses', async () => {
  await visit('', async ({ page }) => {
    await page.keyboard.press('/');
    await page.keyboard.type('gae');
    await page.keyboard.press('Enter');
    expect(await page.locator('h1').textContent()).toContain('advantage estimation');
    await page.getByLabel('Search formulas').fill('2402.03300');
    expect(await page.locator('nav.sidebar a').allTextContents()).toContain('GRPO');
    await page.getByLabel('Search formulas').fill('no such formula');
    expect(await page.getByText('Nothing found').count()).toBe(1);
    await page.getByLabel('Search formulas').fill('');
    await go(page, '#kl.k2', 'kl.k2');
    expect(await page.locator('nav.sidebar a[aria-current=page]').textContent()).toBe('k2');
  });
});
