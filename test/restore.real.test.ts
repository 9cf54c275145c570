// A backup made while the fleet works, a restore after more has happened, and a host that knows more than the backup.

import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { writeOutsideRecords } from './outside-records.ts';
import { type Fleet, runBerth, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;

const berth = (...argv: string[]) => runBerth(argv, fleet.environment);
const create = (name: string, spec: Record<string, unknown> = {}) =>
  fleet.client.create('instance', { metadata: { name }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64, ...spec } });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-restore-'));
  fleet = await startFleet(directory, { drivers: ['fake'] });
  await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.qcow2' } });
});
afterAll(async () => {
  await fleet.stop();
  await rm(directory, { recursive: true });
});

it('keeps every guest as it is, tells what is not known, and starts nothing twice', async () => {
  await create('kept');
  await create('moved', { exclusive: true });
  const before = await fleet.ready('kept');
  await fleet.ready('moved');
  const server = { url: fleet.url, token: fleet.environment.BERTH_TOKEN };
  const outside = await writeOutsideRecords(server);
  const claimed = await outside.read(server);

  const file = join(directory, 'berth.jsonl.zst');
  expect((await berth('backup', file)).stdout).toContain('read back and complete');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await berth('backup', file)).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') });

  await fleet.client.delete('instance', 'moved');
  await fleet.gone('moved');
  await create('later');
  const later = await fleet.ready('later');
  await outside.remove(server);

  const store = `sqlite:${fleet.serverDirectory}/berth.db`;
  const whileItRuns = await berth('restore', file, '--store', store, '--yes');
  expect(whileItRuns.code).not.toBe(0);
  expect(whileItRuns.stderr).toContain('in use by process');
  await fleet.killServer();
  expect(await berth('restore', file, '--store', store)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--yes'),
  });
  expect((await berth('restore', file, '--store', store, '--yes')).stdout).toContain('restored');
  expect((await berth('store', 'check', store)).stdout).toContain('0 faults');
  await fleet.restartServer();
  expect(await outside.read(server), 'claims of other systems are as in the backup').toEqual(claimed);

  // Its guest runs on as it did: same life, same start.
  const after = await fleet.until(
    'kept',
    ({ status }) =>
      status.phase === 'Running' &&
      status.guest?.ready === true &&
      status.conditions.every(({ reason }) => reason !== 'Restored'),
  );
  expect(after.status.incarnation).toBe(before.status.incarnation);
  expect(after.status.guest?.startedAtMs).toBe(before.status.guest?.startedAtMs);
  // What was removed since the backup is not made again.
  const moved = await fleet.until('moved', ({ status }) => status.phase === 'Failed');
  expect(moved.status.conditions.find(({ type }) => type === 'Running')?.reason).toBe('NotFoundAfterRestore');

  // What was made since runs on, and is reported.
  const { items } = await fleet.client.list('instance');
  expect(items.map(({ metadata }) => metadata.name).sort()).toEqual(['kept', 'moved']);
  const unknownGuest = expect.objectContaining({ instanceId: later.metadata.id, state: 'running' });
  let host = await fleet.client.get('host', 'h1');
  for await (const change of fleet.client.watch(
    'host',
    { revision: host.metadata.revision - 1 },
    AbortSignal.timeout(60_000),
  )) {
    if (change.type === 'put') host = change.resource;
    if (host.status.unknownGuests.length > 0) break;
  }
  expect(host.status.unknownGuests).toEqual([unknownGuest]);
  const found = await berth('verify', '--older-than', '0s');
  expect(found).toMatchObject({ code: 7, stdout: expect.stringContaining('UnknownGuest') });
  const applied = await berth('verify', '--older-than', '0s', '--apply');
  expect(applied.stdout, 'nothing is destroyed without being named').not.toContain('repaired');
  const removed = await berth('verify', '--older-than', '0s', '--apply', '--remove-unknown');
  expect(removed.stdout).toContain(`repaired: orders host h1 to remove the guest of ${later.metadata.id}`);
  // fleet.stop() waits until nothing is left that does not fit together.
});

it('moves the fleet to another store, and leaves the first closed', async () => {
  await fleet.killServer();
  const from = `sqlite:${fleet.serverDirectory}/berth.db`;
  const to = `sqlite:${directory}/moved.db`;
  const key = ['--master-key-file', `${fleet.serverDirectory}/master.key`];
  expect((await berth('store', 'migrate', from, to, ...key)).stdout).toContain('moved');
  expect((await berth('store', 'check', to)).stdout).toContain('0 faults');
  const again = await berth('store', 'migrate', from, `sqlite:${directory}/third.db`, ...key);
  expect(again).toMatchObject({ code: 6, stderr: expect.stringContaining('has been moved') });
  expect((await berth('store', 'check', from)).stdout).toContain('it is closed to servers: it has been moved');
  await expect(fleet.restartServer()).rejects.toThrow('it has been moved to another store');
  // Back, so that the fleet goes on from what was moved.
  await rm(`${fleet.serverDirectory}/berth.db`);
  expect((await berth('store', 'migrate', to, from, ...key)).stdout).toContain('moved');
  await fleet.restartServer();
  const kept = await fleet.ready('kept');
  expect(kept.status.phase).toBe('Running');
});
