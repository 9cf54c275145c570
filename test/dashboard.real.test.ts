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

/** Over all that is there, as a user pastes; typing would indent by itself. */
async function pasteInto(name: string, text: string): Promise<void> {
  const editor = browser.page.getByRole('textbox', { name });
  await editor.click();
  await browser.page.keyboard.press('ControlOrMeta+a');
  await browser.page.evaluate(`{
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', ${JSON.stringify(text)});
    document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }`);
}

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

  it('shows a host: what of it is claimed, and what it holds', async () => {
    await enter('/hosts/h1');
    const { page } = browser;
    await page.getByText(/% of .* VCPU/).waitFor();
    await page.getByRole('tab', { name: 'What it holds' }).click();
    await page.getByRole('cell', { name: 'web-1' }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('Ready', { exact: true }).first().waitFor();
  });

  it('says how much room the fleet has, and whether it survives the loss of a host', async () => {
    await fleet.client.create('size', { metadata: { name: 'medium' }, spec: { cpus: 1, memoryMiB: 128 } });
    await enter();
    await browser.page.getByText(/\d+ × medium/).waitFor();
    await browser.page.getByText(/Not everything would fit elsewhere/).waitFor(); // there is only one
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
      await enter(path);
      await browser.page.locator('[data-standing=live], [role=table], [role=status]').first().waitFor();
      expect(await browser.accessibilityFaultsInAllLooks()).toEqual([]);
    },
  );

  it('says what waits, and why', async () => {
    await enter('/pending');
    await browser.page.getByRole('cell', { name: 'huge' }).waitFor();
    await browser.page.getByText('1 instance waits for room.').waitFor();
  });

  it('shows which rule refuses which host, and what a change would do', async () => {
    await enter('/instances/huge?project=default&tab=why');
    const { page } = browser;
    const cells = page.getByRole('img', { name: /^InsufficientCpu|^Insufficient.*: / }).first();
    await cells.waitFor();
    expect(await cells.locator('span').count()).toBe(1);
    await page.getByRole('button', { name: /What if: request .* CPUs less/ }).click();
    await page.getByText('Then 1 hosts would fit').waitFor();
    expect(await browser.accessibilityFaults()).toEqual([]);
  });

  it('creates and changes a resource as YAML, with what the server says at the line', async () => {
    await enter('/images');
    const { page } = browser;
    await page.getByRole('link', { name: 'New image' }).click();
    await pasteInto('YAML of image', 'kind: image\nmetadata:\n  name: second\nspec:\n  source: nonsense\n');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByText('Line 5').waitFor();
    await pasteInto(
      'YAML of image',
      'kind: image\nmetadata:\n  name: second\nspec:\n  source: https://images.example/2.qcow2\n',
    );
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('The server accepts it').waitFor();
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { name: 'image second' }).waitFor();

    await page.getByRole('tab', { name: 'Edit' }).click();
    const labelled =
      'kind: image\nmetadata:\n  name: second\n  labels:\n    tier: front\nspec:\n  source: https://images.example/2.qcow2\n';
    await pasteInto('YAML of second', labelled);
    await page.getByRole('button', { name: 'Check' }).click();
    await page.getByText('labels.tier: absent → "front"').waitFor();
    expect(await browser.accessibilityFaults()).toEqual([]);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('region', { name: 'YAML' }).getByText('tier: front').waitFor();
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { level: 1, name: 'Images' }).waitFor();
    browser.expectFaults(/400/);
  });

  it('offers a viewer nothing that changes something', async () => {
    const { token } = await fleet.client.createToken({
      metadata: { name: 'looks', labels: {} },
      spec: { description: '', role: 'viewer' },
    });
    await browser.enter(fleet, '/instances/web-1', token);
    const { page } = browser;
    await page.getByText('How it came up').waitFor(); // the pages are listed as soon as it is known who looks
    const places = await page.getByRole('navigation').getByRole('link').allTextContents();
    expect([places.includes('Instances'), places.includes('Hosts'), places.includes('Tokens')]).toEqual([
      true,
      false,
      false,
    ]);
    expect(await page.getByRole('tab').allTextContents()).toEqual([
      'Overview',
      'Metrics',
      'Why here',
      'YAML and events',
    ]);
    for (const name of ['Stop', 'Start', 'Delete'])
      expect([name, await page.getByRole('button', { name }).count()]).toEqual([name, 0]);
    await page.goto(`${fleet.url}/ui/images`);
    await page.getByRole('cell', { name: 'tiny' }).first().waitFor();
    expect(await page.getByRole('link', { name: 'New image' }).count()).toBe(0);
    browser.expectFaults(/40[13]/);
  });

  it('shows hostile text as text', async () => {
    const hostile = [
      '<img src=x onerror="document.title=1">',
      '\u202egnp.exe',
      'a\u0000b\u001b[31m',
      'long '.repeat(2_000),
    ];
    await fleet.client.create('project', {
      metadata: { name: 'hostile' },
      spec: { description: hostile.join(' ').slice(0, 1_000) },
    });
    await enter('/projects/hostile');
    const { page } = browser;
    const yaml = page.getByRole('region', { name: 'YAML' });
    await yaml.getByText('onerror').waitFor();
    expect(await yaml.locator('img').count()).toBe(0);
    expect(await yaml.textContent()).toContain('U+202E');
    expect(await page.title()).toContain('hostile');
  });

  it('says that the server is gone, keeps what it has, and goes on by itself when it is back', async () => {
    await enter('/instances');
    const { page } = browser;
    await page.getByRole('cell', { name: 'web-1' }).waitFor();
    await fleet.killServer();
    await page.getByText('No connection to the server').waitFor();
    expect(await page.getByRole('cell', { name: 'web-1' }).count()).toBe(1);
    await fleet.restartServer();
    await page
      .getByRole('button', { name: 'Try now' })
      .click({ timeout: 2_000 })
      .catch(() => undefined); // it may be back already
    await page.getByText('No connection to the server').waitFor({ state: 'detached' });
    await fleet.client.create('instance', { metadata: { name: 'after' }, spec: { image: 'tiny', cpus: 1 } });
    await page.getByRole('cell', { name: 'after' }).waitFor();
    expect(await page.getByRole('cell', { name: 'web-1' }).count()).toBe(1);
    browser.expectFaults(/ERR_|50\d/);
  });
});
