// Many launches on one host at the same time, with the real parts: reconciler, QEMU driver, image cache, an image server.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Assignment } from '../api/agent-protocol.ts';
import type { ImageSpec } from '../api/resources/image.ts';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { systemClock } from '../base/system.ts';
import { bootDisk } from './drivers/qemu/boot-sector.ts';
import { makeQemuTestHost, type QemuTestHost, testImages } from './drivers/qemu/test-host.ts';
import type { Driver, Guest } from './drivers/driver.ts';
import { createImageCache } from './images/create-image-cache.ts';
import { createHttpGet } from './images/fetch/http-get.ts';
import { type ImageServer, startImageServer } from './images/fetch/test-image-server.ts';
import { openLedger } from './ledger/ledger.ts';
import { createVolumeClaims } from './volumes/volume-claims.ts';
import { noMoves } from './migration/test-no-moves.ts';
import { noRuns } from './runner/test-no-runs.ts';
import { GuestReconciler } from './guests/guest-reconciler.ts';
import { assignment } from './testing.ts';

let host: QemuTestHost;
let server: ImageServer;
let driver: Driver;
let directory: string;
let reconciler: GuestReconciler;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-launches-'));
  host = await makeQemuTestHost();
  server = await startImageServer();
});
afterEach(async () => {
  const closed = driver.close();
  await reconciler.close();
  await closed;
  const last = host.open(); // what was given up is cleared away by the next agent
  await last.recover();
  for (const { instanceId } of last.guests()) await last.remove(instanceId);
  await last.close();
  await server.close();
  await host.dispose();
  await rm(directory, { recursive: true, force: true });
});

it('makes no launch wait for the download of another image, however many launches do', async () => {
  const disk = Buffer.from(bootDisk(testImages['obedient'] ?? []));
  // More than there ever were places for anything.
  const [held, cached] = [100, 20];
  server.files.set('/held', { bytes: disk, stallAfter: 0 });
  server.files.set('/other', { bytes: disk });
  await writeFile(join(directory, 'here.raw'), disk);
  const images = createImageCache({
    directory: join(directory, 'cache'),
    fileRoots: [directory],
    get: createHttpGet({ privateAddresses: 'named' }),
    clock: systemClock,
    prng: seededPrng(1),
    log: silentLogger,
    stallTimeoutMs: 600_000,
  });
  const here = imageOf(pathToFileURL(join(directory, 'here.raw')).href);
  await images.ensure('here', here, { signal: new AbortController().signal });
  driver = host.open({ images, accelerator: 'tcg' });
  await driver.recover();
  const wanted = [
    ...Array.from({ length: held }, () => ({ imageName: 'held', image: imageOf(`${server.url}/held`) })),
    ...Array.from({ length: cached }, () => ({ imageName: 'here', image: here })),
    { imageName: 'other', image: imageOf(`${server.url}/other`) },
  ].map((image, index): Assignment => {
    const instanceId = `inst_${String(index).padStart(26, '0')}`;
    return assignment({ ...image, instanceId, driver: 'qemu', memoryMiB: 16 });
  });
  const ids = wanted.slice(held).map(({ instanceId }) => instanceId);
  const running = every(ids, ({ state }) => state === 'running');
  await reconcile(wanted);
  await running;
  expect(server.requests.toSorted()).toEqual(['GET /held whole', 'GET /other whole']); // each once, side by side
  const waiting = driver.guests().filter(({ state }) => state === 'preparing');
  expect(waiting.map(({ instanceId }) => instanceId)).toEqual(wanted.slice(0, held).map((each) => each.instanceId));
  expect(new Set(waiting.map(({ progress }) => progress?.split(':')[0]))).toEqual(new Set(['pulling held']));
});

it('makes no launch wait for the disk of another guest, when nineteen are being made', async () => {
  await writeFile(join(directory, 'here.raw'), Buffer.from(bootDisk(testImages['obedient'] ?? [])));
  const images = createImageCache({
    directory: join(directory, 'cache'),
    fileRoots: [directory],
    get: createHttpGet({ privateAddresses: 'named' }),
    clock: systemClock,
    prng: seededPrng(1),
    log: silentLogger,
  });
  const ids = Array.from({ length: 20 }, (_, index) => `inst_${String(index).padStart(26, '0')}`);
  const [free = '', ...held] = ids;
  // Opening it to read waits until it is opened to write.
  const gate = join(directory, 'gate');
  execFileSync('mkfifo', [gate]);
  const program = join(directory, 'qemu-img');
  const script = `#!/bin/sh\ncase "$PWD" in */${free}) ;; *) read -r _ <'${gate}' ;; esac\nexec qemu-img "$@"\n`;
  await writeFile(program, script, { mode: 0o755 });
  driver = host.open({ images, qemuImgProgram: program, accelerator: 'tcg' });
  await driver.recover();
  const image = imageOf(pathToFileURL(join(directory, 'here.raw')).href);
  const wanted = ids.map((instanceId) =>
    assignment({ imageName: 'here', image, instanceId, driver: 'qemu', memoryMiB: 16 }),
  );
  const making = every(held, ({ progress }) => progress === 'making the disk');
  const running = every([free], ({ state }) => state === 'running');
  await reconcile(wanted);
  await making;
  await running;
  const guests = new Map(driver.guests().map((guest) => [guest.instanceId, guest]));
  expect(held.map((id) => guests.get(id)?.state)).toEqual(held.map(() => 'preparing'));
  const all = every(ids, ({ state }) => state === 'running');
  await (await open(gate, 'w')).close();
  await all;
}, 300_000);

const imageOf = (source: string): ImageSpec => ({
  source,
  decompress: 'none',
  format: 'raw',
  nocloud: true,
  architecture: 'amd64',
  aliases: [],
  preload: false,
  defaults: {},
});

/** Resolves when each of these has been so, whatever becomes of others. */
async function every(ids: readonly string[], isSo: (guest: Guest) => boolean): Promise<void> {
  const left = new Set(ids);
  const done = new AbortController();
  driver.watch((instanceId) => {
    const guest = driver.guests().find((each) => each.instanceId === instanceId);
    if (guest !== undefined && isSo(guest)) left.delete(instanceId);
    if (left.size === 0) done.abort();
  }, done.signal);
  await once(done.signal, 'abort');
}

/** An agent's part that makes guests, with these for all that is wanted. */
async function reconcile(wanted: readonly Assignment[]): Promise<void> {
  const ledger = await openLedger({
    file: { read: async () => null, write: async () => {}, setAside: async () => '' },
    owner: { host: 'h1', machineId: 'm-1' },
    clock: systemClock,
    log: silentLogger,
  });
  reconciler = new GuestReconciler({
    drivers: [driver],
    ready: () => true,
    mayAct: () => true,
    ledger,
    clock: systemClock,
    prng: seededPrng(1),
    log: silentLogger,
    onChange: () => {},
    runs: noRuns(),
    ...noMoves({ drivers: [driver], ledger }),
    volumes: {
      claims: createVolumeClaims(() => {}),
      gateOf: () => ({ open: false, why: 'there are none' }),
      onTrouble() {},
    },
  });
  driver.watch((instanceId) => reconciler.look(instanceId), new AbortController().signal);
  const changed = ledger.apply({ type: 'sync', revision: 1, assignments: [...wanted] });
  for (const id of changed.instances) reconciler.look(id);
}
