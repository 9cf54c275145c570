// Follows docs/upgrade.md with packages: a running fleet of the last release becomes one of this checkout, while clients read and write.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { expectConsistent } from '../consistent.ts';
import { runBerth, startBerth } from '../processes.ts';
import { type BuiltPackage, buildNext, buildReleased } from './built-package.ts';
import { startLoad, UpgradedFleet } from './rolling-upgrade.ts';

let directory: string;
let released: BuiltPackage;
let next: BuiltPackage;
let fleet: UpgradedFleet;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-upgrade-'));
  released = await buildReleased(directory);
  next = await buildNext(directory, released);
  fleet = new UpgradedFleet(join(directory, 'fleet'), 'qemu');
  await fleet.start(released);
}, 240_000);
afterAll(async () => {
  for (const { metadata } of (await fleet.client.list('instance')).items) {
    await fleet.client.delete('instance', metadata.name);
    await fleet.gone(metadata.name);
  }
  await fleet.stop();
  await rm(directory, { recursive: true, force: true });
}, 60_000);

it('serves throughout, and touches no guest', { timeout: 240_000 }, async () => {
  await fleet.client.create('instance', { metadata: { name: 'kept' }, spec: { image: 'tiny' } });
  const before = await fleet.instance('kept', ({ status }) => status.guest?.ready === true);
  const pid = fleet.guestPid(before.metadata.id);
  const check = await runBerth(['upgrade', 'check', '-o', 'json'], fleet.environment);
  expect([check.stderr, check.code]).toEqual(['', 0]);

  const load = startLoad(fleet);
  await fleet.upgradeServers(next);
  await fleet.upgradeAgent(released); // a host may restart before its agent is upgraded: the new servers take the old agent
  await fleet.upgradeAgent(next);
  const { reads, writes } = await load.stop();

  expect(reads.errors).toEqual([]);
  // Where the new version marks the store with a new form of records, servers of the old one refuse to write. A client does not repeat by itself a
  // write whose connection broke under it.
  expect(writes.errors.filter((text) => !/a newer Berth uses this store|closed the connection/.test(text))).toEqual([]);
  expect(writes.requests).toBeGreaterThan(writes.errors.length);

  const after = await fleet.instance('kept', ({ status }) => status.guest?.ready === true);
  const { host, restartCount } = before.status;
  expect(after).toMatchObject({
    metadata: { id: before.metadata.id },
    status: { phase: 'Running', host, restartCount },
  });
  expect(fleet.guestPid(before.metadata.id)).toBe(pid);
  const { items } = await fleet.client.servers();
  expect(items.map(({ version }) => version)).toEqual([next.version, next.version, next.version]);
  expect((await fleet.client.get('host', 'h1')).status.agentVersion).toBe(next.version);
  await expectConsistent(fleet.client);
});

it('lets a version go back that knows the form of the store, and refuses others before they write', async () => {
  const data = join(directory, 'alone');
  const words = ['server', '--data-dir', data, '--listen', '127.0.0.1:0'];
  const ready = /listens on/;
  const content = async (): Promise<Buffer> => readFile(join(data, 'berth.db'));
  await (await startBerth(words, ready, {}, next.program)).stop();
  const before = await content();
  const refused = await startBerth(words, ready, {}, released.program).catch(String);
  // A release that knows the form starts; this is so while the form has not changed since.
  if (typeof refused === 'string') {
    expect(refused).toMatch(/a newer Berth uses this store \(its records are of version \d+, this one knows \d+\)/);
    expect(Buffer.compare(await content(), before)).toBe(0);
  } else await refused.stop();
  await (await startBerth(words, ready)).stop(); // this checkout has the lower version number, and the same form
});
