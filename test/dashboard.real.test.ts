// The dashboard in a real browser against a real server: each page, its main actions, a server that dies and comes back, and names made to
// do harm. Every test fails on an error of the console, a refused style or script, or an unexpected answer.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dashboardBrowser, noBrowser } from './dashboard-browser.ts';
import { type Fleet, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;
const browser = dashboardBrowser();

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
});
afterAll(async () => {
  await fleet?.stop();
  if (directory) await rm(directory, { recursive: true, force: true });
});

const enter = (path = ''): Promise<void> => browser.enter(fleet, path);

describe.skipIf(noBrowser !== undefined)(`the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('is entered by a link, which leaves nothing in the address, and left again', async () => {
    await enter();
    expect(browser.page.url()).toBe(`${fleet.url}/ui/`);
    expect(await browser.page.evaluate('document.cookie')).toBe('');
    await browser.page.getByRole('button', { name: 'Log out' }).click();
    await browser.page.getByRole('heading', { name: 'Log in to Berth' }).waitFor();
    browser.expectFaults(/401/); // who looks is asked before the login
  });

  it('is entered by a token, and says why not by a wrong one', async () => {
    await browser.page.goto(fleet.url);
    await browser.page.getByLabel('Token').first().fill('berth_s_wrong');
    await browser.page.getByRole('button', { name: 'Log in' }).click();
    await browser.page.getByRole('alert').getByText('not complete, or mistyped').waitFor();
    await browser.page.getByLabel('Token').first().fill(fleet.environment.BERTH_TOKEN);
    await browser.page.getByRole('button', { name: 'Log in' }).click();
    await browser.page.getByRole('heading', { name: 'Fleet' }).waitFor();
    browser.expectFaults(/401/);
  });

  it('shows every list', async () => {
    await enter();
    const names = await browser.page.getByRole('navigation').getByRole('link').allTextContents();
    expect(names.length).toBeGreaterThan(15);
    for (const name of names) {
      await browser.page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
      await browser.page.getByRole('heading', { level: 1, name: name === 'Overview' ? 'Fleet' : name }).waitFor();
    }
  });

  it('shows a change as it happens', async () => {
    await enter('/instances');
    await browser.page.getByRole('cell', { name: 'web-1' }).waitFor();
    await fleet.client.create('instance', { metadata: { name: 'late' }, spec: { image: 'tiny', cpus: 1 } });
    await browser.page.getByRole('cell', { name: 'late' }).waitFor();
    await fleet.client.delete('instance', 'late');
    await browser.page.getByRole('cell', { name: 'late' }).waitFor({ state: 'detached' });
  });

  it('shows an instance: its facts, how it came up, why it is there', async () => {
    await enter('/instances/web-1');
    await browser.page.getByText('How it came up').waitFor();
    await browser.page.getByRole('tab', { name: 'Why here' }).click();
    await browser.page.getByText('(its own)').waitFor();
    await browser.page.getByRole('tab', { name: 'YAML and events' }).click();
    await browser.page.getByText('kind: instance').waitFor();
  });

  it('stops and starts an instance', async () => {
    await enter('/instances/web-1');
    await browser.page.getByRole('button', { name: 'Stop' }).click();
    await browser.page.getByRole('button', { name: 'Start' }).waitFor();
    await browser.page.getByRole('button', { name: 'Start' }).click();
    await browser.page.getByRole('button', { name: 'Stop' }).waitFor();
  });

  it.each(['/', '/instances', '/instances/web-1', '/instances/huge?tab=why', '/hosts/h1', '/pending', '/events'])(
    'has no serious fault for people who cannot see or use a mouse: %s, in light and dark, and on a phone',
    async (path) => {
      for (const [colorScheme, width] of [
        ['light', 1280],
        ['dark', 1280],
        ['light', 360],
      ] as const) {
        await browser.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await browser.page.setViewportSize({ width, height: 800 });
        await enter(path);
        await browser.page.locator('[data-standing=live], [role=table], [role=status]').first().waitFor();
        expect([colorScheme, width, ...(await browser.accessibilityFaults())]).toEqual([colorScheme, width]);
      }
    },
  );

  it('says what waits, and why', async () => {
    await enter('/pending');
    await browser.page.getByRole('cell', { name: 'huge' }).waitFor();
    await browser.page.getByText('1 wait for room.').waitFor();
  });
});
