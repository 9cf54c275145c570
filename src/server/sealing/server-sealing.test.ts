import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Logger } from '../../base/log.ts';
import { systemClock } from '../../base/system.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { parseMasterKeys } from './master-keys.ts';
import { newMasterKey } from './read-master-keys.ts';
import { sealingOf } from './server-sealing.ts';

let dataDirectory: string;
beforeEach(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'berth-keys-'));
});
afterEach(() => rm(dataDirectory, { recursive: true, force: true }));

function open(config: object, { store = createMemoryStore(), own = true } = {}) {
  const lines: string[] = [];
  const note = (message: string): void => void lines.push(message);
  const log: Logger = { debug: note, info: note, warn: note, error: note, with: () => log };
  const sealing = sealingOf({ dataDirectory, ...config }, { store, own, clock: systemClock, log });
  return { sealing, store, lines };
}

const ownPath = (): string => join(dataDirectory, 'master.key');

describe('the master key of a server', () => {
  it('is made at the first start with its own store, for its owner only, and found at the next', async () => {
    const first = open({});
    const { masterKeys } = (await first.sealing)?.dataKeys ?? {};
    expect((await stat(ownPath())).mode & 0o777).toBe(0o600);
    const again = await open({}, first).sealing;
    expect(again?.dataKeys.masterKeys.ids).toEqual(masterKeys?.ids);
    expect(await readdir(dataDirectory)).toEqual(['master.key']);
  });

  it('is not made for a store that other servers may use: nothing is encrypted, and the log says so', async () => {
    const { sealing, lines } = open({}, { own: false });
    expect(await sealing).toBeUndefined();
    expect(lines).toEqual([expect.stringContaining('no master key is configured')]);
    expect(await readdir(dataDirectory)).toEqual([]);
  });

  it('is not made again when it is lost: the start is refused, and names the key', async () => {
    const first = open({});
    const id = (await first.sealing)?.dataKeys.masterKeys.current.id;
    await rm(ownPath());
    await expect(open({}, first).sealing).rejects.toThrow(`under master key ${id}: ${ownPath()} is missing`);
    await expect(open({}, { ...first, own: false }).sealing).rejects.toThrow(
      `under master key ${id}: none is configured`,
    );
    expect(await readdir(dataDirectory)).toEqual([]);
  });

  it('may come from a file, with older keys after it', async () => {
    const [old, next] = [newMasterKey(), newMasterKey()];
    const path = join(dataDirectory, 'keys');
    await writeFile(path, `${old}\n`, { mode: 0o600 });
    const { store, sealing } = open({ masterKeyFile: path }, { own: false });
    await sealing;
    await writeFile(path, `${next}\n`);
    const wrong = open({ masterKeyFile: path }, { store, own: false }).sealing;
    await expect(wrong).rejects.toThrow(`masterKeyFile ${path}: records are encrypted under master key ${idOf(old)}`);
    await expect(wrong).rejects.toThrow(`the given key is ${idOf(next)}`);
    await writeFile(path, `${next}\n${old}\n`);
    expect((await open({ masterKeyFile: path }, { store, own: false }).sealing)?.dataKeys.masterKeys.ids).toEqual([
      idOf(next),
      idOf(old),
    ]);
  });

  it('warns of a file that others may read', async () => {
    const path = join(dataDirectory, 'keys');
    await writeFile(path, newMasterKey(), { mode: 0o644 });
    const { sealing, lines } = open({ masterKeyFile: path });
    await sealing;
    expect(lines).toEqual([expect.stringContaining(`chmod 600 ${path}`)]);
  });

  it('may come from a command', async () => {
    const key = newMasterKey();
    await writeFile(join(dataDirectory, 'held'), key);
    const { sealing } = open({ masterKeyCommand: `cat ${dataDirectory}/held` }, { own: false });
    expect((await sealing)?.dataKeys.masterKeys.ids).toEqual([idOf(key)]);
  });

  it.each([
    ['a file that is missing', { masterKeyFile: '/nonexistent/key' }, 'masterKeyFile: cannot read /nonexistent/key'],
    ['a file that is no key', { masterKeyFile: '/etc/hostname' }, 'masterKeyFile: /etc/hostname: '],
    ['a command that fails', { masterKeyCommand: 'echo planted; exit 3' }, 'the command failed: exit code 3'],
    ['a command that prints no key', { masterKeyCommand: 'echo planted' }, 'the output of the command: line 1'],
    [
      'a file and a command',
      { masterKeyFile: '/k', masterKeyCommand: 'cat /k' },
      'masterKeyCommand: masterKeyFile is given too',
    ],
  ])('is refused, and not repeated: %s', async (_, config, message) => {
    const attempt = open(config).sealing;
    await expect(attempt).rejects.toThrow(message);
    await expect(attempt).rejects.not.toThrow('planted');
  });
});

function idOf(key: string): string {
  return parseMasterKeys(key).current.id;
}

it('writes a key that it can read', async () => {
  await open({}).sealing;
  expect(parseMasterKeys(await readFile(ownPath(), 'utf8')).ids).toHaveLength(1);
});
