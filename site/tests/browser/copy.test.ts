// What is copied as code runs, and gives the page's numbers.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { link, visit } from './harness';

const STATE = link('objective.grpo', {
  p: { clip_ratio_high: 0.28 },
  i: {
    log_prob: [[2, 3], [-0.5, -1, -0.75, -2, -1.5, -0.25]],
    old_log_prob: [[2, 3], [-1, -0.5, -0.75, -1.75, -1.25, -0.5]],
    advantage: [[2], [1.5, -1]],
    mask: [[2, 3], [1, 1, 1, 1, 1, 0]],
  },
});

async function copied(format: string): Promise<string> {
  let text = '';
  await visit(STATE, async ({ page }) => {
    await page.getByRole('button', { name: 'Copy as…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.locator('.chip', { hasText: format }).click();
    text = await dialog.getByRole('textbox').inputValue();
  });
  return text;
}

test('the Rust program compiles, and core gives it the bits that the page shows', async () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url));
  const project = `${root}/target/copied`;
  mkdirSync(`${project}/src`, { recursive: true });
  writeFileSync(`${project}/src/main.rs`, await copied('Rust'));
  writeFileSync(`${project}/Cargo.toml`, `[package]\nname = "copied"\nedition = "2024"\n\n[dependencies]\nplumbline-core = { path = "../../core" }\n\n[workspace]\n`);
  execFileSync('cargo', ['run', '--quiet', '--offline', '--manifest-path', `${project}/Cargo.toml`, '--target-dir', `${project}/target`], { stdio: 'pipe' });
});

/** PPO's clipped loss, a mean over each response and over the responses, as somebody would write it with torch. */
const IMPLEMENTATION = `
def your_function(log_prob, old_log_prob, advantage, mask):
    ratio = torch.exp(log_prob - old_log_prob)
    bounded = torch.clamp(ratio, 1 - settings["clip_ratio_low"], 1 + settings["clip_ratio_high"])
    loss = -torch.minimum(ratio * advantage[:, None], bounded * advantage[:, None])
    kept = mask.to(loss.dtype)
    return ((loss * kept).sum(1) / kept.sum(1)).mean()
`;

const PYTHON = process.env.PLUMBLINE_PYTHON ?? 'python3';
const hasTorch = spawnSync(PYTHON, ['-c', 'import torch']).status === 0;

test.skipIf(!hasTorch)('the Python program finds that torch gives the page’s loss and gradient', async () => {
  const program = await copied('Python');
  const complete = (loss: string) => program.replace('# Your implementation', `${IMPLEMENTATION}\n# Your implementation`).replace(/\n(\w+ = your_function\(.*\))\n/, `\n$1${loss}\n`);
  const run = (text: string) => spawnSync(PYTHON, ['-'], { input: text, encoding: 'utf8', env: { ...process.env, CUDA_VISIBLE_DEVICES: '', OMP_NUM_THREADS: '1' } });
  const right = run(complete(''));
  expect(right.stderr).toBe('');
  expect(right.status).toBe(0);
  // It compares: a loss that is another one is refused.
  expect(run(complete(' * 1.001')).stderr).toContain('AssertionError');
});
