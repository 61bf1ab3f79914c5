// Plots, two formulas side by side, the map, copies, the hash of the bits, and how fast it is.

import { execFileSync } from 'node:child_process';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { go, link, visit } from './harness';
import { COMMAND } from './native';

const TWO = link('objective.grpo', {
  i: { log_prob: [[1, 2], [-0.5, -1]], old_log_prob: [[1, 2], [-1, -0.5]], advantage: [[1, 2], [1, -1]] },
});

test('loss and gradient against the log-ratio, with the regions of the clip and the chosen token', async () => {
  await visit(TWO, async ({ page }) => {
    const positive = page.getByRole('img', { name: /^One token, A > 0/ });
    const text = (await positive.getAttribute('aria-label'))!;
    expect(text).toContain('The clip bounds are ratios 0.8 and 1.2.');
    // ln 1.2 = 0.1823: beyond it the loss is flat.
    expect(text).toMatch(/The gradient is 0 for log-ratios from 0\.1[89]\d* to 1\.2\./);
    expect(text).toContain('The chosen token has log-ratio 0.5.');
    expect(await positive.locator('text', { hasText: 'gain taken' }).count()).toBe(1);
    expect(await positive.locator('circle.point').count()).toBe(2);
    const negative = page.getByRole('img', { name: /^One token, A < 0/ });
    expect(await negative.getAttribute('aria-label')).toMatch(/The gradient is 0 for log-ratios from −1\.2 to −0\.2[23]\d*\./);
    expect(await negative.locator('text', { hasText: 'loss taken' }).count()).toBe(1);
    expect(await negative.locator('circle.point').count()).toBe(0);
    // Another token, another point.
    await page.locator('[data-cell="log_prob/1"] input').focus();
    expect(await negative.locator('circle.point').count()).toBe(2);
    expect(await positive.locator('circle.point').count()).toBe(0);
    // The picture as a file.
    await page.locator('details.alternative summary').first().click();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download the plot (SVG)' }).first().click();
    expect((await saved).suggestedFilename()).toBe('one-token-a-0.svg');
  });
});

/** Each plot says its numbers in words; a few of them are known. */
const SAYS: [operation: string, name: RegExp, text: RegExp][] = [
  ['reduce.aggregate', /^Weight of each token/, /Responses of 6, 3, 5 tokens\..*token_mean: a token of the responses weighs 0\.0714286, 0\.0714286, 0\.0714286/],
  ['kl.categorical_estimators', /^Mean and spread/, /k1 has bias 0|k1 has bias −?\d(\.\d+)?e−1\d/],
  ['kl.k3', /^The estimators against/, /k2 goes from 2 to 2; k3, k3_plus goes from 4\.38906 to 1\.13534/],
  ['kl.gaussian_fit', /^The mixture and the two fits/, /it covers the mixture.*it seeks a mode/],
  ['advantage.group_mean', /^Rewards and advantages/, /group 0: rewards .* become /],
  ['advantage.gae', /under gae_lambda/, /λ = 0: .*λ = 0\.5: .*λ = 1/],
  ['reward.overlong', /^Penalty against length/, /falling to −1 beyond/],
  ['bellman.value_iteration', /^Value iteration on a 4 × 4 grid, 2 sweeps/, /Values row by row: 0, −1, /],
  ['td.q_learning', /^From the value now/, /Transition 0: .* towards /],
];

test('every kind of plot says in words what it shows', async () => {
  await visit('', async ({ page }) => {
    for (const [operation, name, text] of SAYS) {
      await go(page, `#${operation}`, operation);
      const label = await page.getByRole('img', { name }).first().getAttribute('aria-label');
      expect(label, operation).toMatch(text);
    }
    await go(page, '#bellman.value_iteration', 'bellman.value_iteration');
    await page.getByRole('button', { name: 'One sweep on' }).click();
    expect(await page.getByRole('img', { name: /3 sweeps/ }).count()).toBe(1);
    // Any output against any number.
    await go(page, '#kl.k2', 'kl.k2');
    await page.getByLabel('Horizontal axis').selectOption({ label: 'ref_log_prob' });
    expect(await page.getByRole('img', { name: /^kl at response 0, token 0 against ref_log_prob/ }).count()).toBe(1);
  });
});

test('two formulas stand side by side, with what differs marked', async () => {
  await visit(TWO, async ({ page }) => {
    await page.getByLabel('Formula to compare with').selectOption({ label: 'GSPO' });
    const marked = () => page.locator('[data-differs]').evaluateAll((rows) => rows.map((row) => (row as HTMLElement).dataset.differs));
    expect(await marked()).toEqual(expect.arrayContaining(['ratio_level', 'clip_ratio_low', 'clip_ratio_high', 'loss', 'ratio_max', 'token_loss']));
    await page.getByLabel('Formula to compare with').selectOption({ label: 'defaults' });
    expect(await marked()).toEqual([]);
    await page.getByLabel('Formula to compare with').selectOption({ label: 'paper' });
    expect(await marked()).toEqual(['kl_coefficient']);
    expect(await page.locator('.compare [role=alert]').textContent()).toContain('ref_log_prob');
    await page.getByLabel('Formula to compare with').selectOption({ label: 'DAPO' });
    await page.getByRole('button', { name: 'Swap' }).click();
    expect(await page.locator('h1').textContent()).toBe('DAPO');
    await page.getByRole('button', { name: 'Close' }).click();
    expect(await page.locator('[data-differs]').count()).toBe(0);
  });
});

test('the map tells what each algorithm changes in the one it starts from', async () => {
  await visit('', async ({ page }) => {
    await page.getByRole('button', { name: 'Algorithm map' }).click();
    expect(await page.locator('[data-algorithm]').count()).toBeGreaterThan(20);
    const dapo = page.locator('[data-algorithm="objective.dapo"] > .algorithm');
    expect(await dapo.textContent()).toContain('clip_ratio_high 0.2 → 0.28');
    expect(await dapo.textContent()).toContain('aggregation seq mean token mean → token mean');
    await dapo.getByRole('button', { name: 'beside GRPO' }).click();
    expect(await page.locator('h1').textContent()).toBe('DAPO');
    expect(await page.locator('[data-differs=clip_ratio_high]').count()).toBe(1);
  });
});

test('the state is copied as code, vector and settings', async () => {
  await visit(TWO, async ({ page, context }) => {
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy as…' }).click();
    const dialog = page.getByRole('dialog');
    const text = () => dialog.getByRole('textbox').inputValue();
    const choose = (name: string) => dialog.locator('.chip', { hasText: name }).click();
    execFileSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], { input: await text() });
    await choose('JSON vector');
    const vector = JSON.parse(await text()) as { operation: string; inputs: Record<string, { bits: string[] }>; expected: Record<string, { values: number[] }> };
    expect(vector.operation).toBe('objective.grpo');
    expect(vector.inputs.log_prob!.bits).toEqual(['bfe0000000000000', 'bff0000000000000']);
    expect(vector.expected.loss!.values[0]).toBeCloseTo(-0.2, 15);
    await choose('TRL');
    execFileSync('python3', ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'], { input: await text() });
    await choose('verl');
    expect(await text()).toContain('actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean');
    await dialog.getByRole('button', { name: 'Copy', exact: true }).click();
    await dialog.getByText('copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(await text());
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByText('link copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('#objective.grpo~1.');
  });
});

test('the hash of all bits is the one that the native command gives', async () => {
  await visit('#objective.gspo', async ({ page }) => {
    await page.getByText('The same bits on your machine').click();
    const shown = page.locator('.hash');
    await page.waitForFunction(() => document.querySelector('.hash')?.textContent?.length === 64);
    const command = await page.getByLabel('Command that computes the hash').inputValue();
    const native = execFileSync('sh', ['-c', command], { env: { ...process.env, PATH: `${dirname(COMMAND)}:${process.env.PATH}` }, encoding: 'utf8' });
    expect(await shown.textContent()).toBe(native.trim());
  });
});

test('64 × 512 tokens are recomputed within a frame, and the first view is light', async () => {
  await visit('#objective.grpo', async ({ page, context }) => {
    const bytes = await page.evaluate(() =>
      performance.getEntriesByType('resource').reduce((sum, entry) => sum + (entry as PerformanceResourceTiming).decodedBodySize, 0),
    );
    const painted = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]!.startTime);
    await page.getByLabel('Number of responses').fill('64');
    await page.getByLabel('Number of tokens').fill('512');
    await page.waitForTimeout(500);
    const session = await context.newCDPSession(page);
    // The page's own time: other work of the machine does not count.
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const spent = async () => {
      const { metrics } = await session.send('Performance.getMetrics');
      return 1000 * metrics.find((metric) => metric.name === 'ScriptDuration')!.value;
    };
    const times: number[] = [];
    for (let round = 0; round < 21; round += 1) {
      const before = await spent();
      await page.evaluate(async (position) => {
        const slider = document.querySelector<HTMLInputElement>('[aria-label="clip_ratio_high, slider"]')!;
        slider.value = String(position);
        slider.dispatchEvent(new Event('input', { bubbles: true }));
        for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
      }, 200 + 7 * round);
      times.push((await spent()) - before);
    }
    times.sort((left, right) => left - right);
    console.log(`64 × 512 tokens: ${times[10]!.toFixed(1)} ms (median of 21); first paint after ${painted.toFixed(0)} ms, ${Math.round(bytes / 1024)} KiB before compression`);
    // The lower quartile: what the machine does beside it makes the others slower.
    expect(times[5]!).toBeLessThan(16);
    expect(bytes).toBeLessThan(3 * 1024 * 1024);
  });
});
