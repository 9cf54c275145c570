// The process commands with all their real parts in this process; only the guests are pretended.

import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { systemClock, systemFetch } from '../base/system.ts';
import type { Cli } from '../cli/cli.ts';
import { readContexts } from '../cli/context-file.ts';
import { runProgram } from '../cli/program.ts';
import { openStore } from '../store/open.ts';
import { hostNameOf } from './agent-process.ts';
import { defaultImageMap, imageMapIn } from './default-image-map.ts';
import { type LocalFleet, startLocalFleet } from './local-fleet.ts';
import { processCommands } from './registry.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-commands-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

interface Running {
  readonly exitCode: Promise<number>;
  stdout(): string;
  stderr(): string;
  /** Resolves when standard output matches. */
  said(pattern: RegExp): Promise<void>;
  interrupt(): void;
}

function berth(line: string, environment: Record<string, string> = {}): Running {
  const interruption = new AbortController();
  let stdout = '';
  let stderr = '';
  let check = (): void => {};
  const text = (data: string | Uint8Array): string => (typeof data === 'string' ? data : Buffer.from(data).toString());
  const cli: Cli = {
    stdout: {
      write(data) {
        stdout += text(data);
        check();
      },
    },
    stderr: { write: (data) => (stderr += text(data)) },
    stdin: (async function* () {})(),
    environment: { NO_COLOR: '1', BERTH_CONFIG: join(directory, 'contexts.yaml'), ...environment },
    homeDirectory: directory,
    clock: systemClock,
    fetch: systemFetch,
    version: '0.0.0-test',
    runProgram: () => Promise.reject(new Error('not here')),
    self: [],
    interruption: () => interruption.signal,
  };
  return {
    exitCode: runProgram(cli, line.split(' '), processCommands),
    stdout: () => stdout,
    stderr: () => stderr,
    said: (pattern) =>
      new Promise((resolve) => {
        check = () => pattern.test(stdout) && resolve();
        check();
      }),
    interrupt: () => interruption.abort(),
  };
}

describe('a fleet on this machine', () => {
  let fleet: LocalFleet;
  const verb = async (line: string) => {
    const running = berth(line, { BERTH_URL: fleet.url, BERTH_TOKEN: fleet.operatorToken });
    return { exitCode: await running.exitCode, stdout: running.stdout(), stderr: running.stderr() };
  };
  beforeAll(async () => {
    const options = {
      dataDirectory: join(directory, 'fleet'),
      imageDirectory: join(directory, 'images'),
      listen: '127.0.0.1:0',
      drivers: ['fake'],
      hostName: 'h1',
    };
    fleet = await startLocalFleet(options, { log: silentLogger });
    await verb('image add tiny --source file:///tiny.img --format raw --cpus 1 --memory 128MiB');
  });
  afterAll(() => fleet.close());

  it('runs an instance and tells its port and what took how long, but no address that nobody can reach', async () => {
    const { stdout, exitCode } = await verb('run tiny --name web -p 80 --wait --timeout 1m');
    expect(stdout).toMatch(
      /^web is ready after \d\.\d s on h1\n {2}port {4}\d+ on h1 -> 80\/tcp\n {2}phases {2}place .*boot/,
    );
    expect(exitCode).toBe(0);
  });

  it('shows it, its console, its events and why it is there', async () => {
    expect((await verb('ps')).stdout).toMatch(/^NAME .*\nweb +Running +yes +h1 /);
    expect((await verb('logs web')).stdout).toContain('berth: ready');
    expect((await verb('events web')).stdout).toMatch(/Scheduled[^]*Started[^]*Ready/);
    expect((await verb('explain web')).stdout).toMatch(/^web is Running on h1: placed on h1/);
    expect((await verb('host ls')).stdout).toMatch(/\nh1 +Ready .* fake +1 /);
  });

  it('says of what fits nowhere, host by host, what refuses it', async () => {
    await verb('run tiny --name big --memory 60TiB');
    expect((await verb('explain big')).stdout).toMatch(
      /^big is Pending: 0 of 1 hosts?: 1 InsufficientMemory[^]*h1 +InsufficientMemory/,
    );
    expect(await verb('run tiny --memory 60TiB --wait --timeout 200ms')).toMatchObject({
      exitCode: 8,
      stdout: '',
      stderr: expect.stringContaining('was not done after'),
    });
  });

  it('stops and starts it again', async () => {
    expect(await verb('stop web --wait')).toMatchObject({ stdout: 'web stopped\n', exitCode: 0 });
    expect(await verb('start web --wait')).toMatchObject({ stdout: 'web is ready\n', exitCode: 0 });
    expect(await verb('restart web --wait')).toMatchObject({ stdout: 'web is ready\n', exitCode: 0 });
    expect((await verb('show web')).stdout).toMatch(/^web {2}Running, ready\n {2}host +h1\n/);
    expect((await verb('logs web --tail 1')).stdout).toMatch(/^.*berth: ready.*\n?$/);
  });

  it('removes it without a trace', async () => {
    expect(await verb('rm web big --wait')).toMatchObject({ stdout: 'web removed\nbig removed\n', exitCode: 0 });
  });

  it('answers each kind of failure with its exit code', async () => {
    expect(await verb('run tinny')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('did you mean "tiny"?'),
    });
    expect(await verb('rm web')).toMatchObject({ exitCode: 3 });
    expect(await berth('ps', { BERTH_URL: fleet.url, BERTH_TOKEN: 'wrong' }).exitCode).toBe(4);
    expect(await verb('image add tiny --source file:///tiny.img')).toMatchObject({ exitCode: 5 });
    expect(await berth('ps', { BERTH_URL: 'http://127.0.0.1:1' }).exitCode).toBe(6);
  });

  it('says of a backup that is not there what it says of any file', async () => {
    const { stderr, exitCode } = await verb(`restore ${directory}/none --store sqlite:${directory}/none.db`);
    expect(stderr).toBe(`berth: cannot restore from ${directory}/none: there is no such file; nothing was changed\n`);
    expect(exitCode).toBe(2);
  });

  it('prints the token of a host where the server keeps its data', async () => {
    const { stdout } = await verb(`host token h1 --data-dir ${join(directory, 'fleet', 'server')}`);
    expect(stdout).toBe(await readFile(join(directory, 'fleet', 'host.token'), 'utf8'));
    expect(await verb(`host token h1 --data-dir ${directory}`)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("run this on the server's machine"),
    });
  });

  it('asks the server for the token of a host, also of one that is not there yet', async () => {
    const token = await readFile(join(directory, 'fleet', 'host.token'), 'utf8');
    const known = token.split('.')[1] ?? '';
    expect(await verb(`host token ${known}`)).toMatchObject({ stdout: token, exitCode: 0 });
    const { stdout } = await verb('host token not-there-yet');
    expect(stdout).toMatch(/^berth-host\.not-there-yet\.[\w-]{43}\n$/);
    expect(await verb('host token Not_A_Name')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('a host cannot be called "Not_A_Name"'),
    });
  });

  it('is consistent in the end', async () => {
    const { stdout, exitCode } = await verb('verify --older-than 0s');
    expect(stdout).toMatch(/consistent/);
    expect(exitCode).toBe(0);
  });
});

describe('berth dev', () => {
  it('writes the context that the other verbs use, and ends at Ctrl-C', async () => {
    const dev = berth(`dev --driver fake --name h1 --data-dir ${join(directory, 'dev')} --listen 127.0.0.1:0`);
    await dev.said(/Ctrl-C ends it/);
    expect((await stat(join(directory, 'contexts.yaml'))).mode & 0o777).toBe(0o600);
    const list = berth('host ls -o name');
    expect(await list.exitCode).toBe(0);
    dev.interrupt();
    expect(await dev.exitCode).toBe(0);
    const after = berth('ps');
    expect(await after.exitCode).toBe(2);
    expect(after.stderr()).toContain('no server is known');
  });

  it('beside a quickstart gives it its place back, and that leaves no context of a server that has ended', async () => {
    const environment = { BERTH_CONFIG: join(directory, 'side-by-side.yaml') };
    const local = `--driver fake --listen 127.0.0.1:0 --data-dir ${directory}`;
    const quickstart = berth(`quickstart ${local}/side-q`, environment);
    await quickstart.said(/Ctrl-C/);
    const dev = berth(`dev ${local}/side-d --name h1`, environment);
    await dev.said(/Ctrl-C ends it/);
    expect(await readContexts(environment.BERTH_CONFIG)).toMatchObject({ current: 'dev' });
    dev.interrupt();
    expect(await dev.exitCode).toBe(0);
    expect(dev.stdout()).toContain('context quickstart is current again\n');
    expect(await berth('ps', environment).exitCode).toBe(0);
    quickstart.interrupt();
    expect(await quickstart.exitCode).toBe(0);
    expect(await readContexts(environment.BERTH_CONFIG)).toEqual({ contexts: {} });
  });
});

describe('berth backup', () => {
  it.each([
    ['a form that it does not write', 'fleet.xz', '.xz is not a format of backups'],
    ['a directory that is not there', 'nowhere/fleet.zst', 'there is no directory'],
  ])('refuses %s before it asks anybody', async (_, file, message) => {
    const running = berth(`backup ${join(directory, file)}`, { BERTH_URL: 'http://127.0.0.1:1' });
    expect(await running.exitCode).toBe(2);
    expect(running.stderr()).toContain(message);
  });
});

describe('a store that another process has', () => {
  const urlOf = (name: string) => `sqlite:${join(directory, name)}`;
  it.each([
    ['store check', () => `store check ${urlOf('used.db')}`, ''],
    ['store migrate', () => `store migrate ${urlOf('used.db')} ${urlOf('other.db')}`, ''],
    [
      'backup',
      () => `backup ${join(directory, 'used.jsonl')} --store ${urlOf('used.db')}`,
      '  or leave out --store, to back up through the server\n',
    ],
    [
      'server',
      () => `server --data-dir ${join(directory, 'second')} --listen 127.0.0.1:0 --store ${urlOf('used.db')}`,
      '  or use another file for this server: --store sqlite:PATH\n',
    ],
    [
      'dev',
      () => `dev --data-dir ${join(directory, 'local')} --listen 127.0.0.1:0 --driver fake`,
      '  or use another directory: --data-dir DIRECTORY\n',
      'local/server/berth.db',
    ],
  ])('is refused to berth %s with what can be done there', async (_, line, advice, file = 'used.db') => {
    await mkdir(dirname(join(directory, file)), { recursive: true });
    const store = await openStore(urlOf(file));
    try {
      const running = berth(line());
      expect(await running.exitCode).toBe(6);
      expect(running.stderr().endsWith(`(pid ${process.pid}); stop that one first\n${advice}`)).toBe(true);
    } finally {
      await store.close();
    }
  });
});

describe('berth store check', () => {
  it.each([
    ['is empty', '', 5, 'is empty (0 bytes)'],
    ['is cut off', 'SQLite format 3\0', 5, 'is damaged: it is cut off inside its header, at byte 16'],
    ['is no SQLite file', 'hello\n', 2, 'is not a SQLite file'],
  ])('says of a file that %s what it is, and whose fault', async (_, text, exitCode, message) => {
    const path = join(directory, 'damaged.db');
    await writeFile(path, text);
    const running = berth(`store check sqlite:${path}`);
    expect(await running.exitCode).toBe(exitCode);
    expect(running.stderr()).toContain(message);
    expect(await readFile(path, 'utf8')).toBe(text);
  });
});

describe('berth quickstart', () => {
  it('goes from nothing to a guest and back, with --once, and leaves no context', async () => {
    const environment = { BERTH_CONFIG: join(directory, 'untouched.yaml') };
    const data = join(directory, 'quickstart');
    const once = berth(
      `quickstart --once --driver fake --reason testing --data-dir ${data} --listen 127.0.0.1:0`,
      environment,
    );
    expect(await once.exitCode).toBe(0);
    expect(once.stdout()).toMatch(
      /simulated \(driver "fake"\): testing[^]*✔ control plane on http[^]*✔ host [^]*✔ hello has booted[^]*PHASE +TOOK[^]*in all[^]*is removed completely/,
    );
    expect(await readdir(directory)).not.toContain('untouched.yaml');
  });
});

describe('berth server and berth agent', () => {
  it.each([
    ['an unknown key of the file', 'server', 'lissten: x', {}, 'unknown key "lissten"; did you mean "listen"?'],
    [
      'an unknown variable',
      'server',
      '',
      { BERTH_SERVER_LISSTEN: 'x' },
      'unknown environment variable BERTH_SERVER_LISSTEN; did you mean "BERTH_SERVER_LISTEN"?',
    ],
    ['an address that is open without TLS', 'server', 'listen: 0.0.0.0:7070\ntls: false', {}, 'put TLS in front'],
    [
      'a wrong value, and say where it comes from',
      'agent',
      '',
      { BERTH_AGENT_LOG_LEVEL: 'loud' },
      'it comes from BERTH_AGENT_LOG_LEVEL',
    ],
  ])('refuse %s', async (_, command, text, environment, message) => {
    const config = join(directory, 'config.yaml');
    await writeFile(config, text, { mode: 0o600 });
    const running = berth(`${command} --config ${config} --data-dir ${join(directory, 'unused')}`, environment);
    expect(await running.exitCode).toBe(2);
    expect(running.stderr()).toContain(message);
  });
});

describe('the image map of berth server', () => {
  it('is the example of the working directory, if there is one', async () => {
    expect(await imageMapIn(directory)).toBeUndefined();
    await mkdir(join(directory, 'examples'));
    await writeFile(join(directory, defaultImageMap), '');
    expect(await imageMapIn(directory)).toBe(join(directory, 'examples/orchestrator-image-map.yaml'));
    expect(await imageMapIn(join(import.meta.dirname, '../..'))).toBeDefined();
  });

  it('is the one that was named, by flag or ORCH_CONFIG, before the example', async () => {
    const named = join(directory, 'map.yaml');
    const images = async (line: string, environment: Record<string, string>): Promise<string> => {
      const data = await mkdtemp(join(directory, 'mapped-'));
      const server = berth(`server --data-dir ${data} --listen 127.0.0.1:0 --log-level silent${line}`, environment);
      await expect.poll(() => server.stderr(), { timeout: 10_000 }).toContain('listens on');
      const url = /listens on (\S+)/.exec(server.stderr())?.[1] ?? '';
      const token = (await readFile(join(data, 'operator.token'), 'utf8')).trim();
      const list = berth('image ls -o name', { BERTH_URL: url, BERTH_TOKEN: token });
      expect(await list.exitCode).toBe(0);
      server.interrupt();
      expect(await server.exitCode).toBe(0);
      return list.stdout();
    };
    await writeFile(named, 'images: {mine: {source: "https://example.org/mine.qcow2"}}\n');
    expect(await images(` --image-map ${named}`, {})).toBe('mine\n');
    expect(await images('', { ORCH_CONFIG: named })).toBe('mine\n');
    expect(await images('', {})).toBe('openindiana-hipster\n'); // tests run in the project's directory
  });
});

describe('the name of a host', () => {
  it.each([
    ['Build-1.example.org', 'build-1'],
    ['my_machine', 'my-machine'],
    ['---', 'host-1'],
    ['', 'host-1'],
  ])('%j becomes %s', (machine, host) => expect(hostNameOf(machine)).toBe(host));
});
