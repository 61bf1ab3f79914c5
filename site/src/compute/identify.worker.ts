// The search of `identify`, beside the page so that the page stays quick.

import { identify, init } from 'plumbline-rl/identify';
import type { Question, Report } from './identify';

/** How often the page is told how far the search is (ms). */
const PAUSE = 100;

self.addEventListener('message', async ({ data: question }: MessageEvent<Question>) => {
  const report = (message: Report) => self.postMessage(message);
  let tried = 0;
  let told = 0;
  const onProgress = (done: number, of: number) => {
    tried += 1;
    if (performance.now() - told < PAUSE) return;
    told = performance.now();
    report({ progress: { tried, done, of } });
  };
  try {
    await init();
    report({ answer: identify({ ...question, onProgress }) });
  } catch (error) {
    const { message, argument = null, index = null } = error as { message: string; argument?: string; index?: number };
    report({ refusal: { message, argument, index } });
  }
});
