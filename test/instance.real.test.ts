// The main job on real parts: server, agent and QEMU as users run them, the tiny image booted for real, faults included.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { copyFile, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NewResource } from '../src/api/client/client.ts';
import type { InstanceSpec } from '../src/api/resources/instance.ts';
import { startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';
import { tinyFleet } from './tiny-fleet.ts';

const at = tinyFleet();

const run = (name: string, spec: NewResource<Partial<InstanceSpec>>['spec'] = {}) =>
  at.fleet.client.create('instance', {
    metadata: { name },
    spec: { image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 3000, ...spec },
  });

async function remove(name: string): Promise<void> {
  await at.fleet.client.delete('instance', name);
  await at.fleet.gone(name);
}

async function consoleOf(name: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of at.fleet.client.log(name)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** Process ids of the QEMUs that serve an instance, from the machine and not from Berth's own records. */
function qemusOf(instanceId: string): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return line.includes('qemu-system') && line.includes(instanceId) && !/^State:\s+Z/m.test(status)
          ? [Number(pid)]
          : [];
      } catch {
        return []; // ended while we looked
      }
    });
}

function tracesOf(instanceId: string): string[] {
  const traces: string[] = qemusOf(instanceId).map((pid) => `process ${pid}`);
  const walk = (path: string): void => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const child = join(path, entry.name);
      if (entry.name.includes(instanceId)) traces.push(child);
      else if (entry.isDirectory()) walk(child);
    }
  };
  walk(at.fleet.agentDirectory);
  return traces;
}

const hostPortOf = (ports: readonly { guestPort: number; hostPort: number }[] | undefined) => ports?.[0]?.hostPort ?? 0;

async function portIsFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

describe('one instance', () => {
  it('is placed, boots a real guest that reads its seed, answers on its port, and goes without a trace', async () => {
    const made = await run('web', {
      userData: '#!/bin/sh\necho "user-data has run on $(hostname)"\n',
      ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }],
      diskGiB: 1,
    });
    const booted = await at.fleet.ready('web');
    expect(booted.status).toMatchObject({
      phase: 'Running',
      host: 'h1',
      incarnation: 1,
      guest: { ready: true, state: 'running' },
    });
    expect(booted.status.guest?.address).toMatch(/^10\.0\.2\.\d+$/);
    expect(booted.status.guest?.phases.map((phase) => phase.name)).toEqual(['pull', 'clone', 'seed', 'start', 'boot']);
    expect(booted.status.guest?.imageDigest).toMatch(/^sha256:[0-9a-f]{64}$/);

    const text = await consoleOf('web');
    expect(text).toContain('user-data has run on web');
    expect(text).toMatch(/berth: ready/);

    const port = hostPortOf(booted.status.guest?.ports);
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('web');

    const [qemu] = qemusOf(made.metadata.id);
    const commandLine = readFileSync(`/proc/${qemu}/cmdline`, 'utf8');
    expect(commandLine).toContain('-sandbox\0on');

    await remove('web');
    expect(tracesOf(made.metadata.id)).toEqual([]);
    expect(await portIsFree(port)).toBe(true);
    const { items: events } = await at.fleet.client.list('event', { subject: made.metadata.id });
    expect(events.map((event) => event.spec.reason)).toEqual([
      'Scheduled',
      'Started',
      'Ready',
      'DeletionRequested',
      'Deleted',
    ]);
    expect((await at.fleet.client.list('host')).items[0]?.status.unknownGuests).toEqual([]);
  });

  it('gives its console from any byte offset on, and follows it', async () => {
    await run('log');
    await at.fleet.ready('log');
    const all = await consoleOf('log');
    const pieces: Uint8Array[] = [];
    for await (const piece of at.fleet.client.log('log', { offset: all.length - 20 })) pieces.push(piece);
    expect(Buffer.concat(pieces).toString().slice(0, 20)).toBe(all.slice(-20));
    const stop = new AbortController();
    for await (const piece of at.fleet.client.log('log', { follow: true }, stop.signal)) {
      expect(piece.length).toBeGreaterThan(0);
      break;
    }
    stop.abort();
    await remove('log');
  });

  it('may be deleted while it is being built, and leaves nothing', async () => {
    const made = await run('early');
    await at.fleet.until('early', ({ status }) => status.phase !== 'Pending');
    await remove('early');
    expect(tracesOf(made.metadata.id)).toEqual([]);
  });

  it('is stopped, or ends, and is started again on its own disk', async () => {
    const made = await run('again');
    await at.fleet.ready('again');
    const { spec } = await at.fleet.client.get('instance', 'again');
    await at.fleet.client.replace('instance', 'again', { spec: { ...spec, powerState: 'stopped' } });
    await at.fleet.until('again', ({ status }) => status.phase === 'Stopped');
    expect(qemusOf(made.metadata.id)).toEqual([]);
    await at.fleet.client.replace('instance', 'again', { spec: { ...spec, powerState: 'running' } });
    const back = await at.fleet.until('again', ({ status }) => status.phase === 'Running');
    expect(back.status.incarnation).toBe(1);
    // Ended by itself, it starts again when it is asked to, and only then.
    const [pid] = qemusOf(made.metadata.id);
    if (pid === undefined) expect.unreachable();
    process.kill(pid, 'SIGKILL');
    const failed = await at.fleet.until('again', ({ status }) => status.phase === 'Failed');
    expect(failed.status.guest?.reason).toBe('HypervisorExited');
    await at.fleet.client.replace('instance', 'again', { spec: { ...failed.spec, starts: 1 } });
    const started = await at.fleet.until('again', ({ status }) => status.phase === 'Running');
    expect(started.status).toMatchObject({ incarnation: 1, restartCount: 0 });
    expect(started.status.guest?.startedAtMs).toBeGreaterThan(failed.status.guest?.startedAtMs ?? 0);
    expect(qemusOf(made.metadata.id)).toHaveLength(1);
    await remove('again');
  });
});

describe('faults', () => {
  it('a server killed between any two steps of a create makes each instance once, and its guest runs once', async () => {
    // From before the request is read until after the guest's first report, in steps of a few milliseconds.
    const ids: string[] = [];
    for (const [i, delayMs] of [0, 2, 4, 8, 16, 32, 64, 128].entries()) {
      const name = `kill-${i}`;
      const body = { metadata: { name }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64, stopGraceMs: 0 } };
      const first = at.fleet.client.create('instance', body, { idempotencyKey: name }).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, delayMs)); // the moment is what varies, nothing waits for it
      await at.fleet.restartServer();
      await first;
      const made = await at.fleet.client.create('instance', body, { idempotencyKey: name });
      ids.push(made.metadata.id);
      const started = await at.fleet.until(
        name,
        ({ status }) => status.phase === 'Running' || status.phase === 'Failed',
      );
      expect(started.status).toMatchObject({ phase: 'Running', incarnation: 1 });
      expect(qemusOf(made.metadata.id)).toHaveLength(1);
      await remove(name);
    }
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(tracesOf(id)).toEqual([]);
  });

  it('an agent killed during boot finds the same guest again, which never noticed', async () => {
    const made = await run('adopt');
    await at.fleet.until('adopt', ({ status }) => status.phase === 'Running');
    const before = qemusOf(made.metadata.id);
    await at.fleet.restartAgent();
    const booted = await at.fleet.ready('adopt');
    expect(booted.status).toMatchObject({ phase: 'Running', incarnation: 1, restartCount: 0 });
    expect(qemusOf(made.metadata.id)).toEqual(before);
    await remove('adopt');
  });

  it('an agent killed while it makes the guest finishes what it began, once', async () => {
    for (const delayMs of [0, 20, 40, 80, 160]) {
      const name = `begun-${delayMs}`;
      const made = await run(name, { stopGraceMs: 0 });
      await at.fleet.until(name, ({ status }) => status.phase !== 'Pending');
      await new Promise((resolve) => setTimeout(resolve, delayMs)); // as above
      await at.fleet.restartAgent();
      const started = await at.fleet.until(
        name,
        ({ status }) => status.phase === 'Running' || status.phase === 'Failed',
      );
      expect(started.status).toMatchObject({ phase: 'Running', incarnation: 1 });
      expect(qemusOf(made.metadata.id)).toHaveLength(1);
      await remove(name);
      expect(tracesOf(made.metadata.id)).toEqual([]);
    }
  });

  it('a QEMU that dies fails its instance with the reason, and a restart policy brings it back anew', async () => {
    const made = await run('dies', { restartPolicy: 'OnFailure' });
    await at.fleet.until('dies', ({ status }) => status.phase === 'Running');
    const [pid] = qemusOf(made.metadata.id);
    if (pid === undefined) expect.unreachable();
    process.kill(pid, 'SIGKILL');
    const back = await at.fleet.until('dies', ({ status }) => status.phase === 'Running' && status.restartCount === 1);
    expect(back.status.incarnation).toBe(2);
    expect(qemusOf(made.metadata.id)).toHaveLength(1);
    const { items: events } = await at.fleet.client.list('event', { subject: made.metadata.id });
    expect(events.map((event) => event.spec.reason)).toContain('HypervisorExited');
    await remove('dies');
    expect(tracesOf(made.metadata.id)).toEqual([]);
  });

  const badImages: [string, (path: string) => Promise<object>, RegExp][] = [
    ['missing', async () => ({ source: 'file:///nowhere/none.qcow2' }), /ImageUnavailable/],
    [
      'changed',
      async (path) => ({ source: `file://${path}`, checksum: `sha256:${'0'.repeat(64)}` }),
      /ImageChecksumMismatch/,
    ],
    [
      'truncated',
      async (path) => {
        await copyFile(path, `${path}.short`);
        await truncate(`${path}.short`, 100_000);
        return { source: `file://${path}.short` };
      },
      /ImageInvalid/,
    ],
    [
      'truncated in its archive',
      async (path) => {
        execFileSync('gzip', ['-kf', path]);
        await truncate(`${path}.gz`, 500_000);
        return { source: `file://${path}.gz`, decompress: 'gzip' };
      },
      /ImageInvalid/,
    ],
    [
      'something else than it says',
      async (path) => {
        await writeFile(`${path}.html`, '<html>not found</html>'.repeat(100));
        return { source: `file://${path}.html` };
      },
      /ImageInvalid/,
    ],
  ];
  for (const [what, make, reason] of badImages) {
    it(`an image that is ${what} fails the instance with that reason and leaves nothing`, async () => {
      const copy = join(at.directory, 'copy.qcow2');
      const tiny = await tinyImage();
      await copyFile(tiny.path, copy);
      const name = `image-${badImages.findIndex(([each]) => each === what)}`;
      await at.fleet.client.create('image', { metadata: { name }, spec: { format: 'qcow2', ...(await make(copy)) } });
      const made = await run(name, { image: name });
      const failed = await at.fleet.until(name, ({ status }) => status.phase === 'Failed');
      expect(failed.status.guest?.reason).toMatch(reason);
      await remove(name);
      expect(tracesOf(made.metadata.id)).toEqual([]);
    });
  }

  it('a host port that is taken fails the instance and names the port', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const address = taken.address();
    const hostPort = typeof address === 'object' && address ? address.port : 0;
    await run('port', { ports: [{ guestPort: 80, hostPort, protocol: 'tcp' }] });
    const failed = await at.fleet.until('port', ({ status }) => status.phase === 'Failed');
    expect(failed.status.guest).toMatchObject({
      reason: 'PortInUse',
      message: expect.stringContaining(String(hostPort)),
    });
    taken.close();
    await remove('port');
  });

  it('a request larger than any host waits, with the reason host by host', async () => {
    await run('huge', { memoryMiB: 10_000_000 });
    const waiting = await at.fleet.until('huge', ({ status }) =>
      status.conditions.some((condition) => condition.reason === 'Unschedulable'),
    );
    expect(waiting.status.phase).toBe('Pending');
    const explanation = await at.fleet.client.explain('huge');
    expect(explanation.summary).toBe('0 of 1 host: 1 InsufficientMemory');
    expect(explanation.hosts).toMatchObject([
      { host: 'h1', fits: false, refusals: [{ rule: 'fit', reason: 'InsufficientMemory' }] },
    ]);
    await remove('huge');
  });
});

describe('a full disk', () => {
  const isRoot = process.getuid?.() === 0;
  it.skipIf(!isRoot)(
    'fails the instance while cloning, and the host goes on when there is room (mounts: needs root)',
    async () => {
      const small = await mkdtemp(join(tmpdir(), 'berth-small-'));
      const tiny = await tinyImage();
      const mib = Math.ceil((await readFile(tiny.path)).length / 2 ** 20);
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib + 6}m`, 'tmpfs', small]);
      const full = await startFleet(join(at.directory, 'full'), { agentDirectory: join(small, 'agent') });
      try {
        await full.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
        const create = (name: string) =>
          full.client.create('instance', {
            metadata: { name },
            spec: { image: 'tiny', memoryMiB: 64, diskGiB: 0, stopGraceMs: 0 }, // the host has no whole GiB to give
          });
        await create('first');
        await full.until('first', ({ status }) => status.phase === 'Running');
        const filler = join(small, 'filler');
        execFileSync('sh', ['-c', `cat /dev/zero > '${filler}' 2>/dev/null || true`]);
        await create('second');
        const failed = await full.until('second', ({ status }) => status.phase === 'Failed');
        expect(failed.status.guest?.reason).toBe('DiskFull');
        await rm(filler);
        await full.client.delete('instance', 'second');
        await full.gone('second');
        await create('third');
        await full.until('third', ({ status }) => status.phase === 'Running');
        for (const name of ['first', 'third']) {
          await full.client.delete('instance', name);
          await full.gone(name);
        }
        expect(existsSync(join(small, 'agent'))).toBe(true);
      } finally {
        await full.stop();
        execFileSync('umount', [small]);
      }
    },
  );
});
