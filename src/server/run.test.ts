import { once } from 'node:events';
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../base/clock.ts';
import { type Logger, silentLogger } from '../base/log.ts';
import { system, systemClock, systemFetch } from '../base/system.ts';
import { freePort } from '../base/test-ports.ts';
import { parse } from '../api/parse.ts';
import { encodeRecord } from '../core/state/codec.ts';
import { keys } from '../core/state/keys.ts';
import { recordsVersion } from '../core/state/upgrade.ts';
import { openStore } from '../store/open.ts';
import { ServerConfig } from './config.ts';
import { startServer } from './run.ts';
import { clusterIn } from './storage/cluster-record.ts';
import { StartStopped } from './start/stoppable-start.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-server-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function recordingLogger(lines: string[]): Logger {
  const note = (message: string): void => void lines.push(message);
  const log: Logger = { debug: note, info: note, warn: note, error: note, with: () => log };
  return log;
}

describe('a server that cannot start', () => {
  it.each([
    ['because its port is taken', true, {}, /another program listens there already/],
    ['because its blobDir is no directory', false, { blobDir: '/dev/null/blobs' }, /^blobDir: cannot write to/],
    [
      'because its image map is none',
      false,
      { imageMap: '/nonexistent/map.yaml' },
      /image map \/nonexistent\/map\.yaml/,
    ],
  ])('%s leaves nothing that runs', async (_, isTaken, more, message) => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const address = taken.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const lines: string[] = [];
    const config = (listen: string) => parse(ServerConfig, { listen, dataDirectory: directory });
    const { clock, timers } = countingClock();
    await expect(
      startServer({ ...config(`127.0.0.1:${isTaken ? port : 0}`), ...more }, { log: recordingLogger(lines), clock }),
    ).rejects.toThrow(message);
    const said = lines.length;
    await expect.poll(timers).toBe(0);
    for (let i = 0; i < 20; i++) await system.turn();
    expect(timers()).toBe(0);
    expect(lines).toHaveLength(said);
    taken.close();
    if (isTaken) expect(await readdir(directory)).toEqual([]);
    // The store is free again, too.
    await (await startServer(config('127.0.0.1:0'), { log: recordingLogger([]) })).close();
  });
});

it('says for how long it goes on waiting for its store', async () => {
  const stop = new AbortController();
  const waits: unknown[] = [];
  const warn: Logger['warn'] = (_, fields) => {
    waits.push(fields?.['givesUpIn']);
    stop.abort();
  };
  const log: Logger = { ...silentLogger, warn, with: () => log };
  const store = `postgres://berth@127.0.0.1:${await freePort()}/berth`;
  const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: directory, store, storeWaitMs: 600_000 });
  await expect(startServer(config, { log, signal: stop.signal })).rejects.toBeInstanceOf(StartStopped);
  expect(waits[0]).toMatch(/^(600|5\d\d) s$/);
});

it('warns of its tokens where others may read them, and closes the file', async () => {
  const path = join(directory, 'operator.token');
  await writeFile(path, 'short');
  await chmod(path, 0o644);
  const lines: string[] = [];
  const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: directory });
  await (await startServer(config, { log: recordingLogger(lines) })).close();
  expect(lines).toContain(`other users of this machine may read ${path}: chmod 600 ${path}`);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('serves the Placement API at / of a listener of its own, and nothing else there', async () => {
  const config = { listen: '127.0.0.1:0', placementListen: '127.0.0.1:0', dataDirectory: directory };
  const server = await startServer(parse(ServerConfig, config), { log: silentLogger });
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await systemFetch(`${server.placementUrl}${path}`, { headers });
    return { status: answer.status, json: await answer.json() };
  };
  const token = { 'x-auth-token': server.operatorToken };
  expect(await ask('/')).toMatchObject({ status: 200, json: { versions: [{ max_version: '1.39' }] } });
  expect(await ask('/resource_providers', token)).toMatchObject({ status: 200, json: { resource_providers: [] } });
  expect(await ask('/resource_providers')).toMatchObject({ status: 401 });
  expect(await ask('/v1/hosts', token)).toMatchObject({ status: 404, json: { errors: [{ status: 404 }] } });
  await server.close();
});

it('names the setting of a listener that cannot be opened', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const address = taken.address();
  const placementListen = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const config = parse(ServerConfig, { listen: '127.0.0.1:0', placementListen, dataDirectory: directory });
  const start = startServer(config, { log: silentLogger });
  await expect(start).rejects.toThrow(/^placementListen: cannot listen on .*, or set another address$/);
  taken.close();
});

it('needs two addresses for two listeners', async () => {
  const both = { listen: '127.0.0.1:7999', placementListen: '127.0.0.1:7999', dataDirectory: directory };
  const start = startServer(parse(ServerConfig, both), { log: silentLogger });
  await expect(start).rejects.toThrow('placementListen must differ from listen');
});

describe('a server that is stopped while it waits for its store', () => {
  it.each([
    ['and nothing listens there', async () => ({ port: await freePort(), close: () => undefined })],
    [
      'and the store does not answer',
      async () => {
        const silent = createServer().listen(0, '127.0.0.1');
        await once(silent, 'listening');
        const address = silent.address();
        return { port: typeof address === 'object' ? address?.port : 0, close: () => void silent.close() };
      },
    ],
  ])('ends at once, with nothing left in its directory, %s', async (_, place) => {
    const { port, close } = await place();
    const store = `postgres://berth@127.0.0.1:${port}/berth`;
    const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: directory, store });
    const stop = new AbortController();
    const lines: string[] = [];
    const starting = startServer(config, { log: recordingLogger(lines), signal: stop.signal });
    const stopped = expect(starting).rejects.toBeInstanceOf(StartStopped);
    stop.abort();
    await stopped;
    expect(lines).not.toContain('server listens');
    expect(await readdir(directory)).toEqual([]);
    close();
  });
});

/** The machine's clock, and how many of its timers are still set. */
function countingClock(): { clock: Clock; timers(): number } {
  const set = new Set<object>();
  return {
    timers: () => set.size,
    clock: {
      ...systemClock,
      setTimer(delayMs, fire, options) {
        const mark = {};
        set.add(mark);
        const timer = systemClock.setTimer(delayMs, () => void (set.delete(mark), fire()), options);
        return { cancel: () => (set.delete(mark), timer.cancel()) };
      },
    },
  };
}

it('marks a store of an earlier form only when the rest of its start is sound, and then serves it', async () => {
  const path = `sqlite:${join(directory, 'berth.db')}`;
  const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: directory });
  const formOf = async (change?: number): Promise<number | undefined> => {
    const store = await openStore(path);
    const found = await clusterIn(store);
    if (found && change !== undefined) {
      const value = encodeRecord({ ...found.cluster, recordsVersion: change });
      await store.commit([{ key: keys.cluster, ifRevision: found.revision }], [{ key: keys.cluster, value }]);
    }
    await store.close();
    return found?.cluster.recordsVersion;
  };
  await (await startServer(config, { log: silentLogger })).close();
  await formOf(recordsVersion - 1);
  const faulty = { ...config, imageMap: '/nonexistent/map.yaml' };
  await expect(startServer(faulty, { log: silentLogger })).rejects.toThrow(/image map/);
  expect(await formOf()).toBe(recordsVersion - 1);

  const server = await startServer(config, { log: silentLogger });
  const answer = await systemFetch(`${server.url}/v1/sizes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.operatorToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ metadata: { name: 'small' }, spec: { cpus: 1, memoryMiB: 64 } }),
  });
  expect(answer.status).toBe(201);
  await server.close();
  expect(await formOf()).toBe(recordsVersion);
});
