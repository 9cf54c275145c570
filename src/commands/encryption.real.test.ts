// The master key in daily use: a server with SQLite, its files on disk, backups, a rotation while it runs, and restores.

import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { systemClock, systemFetch } from '../base/system.ts';
import { createClient } from '../api/client/client.ts';
import { parse } from '../api/parse.ts';
import type { Cli } from '../cli/cli.ts';
import { runProgram } from '../cli/program.ts';
import { ServerConfig } from '../server/config.ts';
import { type RunningServer, startServer } from '../server/run.ts';
import { parseMasterKeys } from '../server/sealing/master-keys.ts';
import { newMasterKey } from '../server/sealing/read-master-keys.ts';
import { processCommands } from './registry.ts';

const planted = 'planted-7d1e44a0';
let directory: string;
let data: string;
let server: RunningServer | undefined;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-encryption-'));
  data = join(directory, 'server');
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** Only the server that made it has its text; restored and moved stores have its hash. */
let adminToken = '';

async function start(dataDirectory = data, more: object = {}): Promise<RunningServer> {
  const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory, ...more });
  server = await startServer(config, { log: silentLogger });
  if (server.operatorToken !== '') adminToken = server.operatorToken;
  return server;
}

async function stop(): Promise<void> {
  await server?.close();
  server = undefined;
}

function clientOf({ url }: RunningServer) {
  return createClient({ url, token: adminToken, fetch: systemFetch });
}

async function berth(line: string): Promise<{ readonly exitCode: number; readonly said: string }> {
  let said = '';
  const take = (bytes: string | Uint8Array): boolean => {
    said += typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString();
    return true;
  };
  const access = server ? { BERTH_URL: server.url, BERTH_TOKEN: adminToken } : {};
  const cli: Cli = {
    stdout: { write: take },
    stderr: { write: take },
    stdin: (async function* () {})(),
    environment: { NO_COLOR: '1', BERTH_CONFIG: join(directory, 'contexts.yaml'), ...access },
    homeDirectory: directory,
    clock: systemClock,
    fetch: systemFetch,
    version: '0.0.0-test',
    runProgram: () => Promise.reject(new Error('not here')),
    self: [],
    interruption: () => new AbortController().signal,
  };
  return { exitCode: await runProgram(cli, line.split(' '), processCommands), said };
}

async function plant(running: RunningServer): Promise<void> {
  const client = clientOf(running);
  const source = 'file:///nonexistent/tiny.qcow2';
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source, defaults: { cpus: 1, memoryMiB: 64 } } });
  await client.create('instance', {
    metadata: { name: 'a' },
    spec: { image: 'tiny', userData: `#!/bin/sh\n${planted}\n` },
  });
  await client.create('job', {
    metadata: { name: 'j' },
    spec: { image: 'tiny', script: `echo ${planted}`, env: { A: planted } },
  });
}

/** The names of files below `path` that contain the planted text. */
async function filesWith(text: string, path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const contents = await Promise.all(files.map(async (file) => [file, await readFile(file)] as const));
  return contents.filter(([, bytes]) => bytes.includes(text)).map(([file]) => file);
}

it('keeps secrets out of the files of the store and out of backups, while it runs and after', async () => {
  await plant(await start());
  expect(await filesWith(planted, data)).toEqual([]);
  const secret = (await readFile(join(data, 'secret'), 'utf8')).trim();
  expect(await filesWith(secret, data)).toEqual([join(data, 'secret')]);
  const backup = join(directory, 'backup.jsonl');
  expect(await berth(`backup ${backup}`)).toMatchObject({
    exitCode: 0,
    said: expect.stringMatching(/you need master key [0-9a-f]{16}/),
  });
  await stop();
  expect(await filesWith(planted, directory)).toEqual([]);
  expect(await berth(`store check sqlite:${data}/berth.db`)).toMatchObject({
    exitCode: 0,
    said: expect.stringContaining('encrypted, not read'),
  });
  const again = clientOf(await start());
  expect((await again.get('instance', 'a')).spec.userData).toContain(planted);
  expect((await again.get('job', 'j')).spec.env).toEqual({ A: planted });
});

it('restores a backup with its master key only, and says which it needs', async () => {
  await plant(await start());
  const backup = join(directory, 'backup.jsonl.gz');
  await berth(`backup ${backup}`);
  await stop();
  const id = parseMasterKeys(await readFile(join(data, 'master.key'), 'utf8')).current.id;
  const other = join(directory, 'other');
  await mkdir(other);
  const restore = `restore ${backup} --store sqlite:${other}/berth.db`;
  const without = await berth(restore);
  expect(without).toMatchObject({ exitCode: 2, said: expect.stringContaining(`under master key ${id}`) });
  expect(without.said).toContain('--master-key-file');
  await writeFile(join(directory, 'wrong'), newMasterKey(), { mode: 0o600 });
  const wrong = await berth(`${restore} --master-key-file ${directory}/wrong`);
  expect(wrong).toMatchObject({
    exitCode: 2,
    said: expect.stringContaining(`under master key ${id}, the given key is`),
  });
  expect(await readdir(other)).toEqual([]);
  await copyFile(join(data, 'master.key'), join(other, 'master.key'));
  expect(await berth(restore)).toMatchObject({ exitCode: 0 });
  expect(await filesWith(planted, other)).toEqual([]);
  const client = clientOf(await start(other));
  expect((await client.get('instance', 'a')).spec.userData).toContain(planted);
});

it('encrypts again for a store with another key, when both are in the file', async () => {
  await plant(await start());
  const backup = join(directory, 'backup.jsonl');
  await berth(`backup ${backup}`);
  await stop();
  const other = join(directory, 'other');
  await mkdir(other);
  const key = newMasterKey();
  await writeFile(join(other, 'master.key'), `${key}\n${await readFile(join(data, 'master.key'), 'utf8')}`, {
    mode: 0o600,
  });
  expect(await berth(`restore ${backup} --store sqlite:${other}/berth.db`)).toMatchObject({ exitCode: 0 });
  await writeFile(join(other, 'master.key'), key); // the old one is not needed any more
  expect((await clientOf(await start(other)).get('instance', 'a')).spec.userData).toContain(planted);
});

it('moves to another store, and refuses to where there is no key', async () => {
  await plant(await start());
  await stop();
  const other = join(directory, 'other');
  await mkdir(other);
  const move = `store migrate sqlite:${data}/berth.db sqlite:${other}/berth.db`;
  expect(await berth(move)).toMatchObject({
    exitCode: 2,
    said: expect.stringContaining('no master key for the second store'),
  });
  expect(await berth(`${move} --master-key-file ${data}/master.key`)).toMatchObject({ exitCode: 0 });
  expect(await filesWith(planted, other)).toEqual([]);
  const more = { masterKeyFile: join(data, 'master.key') };
  expect((await clientOf(await start(other, more)).get('instance', 'a')).spec.userData).toContain(planted);
});

it('rotates the master key while the server runs', async () => {
  await plant(await start());
  const path = join(data, 'master.key');
  const [before] = parseMasterKeys(await readFile(path, 'utf8')).ids;
  expect(await berth(`server rotate-key --data-dir ${data}`)).toMatchObject({ exitCode: 0 });
  const text = await readFile(path, 'utf8');
  const [current] = parseMasterKeys(text).ids;
  expect(current).not.toBe(before);
  await expect.poll(async () => (await berth('server keys')).said).toContain(`nothing in the store needs ${before}`);
  await writeFile(path, `${text.split('\n')[0]}\n`);
  await stop();
  expect((await clientOf(await start()).get('instance', 'a')).spec.userData).toContain(planted);
  await stop();
  await writeFile(path, `${text.split('\n')[1]}\n`);
  await expect(start()).rejects.toThrow(`records are encrypted under master key ${current}`);
});

it('follows the commands of docs/secrets.md', async () => {
  await start();
  await writeFile(join(directory, 'password'), planted);
  const text = await readFile(new URL('../../docs/secrets.md', import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/```sh\n(berth secret[^`]*)```/g)].map(([, block]) => block ?? '');
  const lines = blocks.flatMap((block) => block.trim().split('\n'));
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) {
    const words = line.replace(/^berth /, '').replace('/etc/team/password', join(directory, 'password'));
    const { exitCode, said } = await berth(words);
    expect([line, exitCode]).toEqual([line, 0]);
    expect(said).not.toContain(planted);
  }
  expect((await berth('secret ls')).said).toMatch(/registry +password +3/);
  expect(await filesWith(planted, data)).toEqual([]);
  await stop();
  expect(await filesWith(planted, data)).toEqual([]);
});
