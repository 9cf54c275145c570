import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { knownServersAt } from './known-servers.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-known-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const urls = ['http://cp1:7070'];
const known = { learned: ['http://cp1:7070', 'http://cp2:7070'], current: 'http://cp2:7070' };
const at = (configured: readonly string[]) =>
  knownServersAt(join(directory, 'servers.json'), { urls: configured, log: silentLogger });

it('is found again by an agent of the same configuration only', () => {
  expect(at(urls).read()).toBeUndefined();
  at(urls).write(known);
  expect(at(urls).read()).toEqual(known);
  expect(at(['http://another:7070']).read()).toBeUndefined();
});

it('is learned again by an agent when it is damaged', async () => {
  await writeFile(join(directory, 'servers.json'), '{"configured":');
  expect(at(urls).read()).toBeUndefined();
});
