import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runBerth } from '../../cli/testing.ts';
import { processCommands } from '../registry.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-config-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function fileOf(text: string): Promise<string> {
  const path = join(directory, 'berth.yaml');
  await writeFile(path, text);
  return path;
}

function berth(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return runBerth(words, { more: processCommands, environment });
}

describe('berth config check', () => {
  it.each([
    ['server', 'listen: 127.0.0.1:7070\nlogLevel: info\n'],
    ['agent', `hostName: vm-1\ndataDirectory: /nowhere/berth\n`],
  ])('knows a file of the %s by its keys', async (role, text) => {
    const path = await fileOf(text);
    const { stdout, exitCode } = await berth(['config', 'check', path]);
    expect(stdout).toBe(`${path} is a valid configuration of berth ${role}; it sets 2 of its keys\n`);
    expect(exitCode).toBe(0);
  });

  it.each([
    ['an unknown key', 'lisen: 127.0.0.1:7070\n', 'unknown key "lisen"; did you mean "listen"?'],
    ['a value of another type', 'imageGiBMax: many\n', 'imageGiBMax'],
    ['a lease that is too short', 'offlineAfterMs: 20000\n', 'offlineAfterMs (20000) must be at least three times'],
  ])('refuses %s and names it', async (_, text, message) => {
    const { stderr, exitCode } = await berth(['config', 'check', '--server', await fileOf(text)]);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });

  it('does not read the environment', async () => {
    const path = await fileOf('logLevel: info\n');
    expect(await berth(['config', 'check', '--server', path], { BERTH_SERVER_LOG_LEVEL: 'no' })).toMatchObject({
      exitCode: 0,
    });
  });
});

describe('berth config show', () => {
  it('says where each value comes from, and hides passwords', async () => {
    const path = await fileOf('store: postgres://ann:a-password@db/berth\nlogLevel: info\n');
    const { stdout } = await berth(['config', 'show', '--server', '--config', path, '-o', 'json'], {
      BERTH_SERVER_LOG_LEVEL: 'debug',
    });
    expect(stdout).not.toContain('a-password');
    expect(JSON.parse(stdout)).toEqual(
      expect.arrayContaining([
        { key: 'store', value: 'postgres://ann:(hidden)@db/berth', source: 'file', name: path },
        { key: 'logLevel', value: 'debug', source: 'environment', name: 'BERTH_SERVER_LOG_LEVEL' },
        { key: 'heartbeatMs', value: 10_000, source: 'default' },
        { key: 'amqpUrl', value: null, source: 'default' },
      ]),
    );
  });

  it('asks whose configuration is meant', async () => {
    const { stderr, exitCode } = await berth(['config', 'show']);
    expect(stderr).toContain('give --server or --agent');
    expect(exitCode).toBe(2);
  });
});
