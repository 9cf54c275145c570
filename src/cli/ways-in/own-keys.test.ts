import { execFileSync } from 'node:child_process';
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { privateKeysFor } from './own-keys.ts';

let directory = '';
const at = (name: string): string => join(directory, name);
const publicKey = async (name: string): Promise<string> => (await readFile(at(`${name}.pub`), 'utf8')).trim();
const make = (name: string, ...words: string[]): Buffer =>
  execFileSync('ssh-keygen', ['-q', '-C', `${name}@here`, '-f', at(name), ...words]);

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-own-keys-'));
  make('id_ed25519', '-t', 'ed25519', '-N', '');
  make('locked', '-t', 'ed25519', '-N', 'a passphrase');
  make('old', '-t', 'ecdsa', '-m', 'PEM', '-N', '');
  await mkdir(at('folder'));
  await writeFile(at('config'), 'Host *\n');
  await writeFile(
    at('garbage'),
    '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE KEY-----\n',
  );
});
afterAll(() => rm(directory, { recursive: true }));

it('finds a key by its public half, whatever its comment', async () => {
  const [type, key] = (await publicKey('id_ed25519')).split(' ');
  expect(await privateKeysFor(directory, [`${type} ${key} of the office`])).toEqual([at('id_ed25519')]);
});

it('finds one that is encrypted without its .pub, and one of an old format by it', async () => {
  const keys = [await publicKey('old'), await publicKey('locked')];
  await rm(at('locked.pub'));
  expect(await privateKeysFor(directory, keys)).toEqual([at('locked'), at('old')]);
});

it('finds none where there is none', async () => {
  const other = `ssh-ed25519 ${'A'.repeat(68)}`;
  expect(await privateKeysFor(directory, [other])).toEqual([]);
  expect(await privateKeysFor(directory, [])).toEqual([]);
  expect(await privateKeysFor(at('nowhere'), [other])).toEqual([]);
});
