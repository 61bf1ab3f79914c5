// A browser on the built page. Every test ends with: nothing was said on the console, nothing was fetched from elsewhere.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deflateSync, strToU8 } from 'fflate';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { serve, type Served } from './serve';

export const SITE = process.env.PLUMBLINE_SITE ?? fileURLToPath(new URL('../../../target/site', import.meta.url));
const CHROMIUM = process.env.PLUMBLINE_CHROMIUM ?? '/usr/bin/chromium';

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let browser: Browser;
let served: Served;

beforeAll(async () => {
  if (!existsSync(SITE)) throw new Error(`${SITE} is not there: build the page first`);
  served = await serve(SITE);
  browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, headless: true });
}, 60_000);

afterAll(async () => {
  await browser?.close();
  await served?.close();
});

export function address(hash = ''): string {
  return served.url + hash;
}

export async function stopServing(): Promise<void> {
  await served.close();
}

export interface Visit {
  page: Page;
  context: BrowserContext;
  /** What the console said and what failed, so far. */
  complaints: string[];
}

/** Run a test on a page of its own. */
export async function visit(hash: string, test: (visit: Visit) => Promise<void>, options: BrowserContextOptions = {}): Promise<void> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 1000 }, ...options });
  const complaints: string[] = [];
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(served.url) && !url.startsWith('blob:') && !url.startsWith('data:')) complaints.push(`fetched ${url}`);
  });
  try {
    await page.goto(address(hash));
    await ready(page);
    await test({ page, context, complaints });
    expect(complaints).toEqual([]);
  } catch (error) {
    // What the console said is most often why.
    if (complaints.length > 0) throw new Error(`${String(error)}\n${complaints.join('\n')}`, { cause: error });
    throw error;
  } finally {
    await context.close();
  }
}

export async function ready(page: Page): Promise<void> {
  await page.waitForSelector('html[data-ready]', { state: 'attached', timeout: 30_000 });
}

/** Go to another address of the same page and wait until it shows that operation. */
export async function go(page: Page, hash: string, operation: string): Promise<void> {
  await page.evaluate((next) => {
    location.hash = next;
  }, hash);
  await page.waitForSelector(`[data-operation="${operation}"]`, { timeout: 20_000 });
  // The state of the address is shown in the frame after the change.
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** All output bits that the page shows, by `output/index`. */
export async function shownBits(page: Page): Promise<Record<string, string>> {
  return page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll<HTMLElement>('[data-output]')].map((element) => [element.dataset.output!, element.dataset.bits!]),
    ),
  );
}

export interface LinkPayload {
  d?: string;
  t?: 'f32' | 'f64';
  p?: Record<string, unknown>;
  i: Record<string, [number[], (number | string)[]]>;
}

/** A link of version 1, written here a second time so that the page's own writer is not what is tested with itself. */
export function link(operation: string, payload: LinkPayload): string {
  const bytes = deflateSync(strToU8(JSON.stringify(payload)));
  return `#${operation}~1.${Buffer.from(bytes).toString('base64url')}`;
}
