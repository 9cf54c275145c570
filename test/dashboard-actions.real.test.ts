// What the dashboard changes, clicked: plans that move guests between two hosts, and the buttons of each kind. In a real browser, against a
// real server with two hosts.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WorkloadSpec } from '../src/api/resources/workload.ts';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { dashboardBrowser, noBrowser } from './dashboard-browser.ts';
import { type BerthProcess, type Fleet, startBerth, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;
let other: BerthProcess;
let receiver: Server;
const received: string[] = [];
const browser = dashboardBrowser();
const small = { image: 'tiny', cpus: 1, memoryMiB: 64 };

beforeAll(async () => {
  if (noBrowser) return;
  directory = await mkdtemp(join(tmpdir(), 'berth-dashboard-'));
  fleet = await startFleet(join(directory, 'fleet'), {
    drivers: ['fake'],
    agent: { moveAddress: 'off' },
    server: { webhookAllow: ['127.0.0.1/32'], offlineAfterMs: 5_000 },
  });
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tiny.qcow2', backend: 'fake', defaults: { cpus: 1, memoryMiB: 64, diskGiB: 1 } },
  });
  other = await startOtherHost();
  receiver = createServer((asked, answer) => {
    received.push(asked.headers['webhook-id'] as string);
    asked.resume().on('end', () => answer.writeHead(204).end());
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
}, 120_000);
afterAll(async () => {
  if (noBrowser) return;
  receiver?.close();
  await fleet.removeAll();
  await fleet.stop();
  await other.stop();
  await rm(directory, { recursive: true, force: true });
});

async function startOtherHost(): Promise<BerthProcess> {
  const secret = Buffer.from((await readFile(join(fleet.serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  const config = join(directory, 'h2.yaml');
  const settings = {
    serverUrl: fleet.url,
    token: hostTokenOf(secret, 'h2', 0),
    hostName: 'h2',
    machineId: '2'.repeat(32), // another machine
    dataDirectory: join(directory, 'h2'),
    drivers: ['fake'],
    moveAddress: 'off',
  };
  await writeFile(config, JSON.stringify(settings), { mode: 0o600 });
  return startBerth(['agent', '--config', config], /registered/);
}

/** Of one copy, which is ready then. */
async function workload(name: string): Promise<void> {
  const template = { labels: {}, spec: small };
  // Its owner gives a part of the template; the rest has defaults.
  const spec = { replicas: 1, strategy: { minHealthyMs: 0 }, template } as unknown as Partial<WorkloadSpec>;
  await fleet.client.create('workload', { metadata: { name }, spec });
  await expect.poll(async () => (await fleet.client.get('workload', name)).status.available).toBe(1);
}

async function pause(host: string, paused: boolean): Promise<void> {
  const { metadata, spec } = await fleet.client.get('host', host);
  const { labels, revision } = metadata;
  await fleet.client.replace('host', host, { metadata: { labels, revision }, spec: { ...spec, paused } });
}

const enter = async (path: string): Promise<void> => {
  await browser.enter(fleet, path);
  browser.page.on('dialog', (dialog) => void dialog.accept());
};

const button = (name: string | RegExp) => browser.page.getByRole('button', { name });

async function apply(message: string | RegExp): Promise<void> {
  await browser.page.getByRole('button', { name: 'Apply', exact: true }).click();
  await browser.page.getByText(message).waitFor();
}

describe.skipIf(noBrowser !== undefined)(`in the dashboard${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('a rebalance empties a host', async () => {
    for (const [host, name] of [
      ['h2', 'one'],
      ['h1', 'two'],
    ] as const) {
      await pause(host, true);
      await workload(name);
      await pause(host, false);
    }
    await enter('/plans?verb=rebalance&coolDown=0&threshold=100');
    await apply(/^Being emptied: h\d\.$/);
    await expect
      .poll(async () => new Set((await fleet.client.list('instance')).items.map(({ status }) => status.host)).size)
      .toBe(1);
  });

  it('an instance moves to the other host', async () => {
    await fleet.client.create('instance', { metadata: { name: 'mover' }, spec: small });
    const { status } = await fleet.ready('mover');
    const to = status.host === 'h1' ? 'h2' : 'h1';
    await enter('/instances/mover');
    await browser.page.getByRole('link', { name: 'Move …' }).click();
    await browser.page.getByRole('textbox', { name: 'To host' }).fill(to);
    await button('Show the plan').click();
    await apply('Instance mover moves.');
    await fleet.until('mover', (seen) => seen.status.host === to && seen.status.guest?.ready === true);
  });

  it('a workload gets its former template back', async () => {
    await workload('former');
    const { metadata, spec } = await fleet.client.get('workload', 'former');
    const template = { ...spec.template, labels: { tier: 'wrong' } };
    const { project, labels, revision } = metadata;
    await fleet.client.replace('workload', 'former', {
      metadata: { project, labels, revision },
      spec: { ...spec, template },
    });
    await enter('/workloads/former');
    await browser.page
      .getByRole('table', { name: 'History' })
      .getByRole('row', { name: /^1/ })
      .getByRole('link', { name: 'Undo …' })
      .click();
    await apply('Workload former is updated.');
    expect((await fleet.client.get('workload', 'former')).spec.template.labels).toEqual({});
  });

  it('a workload is updated by its plan, which is refused once another has changed it', async () => {
    await workload('rolled');
    await enter('/plans?verb=update&workload=rolled&memory=128');
    const { page } = browser;
    await page.getByRole('table', { name: 'Before and after' }).getByText('template.spec.memoryMiB').waitFor();
    await page.getByText(/^1 copy replaced: at most 2 copies exist at a time/).waitFor();
    const shown = await page.locator('[data-plan]').getAttribute('data-plan');
    await fleet.client.scaleWorkload('rolled', { replicas: 2 });
    await apply(/is no longer as it was shown: the workload was changed meanwhile/);
    browser.expectFaults(/409/);
    await page.locator(`[data-plan]:not([data-plan="${shown}"])`).waitFor();
    await apply('Workload rolled is updated.');
    expect((await fleet.client.get('workload', 'rolled')).spec.template.spec.memoryMiB).toBe(128);
    await page.getByRole('link', { name: 'Show it' }).click();
    await page.getByText('all 2 copies are available').waitFor();
    await fleet.client.delete('workload', 'rolled');
  });

  it('a guest of a warm pool is claimed', async () => {
    await fleet.client.create('warmPool', {
      metadata: { name: 'warm' },
      spec: { size: 1, template: { spec: small } } as never, // the rest has defaults
    });
    await enter('/warm-pools/warm');
    await button('Claim a guest').click();
    await browser.page.getByRole('heading', { level: 1, name: /^Instance / }).waitFor();
    const { hits, misses } = (await fleet.client.get('warmPool', 'warm')).status;
    expect(hits + misses).toBe(1);
    await fleet.client.delete('warmPool', 'warm');
  });

  it('a webhook is tried, paused, and sends again', async () => {
    await fleet.client.create('secret', {
      metadata: { name: 'hooks' },
      spec: { values: { current: `whsec_${Buffer.alloc(32, 7).toString('base64')}` } },
    });
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    await fleet.client.create('webhook', {
      metadata: { name: 'hook' },
      spec: { url, secrets: [{ secret: 'hooks', key: 'current' }], events: ['berth.v1.job.*'] },
    });
    await enter('/webhooks/hook');
    await button('Send a test').click();
    await button('Send again').click();
    await expect.poll(() => received.length).toBe(2);
    expect(received[1]).toBe(received[0]);
    await button('Pause').click();
    await button('Resume').click();
    await button('Pause').waitFor();
  });

  it('a token is extended, and an inventory lets hosts go', async () => {
    const { resource } = await fleet.client.createToken({
      metadata: { name: 'short', labels: {} },
      spec: { description: '', role: 'viewer', expiresInSec: 3_600 },
    });
    await enter('/tokens/short');
    await button('Extend by 90 days').click();
    const dayMs = 86_400_000;
    await expect
      .poll(async () => (await fleet.client.get('token', 'short')).spec.expiresAtMs ?? 0)
      .toBeGreaterThan(resource.metadata.createdAtMs + 89 * dayMs);

    await fleet.client.create('inventory', { metadata: { name: 'lab' }, spec: { source: { kind: 'push' } } });
    const nodes = Array.from({ length: 5 }, (_, i) => ({ name: `metal-${i}`, cpu: 8, memory: 4_096 }));
    await fleet.client.pushNodes('lab', nodes);
    await fleet.client.pushNodes('lab', nodes.slice(0, 1));
    await browser.visit('/inventories/lab');
    await button('Let 4 hosts go').click();
    await browser.page.getByTitle('It is confirmed: the next list counts').waitFor();
    expect(await fleet.client.pushNodes('lab', nodes.slice(0, 1))).toMatchObject({ state: 'Fresh', hosts: 1 });
    await fleet.client.pushNodes('lab', []);
  });

  it('an instance is shared, its share is extended and revoked', async () => {
    await fleet.client.create('instance', { metadata: { name: 'shared' }, spec: small });
    await enter('/instances/shared?tab=shares');
    const { page } = browser;
    await page.getByText('This instance is not shared.').waitFor();
    await page.getByRole('checkbox', { name: 'exec' }).check();
    await page.getByRole('button', { name: 'Share', exact: true }).click();
    const token = await page.getByLabel('Token').innerText();
    expect((await fetch(`${fleet.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
    const row = page.getByRole('table', { name: 'Shares' }).getByRole('row', { name: /share-shared/ });
    await row.getByText('exec, console, logs, forward').waitFor();
    expect(await browser.accessibilityFaultsInAllLooks()).toEqual([]);
    await row.getByRole('button', { name: 'Extend by 2 h' }).click();
    await row.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('This instance is not shared.').waitFor();
    expect((await fetch(`${fleet.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(401);
  });

  it('the artifacts of a job are downloaded one by one', async () => {
    await fleet.client.create('job', { metadata: { name: 'build' }, spec: { ...small, script: 'echo on' } });
    await writeFile(join(directory, 'report.html'), '<script>document.title = 1</script>');
    // Programs of the fake driver leave no artifacts: the archive is a real one, the answer is not.
    const body = execFileSync('tar', ['-C', directory, '-cf', '-', 'report.html']);
    await enter('');
    await browser.page.route('**/v1/jobs/build/artifacts*', (route) => route.fulfill({ body }));
    await browser.visit('/jobs/build?project=default&files=1');
    const [download] = await Promise.all([
      browser.page.waitForEvent('download'),
      button('Download report.html').click(),
    ]);
    expect(await readFile(await download.path(), 'utf8')).toBe('<script>document.title = 1</script>');
    await fleet.client.delete('job', 'build');
  });

  it('a host that is gone is given up', async () => {
    await other.stop();
    await enter('/hosts/h2');
    await browser.page.getByText('Unknown', { exact: true }).first().waitFor();
    await browser.page.getByRole('link', { name: 'Evacuate …' }).click();
    await apply('Host h2 was removed.');
    expect((await fleet.client.list('host')).items.map(({ metadata }) => metadata.name)).not.toContain('h2');
  });
});
