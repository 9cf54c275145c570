import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { knownServersFile, readKnownServers, writeKnownServers } from './known-servers.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-known-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('keeps the servers of each fleet apart', () => {
  const path = knownServersFile(join(directory, 'berth', 'config.yaml'));
  const lab = { learned: ['http://lab2'], current: 'http://lab2' };
  writeKnownServers(path, ['http://lab1'], lab);
  writeKnownServers(path, ['https://prod'], { learned: [], current: 'https://prod' });
  expect(readKnownServers(path, ['http://lab1'])).toEqual(lab);
  expect(readKnownServers(path, ['https://prod'])?.learned).toEqual([]);
  expect(readKnownServers(path, ['http://other'])).toBeUndefined();
});

it('does without what cannot be written', async () => {
  const path = join(directory, 'file', 'servers.json');
  await writeFile(join(directory, 'file'), '');
  writeKnownServers(path, ['http://a'], { learned: [], current: 'http://a' });
  expect(readKnownServers(path, ['http://a'])).toBeUndefined();
});
