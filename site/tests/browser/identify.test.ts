// Identify: a batch with what was printed for it, in; the formula, the variant or the mistake, out.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { visit } from './harness';

const LOG_PROB = [[-0.5, -1.2, -0.8, -2], [-1.1, -0.4, -0.9, -1.3], [-0.7, -0.6, -1.9, -1]];
const OLD = [[-0.9, -1, -1.1, -1.6], [-1.4, -0.5, -0.3, -1.2], [-0.75, -1.1, -1.7, -1.05]];
const ADVANTAGE = [1.3, -0.8, 0.4];
const MASK = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]];

/** PPO's clipped loss with its gradient, written here a second time; `weight` says what a kept token counts. */
function clipped(weight: (row: number) => number, mask = MASK): { loss: number; gradient: number[][] } {
  let loss = 0;
  const gradient = LOG_PROB.map((row, at) =>
    row.map((logProb, token) => {
      if (mask[at]![token] === 0) return 0;
      const ratio = Math.exp(logProb - OLD[at]![token]!);
      const advantage = ADVANTAGE[at]!;
      const bounded = Math.min(1.2, Math.max(0.8, ratio));
      loss += -weight(at) * Math.min(ratio * advantage, bounded * advantage);
      return ratio * advantage <= bounded * advantage ? -weight(at) * ratio * advantage : 0;
    }),
  );
  return { loss, gradient };
}

const length = (row: number) => MASK[row]!.reduce((sum, kept) => sum + kept, 0);
const SEQUENCES = clipped((row) => 1 / length(row) / 3);
const TOKENS = clipped(() => 1 / 7);

const text = (more = '', mask: unknown = MASK) =>
  `logprobs = ${JSON.stringify(LOG_PROB)}\nold_log_probs = ${JSON.stringify(OLD)}\nadvantages = ${JSON.stringify(ADVANTAGE)}\nresponse_mask = ${JSON.stringify(mask)}\n${more}`;

async function open(page: Page): Promise<void> {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('button', { name: 'Identify' }).click();
  await page.getByLabel('Batch', { exact: true }).waitFor();
}

interface Asked {
  batch: string;
  loss: string;
  meant?: string;
}

/** Ask, and read the answer. */
async function ask(page: Page, { batch, loss, meant }: Asked): Promise<{ conclusion: string; text: string; points: string[] }> {
  await page.getByLabel('Batch', { exact: true }).fill(batch);
  await page.getByLabel('Printed loss').fill(loss);
  await page.getByLabel('Meant formula').selectOption(meant ?? '');
  await page.locator('.identify').getByRole('button', { name: 'Identify' }).click();
  const found = page.locator('[data-conclusion]');
  await found.waitFor({ timeout: 60_000 });
  return {
    conclusion: (await found.getAttribute('data-conclusion'))!,
    text: (await found.textContent())!,
    points: await found.locator('[data-fit], [data-near]').allTextContents(),
  };
}

test('a right loss is named as what it is, with every name that fits', async () => {
  await visit('#objective.dapo', async ({ page }) => {
    await open(page);
    await page.getByRole('button', { name: 'Take the numbers of DAPO' }).click();
    await page.locator('.identify').getByRole('button', { name: 'Identify' }).click();
    const found = page.locator('[data-conclusion]');
    await found.waitFor({ timeout: 60_000 });
    expect(await found.getAttribute('data-conclusion')).toBe('known');
    expect((await found.locator('[data-fit]').allTextContents()).join('\n')).toContain('DAPO');

    const grpo = await ask(page, { batch: text(), loss: String(SEQUENCES.loss), meant: 'objective.grpo' });
    expect(grpo.conclusion).toBe('known');
    expect(grpo.text).toContain('It is GRPO');
    expect(grpo.text).toContain('as it is meant to be');
    expect(grpo.points[0]).toContain('GRPO');
    expect(grpo.text).toContain('logprobs is taken as log_prob');

    // The gradient tells more, and the loss may stand in the text.
    const both = await ask(page, { batch: text(`d_log_prob = ${JSON.stringify(SEQUENCES.gradient)}\nloss = ${SEQUENCES.loss}`), loss: '', meant: 'objective.grpo' });
    expect(both.conclusion).toBe('known');
    expect(both.points[0]).toContain('the gradient is its gradient');

    // A result that is an array.
    await page.getByLabel('Search formulas').fill('kl.k2');
    await page.keyboard.press('Enter');
    await open(page);
    await page.getByRole('button', { name: 'Take the numbers of k2' }).click();
    await page.locator('.identify').getByRole('button', { name: 'Identify' }).click();
    await page.locator('[data-conclusion=known] [data-fit]', { hasText: 'k2' }).first().waitFor({ timeout: 60_000 });

    // As torch prints it: four digits.
    const rounded = SEQUENCES.gradient.map((row) => row.map((value) => Number(value.toFixed(4))));
    const four = await ask(page, { batch: text(`grad = tensor(${JSON.stringify(rounded)})`), loss: `tensor(${SEQUENCES.loss.toFixed(4)}, grad_fn=<MeanBackward0>)`, meant: 'objective.grpo' });
    expect(four.conclusion).toBe('known');
    expect(four.points[0]).toContain('the gradient is its gradient');
  });
});

test('planted mistakes are named', async () => {
  await visit('', async ({ page }) => {
    await open(page);
    // verl's GRPO is a mean over all tokens, the paper's a mean of means.
    const tokens = await ask(page, { batch: text(), loss: String(TOKENS.loss), meant: 'objective.grpo' });
    expect(tokens.conclusion).toBe('known');
    expect(tokens.text).toContain('It is GRPO (verl-0.9), as it is meant to be');

    const sums = await ask(page, { batch: text(), loss: String(clipped(() => 1 / 3).loss), meant: 'objective.grpo' });
    expect(sums.conclusion).toBe('changed');
    expect(sums.points.join('\n')).toMatch(/GRPO.* if aggregation is seq_mean_token_sum \(intended: seq_mean_token_mean\)/);

    const sign = await ask(page, { batch: text(), loss: String(-SEQUENCES.loss), meant: 'objective.grpo' });
    expect(sign.conclusion).toBe('changed');
    expect(sign.points.join('\n')).toMatch(/GRPO.* if it is multiplied by -1/);
    expect(sign.text).toContain('GRPO gives');

    const everything = MASK.map((row) => row.map(() => 1));
    const unmasked = await ask(page, { batch: text(), loss: String(clipped(() => 1 / 12, everything).loss), meant: 'objective.grpo' });
    expect(unmasked.conclusion).toBe('changed');
    expect(unmasked.points[0]).toMatch(/mask/);

    const halves = SEQUENCES.gradient.map((row) => row.map((value) => value / 2));
    const gradient = await ask(page, { batch: text(`grad = ${JSON.stringify(halves)}`), loss: String(SEQUENCES.loss), meant: 'objective.grpo' });
    expect(gradient.conclusion).toBe('gradient-differs');
    expect(gradient.points[0]).toContain('1/2 times the right one');

    const unknown = await ask(page, { batch: text(), loss: '123.456789' });
    expect(unknown.conclusion).toBe('unknown');
    expect(unknown.points.length).toBe(3);
    expect(unknown.text).toContain('The closest');
  });
});

test('what is wrong with the input is said where it stands', async () => {
  await visit('', async ({ page }) => {
    await open(page);
    const batch = page.getByLabel('Batch', { exact: true });
    const identify = page.locator('.identify').getByRole('button', { name: 'Identify' });
    const selected = () => batch.evaluate((box: HTMLTextAreaElement) => box.value.slice(box.selectionStart, box.selectionEnd));

    await batch.fill('logprobs = [[-1, x2]]');
    expect(await page.locator('#batch-report').textContent()).toContain('line 1, column 18: “x2” is no number');
    expect(await identify.isDisabled()).toBe(true);
    await page.getByRole('button', { name: 'show' }).click();
    expect(await selected()).toBe('x2');

    await batch.fill('[[-1, -2]]');
    expect(await page.locator('#batch-report').textContent()).toContain('give each array its name');

    const refused = async (asked: string, loss: string, message: string, place: string | null) => {
      await batch.fill(asked);
      await page.getByLabel('Printed loss').fill(loss);
      await identify.click();
      const alert = page.locator('.identify').getByRole('alert').getByText(message);
      await alert.waitFor({ timeout: 60_000 });
      if (place === null) return;
      await page.locator('.identify').getByRole('alert').getByRole('button', { name: 'show' }).click();
      expect(await selected()).toBe(place);
    };
    await refused(text('', [[1, 1, 1, 1], [1, 0.5, 0, 0], [1, 0, 0, 0]]), '0.5', '`mask` at index 5 is 0.5, legal is 0 or 1', '0.5');
    await refused(text().replace('-2]', 'nan]'), '0.5', '`log_prob` at index 3 is not finite', 'nan');
    await refused(text(), 'low', '`loss` is `low`, which is no number', null);
    await refused(text(), '', 'the printed number is missing', null);
    await refused('old_log_prob = [[-1, -2]]', '0.5', 'also needs', null);
  });
});

test('a long search shows how far it is, leaves the page free, and can be stopped', async () => {
  await visit('', async ({ page }) => {
    await open(page);
    const row = (at: number, scale: number) => Array.from({ length: 256 }, (_, token) => Number((-0.1 - scale * ((at * 31 + token * 17) % 97)).toFixed(4)));
    const rows = (scale: number) => JSON.stringify(Array.from({ length: 32 }, (_, at) => row(at, scale)));
    await page.getByLabel('Batch', { exact: true }).fill(`log_prob = ${rows(0.01)}\nold_log_prob = ${rows(0.011)}\nadvantage = ${JSON.stringify(Array.from({ length: 32 }, (_, at) => (at % 5) - 1.5))}`);
    await page.getByLabel('Printed loss').fill('77.123456');
    await page.locator('.identify').getByRole('button', { name: 'Identify' }).click();
    // The first search ends after a second or two and says what it left out.
    await page.locator('[data-conclusion=unknown]').waitFor({ timeout: 60_000 });
    await page.getByRole('button', { name: 'Search longer' }).click();
    await page.locator('.searching').getByText('points looked at').waitFor({ timeout: 60_000 });
    expect(await page.getByRole('progressbar', { name: 'Search' }).getAttribute('max')).toMatch(/^[1-9]/);
    // Frames go on while it searches.
    const longest = await page.evaluate(async () => {
      let last = performance.now();
      let worst = 0;
      for (let frame = 0; frame < 20; frame += 1) {
        await new Promise(requestAnimationFrame);
        worst = Math.max(worst, performance.now() - last);
        last = performance.now();
      }
      return worst;
    });
    expect(longest).toBeLessThan(400);
    await page.getByRole('button', { name: 'Stop' }).click();
    expect(await page.locator('.searching').count()).toBe(0);
    expect(await page.locator('[data-conclusion]').count()).toBe(0);
    expect(await page.locator('.identify').getByRole('button', { name: 'Identify' }).isEnabled()).toBe(true);
  });
});

test('by the keyboard alone, and from an answer to the formula', async () => {
  await visit('', async ({ page }) => {
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent?.trim() ?? '');
    const tabTo = async (wanted: string) => {
      for (let presses = 0; presses < 400; presses += 1) {
        await page.keyboard.press('Tab');
        if ((await focused()) === wanted) return;
      }
      throw new Error(`the keyboard does not come to “${wanted}”`);
    };
    await tabTo('Identify');
    await page.keyboard.press('Enter');
    await page.getByLabel('Batch', { exact: true }).waitFor();
    await tabTo('Batch');
    await page.keyboard.insertText(text());
    await tabTo('Printed loss');
    await page.keyboard.type(String(SEQUENCES.loss));
    await page.keyboard.press('Enter');
    await page.locator('[data-conclusion=known]').waitFor({ timeout: 60_000 });
    expect(await focused()).toBe('Printed loss');
    await tabTo('Identify');
    await tabTo('GRPO');
    await page.keyboard.press('Enter');
    expect(await page.locator('h1').textContent()).toBe('GRPO');
  });
});
