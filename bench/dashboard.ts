// Suite `dashboard`: how soon the dashboard shows a large fleet, how soon a change, and how smoothly its longest list scrolls. In Chromium,
// against the package as users install it.

import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { createClient } from '../src/api/client/client.ts';
import { metricsScrapeMs, serverCostRatio } from './dashboard-cost.ts';
import { type Emit, median, percentile } from './row.ts';
import { buildProduct, type ServerProcess, startServerProcess } from './server-process.ts';
import { fillStore, instanceNameOf, projectNameOf } from './store-fleet.ts';

const size = { hosts: 5_000, instances: 100_000, projects: 50, events: 0 };
const firstViews = 3;
const changes = 60;
const scrollMs = 3_000;
const patienceMs = 120_000;

export async function run(emit: Emit): Promise<void> {
  buildProduct();
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-'));
  let server: ServerProcess | undefined;
  let browser: Browser | undefined;
  try {
    await fillStore(`sqlite:${join(directory, 'berth.db')}`, size);
    server = await startServerProcess(directory);
    browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox', '--disable-gpu'] });
    await measure({ server, browser, emit });
  } finally {
    await browser?.close();
    await server?.kill();
    await rm(directory, { recursive: true, force: true });
  }
}

function chromiumPath(): string {
  return execFileSync('sh', ['-c', 'command -v chromium'], { encoding: 'utf8' }).trim();
}

async function measure({
  server,
  browser,
  emit,
}: {
  readonly server: ServerProcess;
  readonly browser: Browser;
  readonly emit: Emit;
}): Promise<void> {
  const client = createClient({ fetch, url: server.url, token: server.operatorToken });
  const entry = await browser.newContext();
  const login = await entry.newPage();
  await login.goto(server.url + (await client.createSessionLink()).path);
  await login.getByRole('button', { name: 'Log out' }).waitFor();
  const cookies = await entry.cookies();
  await entry.close();

  emit({
    suite: 'dashboard',
    name: 'metrics_scrape_ms',
    value: await metricsScrapeMs(server),
    unit: 'ms',
    better: 'lower',
    goal: 50,
  });

  const views: number[] = [];
  for (let i = 0; i < firstViews; i++) {
    const context = await browser.newContext(); // with an empty cache
    await context.addCookies(cookies);
    const page = await context.newPage();
    await page.goto(`${server.url}/ui/`, { waitUntil: 'commit' });
    await page.getByRole('application', { name: `Map of ${size.hosts} hosts` }).waitFor({ timeout: patienceMs });
    views.push(await page.evaluate<number>(nextPaint('performance.now()')));
    await context.close();
  }
  emit({ suite: 'dashboard', name: 'first_view_ms', value: median(views), unit: 'ms', better: 'lower', goal: 800 });

  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  await context.addCookies(cookies);
  const page = await context.newPage();
  await page.goto(`${server.url}/ui/instances`);
  await page.getByText(`${size.instances} instances`).waitFor({ timeout: patienceMs });

  const latencies: number[] = [];
  for (let i = 0; i < changes; i++) {
    const name = instanceNameOf(i);
    const project = projectNameOf(i % size.projects);
    const { spec } = await client.get('instance', name, { project });
    const sentMs = Date.now(); // the commit is later: the figure has the request too
    const { metadata } = await client.replace('instance', name, {
      metadata: { project, labels: { i: String(i) } },
      spec,
    });
    latencies.push((await paintedAtMs(page, metadata.revision)) - sentMs);
  }
  emit({
    suite: 'dashboard',
    name: 'live_update_p99_ms',
    value: percentile(latencies, 0.99),
    unit: 'ms',
    better: 'lower',
    goal: 100,
  });

  const fps = await page.evaluate<number>(scrolling);
  emit({
    suite: 'dashboard',
    name: 'list_scroll_fps',
    value: fps,
    unit: 'frames/s',
    better: 'higher',
    goal: 55,
    limit: await bareScrollFps(context),
  });
  const ratio = await serverCostRatio({ server, client, context, projects: size.projects });
  emit({ suite: 'dashboard', name: 'server_cost_ratio', value: ratio, unit: 'x', better: 'lower', goal: 1.2 });
  await context.close();
}

/** Code for the page: a value after what is there now was painted. */
function nextPaint(value: string): string {
  return `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(${value}))))`;
}

/** When the page had painted this revision, by the clock of the machine. */
async function paintedAtMs(page: Page, revision: number): Promise<number> {
  return page.evaluate<number>(`new Promise((resolve) => {
    const at = document.querySelector('[data-revision]');
    const look = () => {
      if (Number(at.dataset.revision) < ${revision}) return;
      observer.disconnect();
      ${nextPaint('Date.now()')}.then(resolve);
    };
    const observer = new MutationObserver(look);
    observer.observe(at, { attributes: true });
    look();
  })`);
}

/** Of a page without any script that has as many rows and cells as the list comes by in this time: what the browser draws at most here. */
async function bareScrollFps(context: BrowserContext): Promise<number> {
  const page = await context.newPage();
  const cells = '<div>some text</div>'.repeat(7);
  const row = `<div class="row"><input type="checkbox">${cells}</div>`;
  await page.setContent(`<style>
    [role=region] { height: 560px; overflow: auto }
    .row { display: grid; grid-template-columns: 1rem repeat(7, 1fr); height: 35px; border-bottom: 1px solid #ccc }
  </style><div role="region" aria-label="Instances">${row.repeat(1_000)}</div>`);
  const fps = await page.evaluate<number>(scrolling);
  await page.close();
  return fps;
}

/** Code for the page: scrolls as fast as it can be drawn, and counts the frames. */
const scrolling = `new Promise((resolve) => {
  const list = document.querySelector('[role=region][aria-label=Instances]');
  const startedMs = performance.now();
  let frames = 0;
  const step = () => {
    frames += 1;
    list.scrollTop += 180;
    const tookMs = performance.now() - startedMs;
    if (tookMs < ${scrollMs}) requestAnimationFrame(step);
    else resolve((1000 * frames) / tookMs);
  };
  requestAnimationFrame(step);
})`;
