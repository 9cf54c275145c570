// The admin token and its file, and tokens in backups, with real servers and stores.

import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createUserClient } from '../api/client/user-client.ts';
import { parse } from '../api/parse.ts';
import { silentLogger } from '../base/log.ts';
import { systemClock, systemFetch } from '../base/system.ts';
import type { Cli } from '../cli/cli.ts';
import { readContexts, writeContexts } from '../cli/context-file.ts';
import { runProgram } from '../cli/program.ts';
import { encodeRecord } from '../core/state/codec.ts';
import { keys } from '../core/state/keys.ts';
import { ServerConfig } from '../server/config.ts';
import { digestOf } from '../server/http/identity/authenticate.ts';
import { type RunningServer, startServer } from '../server/run.ts';
import { clusterIn } from '../server/storage/cluster-record.ts';
import { openStore } from '../store/open.ts';
import { processCommands } from './registry.ts';

let directory: string;
let data: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-admin-'));
  data = join(directory, 'server');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const start = (): Promise<RunningServer> =>
  startServer(parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: data }), { log: silentLogger });
const inFile = async (): Promise<string> => (await readFile(join(data, 'operator.token'), 'utf8')).trim();
const contextFile = () => join(directory, 'contexts.yaml');

const rotate = (environment: Record<string, string> = {}) =>
  berth(['token', 'rotate-admin', '--data-dir', data], environment);

async function berth(words: readonly string[], environment: Record<string, string> = {}) {
  let out = '';
  const keep = { write: (text: string | Uint8Array) => (out += String(text)) };
  const cli: Cli = {
    stdout: keep,
    stderr: keep,
    stdin: (async function* () {})(),
    environment: { NO_COLOR: '1', BERTH_CONFIG: contextFile(), ...environment },
    homeDirectory: directory,
    clock: systemClock,
    fetch: systemFetch,
    version: '0.0.0-test',
    runProgram: () => Promise.reject(new Error('not here')),
    self: [],
    interruption: () => new AbortController().signal,
  };
  const exitCode = await runProgram(cli, words, processCommands);
  return { exitCode, out };
}

const opens = (url: string, token: string): Promise<boolean> =>
  createUserClient({ fetch: systemFetch, url, token })
    .list('host')
    .then(
      () => true,
      () => false,
    );

describe('berth token rotate-admin', () => {
  it('replaces the token while the server runs: the old one opens nothing, and contexts have the new one', async () => {
    const server = await start();
    const old = await inFile();
    await writeContexts(contextFile(), {
      current: 'mine',
      contexts: { mine: { url: server.url, token: old }, other: { url: 'https://other.test', token: 'x' } },
    });
    const { exitCode, out } = await rotate({ BERTH_URL: server.url });
    expect(out).toContain('operator.token has a new admin token');
    expect(exitCode).toBe(0);
    const now = await inFile();
    expect(now).toMatch(/^berth_s_/);
    expect([await opens(server.url, old), await opens(server.url, now)]).toEqual([false, true]);
    expect((await readContexts(contextFile())).contexts).toMatchObject({ mine: { token: now }, other: { token: 'x' } });
    expect((await stat(join(data, 'operator.token'))).mode & 0o777).toBe(0o600);
    expect((await readdir(data)).filter((name) => name.startsWith('operator'))).toEqual(['operator.token']);
    await server.close();
    const again = await start();
    expect(await inFile()).toBe(now); // it survives restarts
    expect([await opens(again.url, old), await opens(again.url, now)]).toEqual([false, true]);
    expect(out).not.toContain(now);
    await again.close();
  });

  it('replaces the token in the store while the server is stopped, also when the old one is lost', async () => {
    await (await start()).close();
    const old = await inFile();
    await rm(join(data, 'operator.token'));
    expect((await rotate()).exitCode).toBe(0);
    const server = await start();
    expect([await opens(server.url, old), await opens(server.url, await inFile())]).toEqual([false, true]);
    await server.close();
  });

  it('goes on where it broke off: after the file, and after the commit', async () => {
    const server = await start();
    const first = await inFile();
    await writeFile(join(data, 'operator.token.new'), `berth_s_${'x'.repeat(60)}\n`); // never committed
    expect((await rotate({ BERTH_URL: server.url })).exitCode).toBe(0);
    const second = await inFile();
    await writeFile(join(data, 'operator.token.new'), `${second}\n`); // committed, but not yet in its place
    await writeFile(join(data, 'operator.token'), `${first}\n`);
    expect((await rotate({ BERTH_URL: server.url })).exitCode).toBe(0);
    expect(await opens(server.url, await inFile())).toBe(true);
    const third = await inFile();
    await server.close();
    await writeFile(join(data, 'operator.token.new'), `${third}\n`);
    await writeFile(join(data, 'operator.token'), `${first}\n`);
    const again = await start();
    expect(await inFile()).toBe(third);
    await again.close();
  });

  it('says what to do when its file is not the token of the running server', async () => {
    const server = await start();
    await writeFile(join(data, 'operator.token'), `${'x'.repeat(50)}\n`);
    const { exitCode, out } = await rotate({ BERTH_URL: server.url });
    expect(exitCode).toBe(2);
    expect(out).toContain('is not that of the server');
    expect(out).toContain('stop the server and run this again');
    await server.close();
  });

  it('is not for directories without a server', async () => {
    const { exitCode, out } = await rotate();
    expect(exitCode).toBe(2);
    expect(out).toContain("is no server's data directory");
  });
});

describe('the file of the admin token', () => {
  it('has the text, and the store has its hash only', async () => {
    await (await start()).close();
    const store = await openStore(`sqlite:${join(data, 'berth.db')}`);
    const found = await clusterIn(store);
    await store.close();
    expect(found?.cluster.operatorDigest).toBe(digestOf(await inFile()));
    expect(found?.cluster.operatorToken).toBeUndefined();
    expect((await readFile(join(data, 'berth.db'))).includes(await inFile())).toBe(false);
  });

  it('keeps the token that an earlier version stored as text, which leaves the store', async () => {
    const text = `berth-operator.${'a'.repeat(43)}`;
    await (await start()).close();
    const store = await openStore(`sqlite:${join(data, 'berth.db')}`);
    const found = await clusterIn(store);
    if (!found) throw new Error('no record');
    const { operatorDigest: _digest, ...older } = found.cluster;
    await store.commit([], [{ key: keys.cluster, value: encodeRecord({ ...older, operatorToken: text }) }]);
    await store.close();
    await rm(join(data, 'operator.token'));
    const server = await start();
    expect(await inFile()).toBe(text);
    expect(server.operatorToken).toBe(text);
    expect(await opens(server.url, text)).toBe(true);
    await server.close();
    const after = await openStore(`sqlite:${join(data, 'berth.db')}`);
    expect((await clusterIn(after))?.cluster).toMatchObject({ operatorDigest: digestOf(text) });
    expect((await clusterIn(after))?.cluster.operatorToken).toBeUndefined();
    await after.close();
  });

  it('is not overwritten when its text is not the token of the store, which its server says', async () => {
    await (await start()).close();
    await writeFile(join(data, 'operator.token'), `${'x'.repeat(50)}\n`);
    const warned: string[] = [];
    const log = { ...silentLogger, warn: (message: string) => void warned.push(message) };
    const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: data });
    const server = await startServer(config, { log: { ...log, with: () => log } });
    expect(warned.join('\n')).toContain('is not the admin token of this store');
    expect(await inFile()).toBe('x'.repeat(50));
    expect(server.operatorToken).toBe('');
    await server.close();
  });
});

it('berth restore names the tokens that are valid again', async () => {
  const server = await start();
  const asAdmin = { BERTH_URL: server.url, BERTH_TOKEN: await inFile() };
  const run = (line: string) => berth(line.split(' '), asAdmin);
  const made = await run('token create --name stays --role fleet-operator');
  const { out } = await run('token create --name revoked --role fleet-operator');
  expect(made.exitCode).toBe(0);
  const revoked = /^berth_s_\S+/.exec(out)?.[0] ?? '';
  const file = join(directory, 'backup.jsonl');
  expect((await run(`backup ${file}`)).exitCode).toBe(0);
  expect((await readFile(file, 'utf8')).includes(revoked)).toBe(false);
  expect(await opens(server.url, revoked)).toBe(true);
  expect((await run('token revoke revoked')).exitCode).toBe(0);
  expect(await opens(server.url, revoked)).toBe(false);
  await server.close();
  const restored = await run(`restore ${file} --store sqlite:${join(data, 'berth.db')} --yes`);
  expect(restored.out).toContain('tokens that are valid again: revoked; revoke those that were revoked after');
  const again = await start();
  expect(await opens(again.url, revoked)).toBe(true);
  expect(await opens(again.url, await inFile())).toBe(true);
  await again.close();
});
