// `node scripts/dashboard-screenshots.ts [NAME...]`: takes the screenshots of the dashboard for the documentation, from a server with the fake
// driver. Needs /usr/bin/chromium and a built dashboard. Overwrites existing screenshots.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { createClient } from '../src/api/client/client.ts';
import type { JobSpec } from '../src/api/resources/job.ts';
import type { WorkloadSpec } from '../src/api/resources/workload.ts';
import { hostTokenOf } from '../src/server/http/tokens.ts';
import { testRegistration } from '../src/server/testing.ts';
import { type Fleet, startFleet } from '../test/processes.ts';

const target = fileURLToPath(new URL('../docs/screenshots/', import.meta.url));

/** Page, name of the picture, and what it shows when it is complete. */
const pictures: readonly (readonly [path: string, name: string, ready: string])[] = [
  ['/?colour=claims', 'fleet', 'Room for'],
  ['/instances/web-1', 'instance', 'Usual:'],
  ['/instances/huge?tab=why', 'why', 'What would make it fit'],
  ['/pending', 'pending', 'for room'],
  ['/hosts/h1', 'host', 'Claimed'],
  ['/create/instances', 'new', 'metadata:'],
  ['/jobs?show=durations', 'jobs', 'Durations by label'],
  ['/jobs/build-7?tab=log', 'job-log', 'tests passed'],
  ['/plans?verb=drain&host=h1', 'plan', 'What happens'],
  ['/audit', 'audit', 'lines'],
  ['/workloads/shop', 'workload', '1 (present) (stable)'],
  ['/instances', 'instances', 'web-1'],
];

const directory = await mkdtemp(join(tmpdir(), 'berth-pictures-'));
const fleet = await startFleet(directory, { drivers: ['fake'] });
try {
  await fill(fleet);
  await takeAll(fleet);
} finally {
  for (const { metadata } of (await fleet.client.list('job')).items) await fleet.client.delete('job', metadata.name);
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
}

async function fill(fleet: Fleet): Promise<void> {
  const { client, ready } = fleet;
  const spec = { image: 'debian-13', cpus: 1, memoryMiB: 64 };
  await client.create('image', {
    metadata: { name: 'debian-13' },
    spec: { source: 'https://images.example/debian-13.qcow2', defaults: { cpus: 1, memoryMiB: 64 } },
  });
  for (const name of ['web-1', 'web-2']) await client.create('instance', { metadata: { name }, spec });
  await client.create('workload', {
    metadata: { name: 'shop' },
    spec: { replicas: 2, template: { labels: { app: 'shop' }, spec } } as unknown as Partial<WorkloadSpec>, // the rest has defaults
  });
  for (const name of ['web-1', 'web-2']) await ready(name);
  for (let i = 1; i <= 7; i += 1) {
    const job: Partial<JobSpec> = { image: 'debian-13', script: scriptOf(i), retries: { max: 0, on: [] } };
    await client.create('job', { metadata: { name: `build-${i}` }, spec: job });
  }
  await Promise.all(Array.from({ length: 7 }, (_, i) => ended(client, `build-${i + 1}`)));
  await addHosts(fleet);
  await client.create('instance', { metadata: { name: 'huge' }, spec: { ...spec, cpus: 1_000 } });
}

/** They run nothing: last, so that what is to run is on the other. */
async function addHosts({ client, url, serverDirectory }: Fleet): Promise<void> {
  const secret = Buffer.from((await readFile(join(serverDirectory, 'secret'), 'utf8')).trim(), 'base64url');
  for (let i = 0; i < 60; i += 1) {
    const host = `node-${i}`;
    const agent = createClient({ fetch, url, token: hostTokenOf(secret, host, 0) }).agent(host);
    await agent.register(testRegistration({ machineId: host, labels: { rack: `r${i % 4}` } }));
  }
  await client.create('size', { metadata: { name: 'medium' }, spec: { cpus: 2, memoryMiB: 2_048 } });
  for (let i = 0; i < 70; i += 1) {
    const spec = { cpus: 1 + (i % 3), memoryMiB: 512, ttlMs: 3_600_000 };
    await client.create('task', { metadata: { name: `hold-${i}` }, spec });
  }
}

function scriptOf(i: number): string {
  return [
    'echo ::group::Fetch',
    'echo fetched 42 packages',
    'echo ::endgroup::',
    'echo ::group::Build',
    ...['core', 'api', 'server', 'agent'].map((part) => `echo \u001b[36mbuild\u001b[0m ${part} \u001b[32mok\u001b[0m`),
    `sleep ${(i * 0.3).toFixed(1)}`,
    'echo ::endgroup::',
    'echo ::group::Test',
    'echo \u001b[33mwarning\u001b[0m 1 test was slow >&2',
    'echo \u001b[1;32m812 tests passed\u001b[0m',
    i === 4 ? 'exit 1' : 'true',
  ].join('\n');
}

async function ended(client: Fleet['client'], name: string): Promise<void> {
  for await (const _ of client.jobLog(name, { follow: true }));
}

async function takeAll({ client, url }: Fleet): Promise<void> {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  try {
    const page = await browser.newPage({
      viewport: { width: 1100, height: 700 },
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
    });
    const { path } = await client.createSessionLink();
    await page.goto(`${url}${path}`);
    await page.getByRole('heading', { name: 'Fleet' }).waitFor();
    const wanted = process.argv.slice(2);
    for (const picture of pictures)
      if (wanted.length === 0 || wanted.includes(picture[1])) await take(page, url, picture);
  } finally {
    await browser.close();
  }
}

async function take(page: Page, url: string, [path, name, ready]: (typeof pictures)[number]): Promise<void> {
  await page.goto(`${url}/ui${path}`);
  await page
    .getByText(ready)
    .or(page.getByRole('table', { name: ready }))
    .first()
    .waitFor();
  await page.screenshot({ path: join(target, `dashboard-${name}.png`) });
  process.stdout.write(`dashboard-${name}.png\n`);
}
