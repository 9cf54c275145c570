// The dashboard in a real browser against a real server: each page, its main actions, a server that dies and comes back, and names made to
// do harm. Every test fails on an error of the console, a refused style or script, or an unexpected answer.

import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe, { type AxeResults } from 'axe-core';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fleet, startFleet } from './processes.ts';

const program = '/usr/bin/chromium';
const noBrowser = existsSync(program) ? undefined : 'no browser is installed (package chromium)';

let directory: string;
let fleet: Fleet;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let faults: string[];

beforeAll(async () => {
  if (noBrowser) return;
  directory = await mkdtemp(join(tmpdir(), 'berth-dashboard-'));
  fleet = await startFleet(directory, { drivers: ['fake'] });
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'https://images.example/tiny.qcow2' },
  });
  await fleet.client.create('instance', {
    metadata: { name: 'web-1' },
    spec: { image: 'tiny', cpus: 1 },
  });
  await fleet.client.create('instance', { metadata: { name: 'huge' }, spec: { image: 'tiny', cpus: 1_000 } });
  browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
});
afterAll(async () => {
  await browser?.close();
  await fleet?.stop();
  if (directory) await rm(directory, { recursive: true, force: true });
});

beforeEach(async () => {
  if (noBrowser) return;
  faults = [];
  context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
  });
  page = await context.newPage();
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(`console: ${message.text()}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) faults.push(`${response.status()} ${response.url()}`);
  });
});
afterEach(async () => {
  await context?.close();
  if (!noBrowser && faults.length > 0) throw new Error(faults.join('\n'));
});

/** What axe finds, of those findings that keep people out. */
async function accessibilityFaults(of: Page): Promise<readonly string[]> {
  await of.evaluate(axe.source);
  const found = (await of.evaluate('axe.run()')) as AxeResults; // its own type
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
}

async function enter(path = ''): Promise<void> {
  const link = await fleet.client.createSessionLink();
  await page.goto(`${fleet.url}${link.path}`);
  await page.getByRole('heading', { name: 'Fleet' }).waitFor();
  if (path !== '') await page.goto(`${fleet.url}/ui${path}`);
}

describe.skipIf(noBrowser !== undefined)(`the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('is entered by a link, which leaves nothing in the address, and left again', async () => {
    await enter();
    expect(page.url()).toBe(`${fleet.url}/ui/`);
    expect(await page.evaluate('document.cookie')).toBe('');
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByRole('heading', { name: 'Log in to Berth' }).waitFor();
    faults = faults.filter((fault) => !fault.includes('401')); // who looks is asked before the login
  });

  it('is entered by a token, and says why not by a wrong one', async () => {
    await page.goto(fleet.url);
    await page.getByLabel('Token').first().fill('berth_s_wrong');
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('alert').getByText('not complete, or mistyped').waitFor();
    await page.getByLabel('Token').first().fill(fleet.environment.BERTH_TOKEN);
    await page.getByRole('button', { name: 'Log in' }).click();
    await page.getByRole('heading', { name: 'Fleet' }).waitFor();
    faults = faults.filter((fault) => !fault.includes('401'));
  });

  it('shows every list', async () => {
    await enter();
    const names = await page.getByRole('navigation').getByRole('link').allTextContents();
    expect(names.length).toBeGreaterThan(15);
    for (const name of names) {
      await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
      await page.getByRole('heading', { level: 1, name: name === 'Overview' ? 'Fleet' : name }).waitFor();
    }
  });

  it('shows a change as it happens', async () => {
    await enter('/instances');
    await page.getByRole('cell', { name: 'web-1' }).waitFor();
    await fleet.client.create('instance', { metadata: { name: 'late' }, spec: { image: 'tiny', cpus: 1 } });
    await page.getByRole('cell', { name: 'late' }).waitFor();
    await fleet.client.delete('instance', 'late');
    await page.getByRole('cell', { name: 'late' }).waitFor({ state: 'detached' });
  });

  it('shows an instance: its facts, how it came up, why it is there', async () => {
    await enter('/instances/web-1');
    await page.getByText('How it came up').waitFor();
    await page.getByRole('tab', { name: 'Why here' }).click();
    await page.getByText('(its own)').waitFor();
    await page.getByRole('tab', { name: 'YAML and events' }).click();
    await page.getByText('kind: instance').waitFor();
  });

  it('stops and starts an instance', async () => {
    await enter('/instances/web-1');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByRole('button', { name: 'Start' }).waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByRole('button', { name: 'Stop' }).waitFor();
  });

  it.each(['/', '/instances', '/instances/web-1', '/instances/huge?tab=why', '/hosts/h1', '/pending', '/events'])(
    'has no serious fault for people who cannot see or use a mouse: %s, in light and dark, and on a phone',
    async (path) => {
      for (const [colorScheme, width] of [
        ['light', 1280],
        ['dark', 1280],
        ['light', 360],
      ] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.setViewportSize({ width, height: 800 });
        await enter(path);
        await page.locator('[data-standing=live], [role=table], [role=status]').first().waitFor();
        expect([colorScheme, width, ...(await accessibilityFaults(page))]).toEqual([colorScheme, width]);
      }
    },
  );

  it('says what waits, and why', async () => {
    await enter('/pending');
    await page.getByRole('cell', { name: 'huge' }).waitFor();
    await page.getByText('1 wait for room.').waitFor();
  });
});
