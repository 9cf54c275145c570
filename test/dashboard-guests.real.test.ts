// The ways into a real guest from a real browser: its log, its serial console and its screen.

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dashboardBrowser, noBrowser } from './dashboard-browser.ts';
import { type Fleet, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

let directory: string;
let fleet: Fleet;
const browser = dashboardBrowser();

beforeAll(async () => {
  if (noBrowser) return;
  const tiny = await tinyImage();
  directory = await mkdtemp(join(tmpdir(), 'berth-dashboard-'));
  await chmod(directory, 0o711); // so that QEMU runs as a user of its own
  fleet = await startFleet(directory);
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
  await fleet.client.create('instance', {
    metadata: { name: 'web' },
    spec: { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 0 },
  });
  await fleet.ready('web');
}, 120_000);
afterAll(async () => {
  await fleet?.removeAll();
  await fleet?.stop();
  if (directory) await rm(directory, { recursive: true, force: true });
});

describe.skipIf(noBrowser !== undefined)(`a guest in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('shows its log as it comes', async () => {
    await browser.enter(fleet, '/instances/web?tab=log');
    await browser.page.getByRole('region', { name: 'Console log' }).getByText('berth: ready').first().waitFor();
  });

  it('has a console that takes keys, keeps colours, and does not do what the guest says', async () => {
    await browser.enter(fleet, '/instances/web?tab=console');
    const { page } = browser;
    await page.getByText('Connected', { exact: true }).waitFor();
    const title = await page.title();
    const terminal = page.getByRole('region', { name: 'Serial console' });
    await terminal.click();
    await page.keyboard.type(
      String.raw`printf '\033]0;planted\007\033]52;c;cGxhbnRlZA==\007\033[38;2;10;200;30m%s\033[0m\n' gre''en`,
    );
    await page.keyboard.press('Enter');
    const green = terminal.locator('span', { hasText: /^green$/ });
    await green.first().waitFor();
    const styles = await green.first().getAttribute('style');
    expect(styles).toContain('rgb(10, 200, 30)');
    expect(await page.title()).toBe(title);
    expect(await browser.accessibilityFaults()).toEqual([]);
  });

  it('shows what it uses', async () => {
    await expect
      .poll(() => fleet.client.instanceUsage('web').catch(() => undefined), { timeout: 30_000 })
      .toBeDefined();
    await browser.enter(fleet, '/instances/web?tab=metrics');
    const metrics = browser.page.getByRole('region', { name: 'Metrics' });
    await metrics.getByText(/^\d[\d.]* MiB$/).waitFor();
    expect(await browser.accessibilityFaults()).toEqual([]);
    await browser.visit('/?colour=use');
    await browser.page.getByRole('list', { name: 'Legend' }).getByText('up to 50 %: 1').waitFor();
  });

  it('has a screen', async () => {
    await browser.enter(fleet, '/instances/web?tab=screen');
    await browser.page.getByText('Connected', { exact: true }).waitFor();
    const canvas = browser.page.getByRole('region', { name: 'Screen' }).locator('canvas');
    const { width = 0 } = (await canvas.boundingBox()) ?? {};
    expect(width).toBeGreaterThan(300);
  });

  it('says why it takes no command from a browser', async () => {
    await browser.enter(fleet, '/instances/web?tab=exec');
    await browser.page.getByRole('button', { name: 'Run' }).click();
    await browser.page.getByText(/ssh/i).first().waitFor();
    browser.expectFaults(/WebSocket/);
  });
});
