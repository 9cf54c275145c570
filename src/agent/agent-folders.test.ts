import { chmod, mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fetchUsersOf, guestUsersOf, makeFolder, needsPassage } from './agent-folders.ts';

let base: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'berth-folders-'));
});
afterEach(() => rm(base, { recursive: true }));

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o7777;

it.each([
  ['its own guests only', ['qemu', 'fake'], false, 0o700],
  ['guests that run as users of their own', ['qemu', 'fake'], true, 0o711],
  ['guests that only pretend to', ['fake'], true, 0o700],
  ['guests that libvirt runs, too', ['qemu', 'libvirt'], false, 0o711],
])('a new folder of an agent with %s', async (_, drivers, ownUsers, mode) => {
  const path = join(base, 'agent', 'images');
  await makeFolder(path, { passable: needsPassage(drivers, { ownUsers }) });
  expect(await modeOf(path)).toBe(mode);
  expect(await modeOf(join(base, 'agent'))).toBe(mode);
});

it.each([
  [0o700, 0o711],
  [0o2750, 0o2751],
  [0o755, 0o755],
])('a folder of mode %o that is there already is opened to %o', async (before, after) => {
  const path = join(base, 'agent');
  await mkdir(path);
  await chmod(path, before);
  await makeFolder(path, { passable: false });
  expect(await modeOf(path)).toBe(before);
  await makeFolder(path, { passable: true });
  expect(await modeOf(path)).toBe(after);
});

it('has users for guests only where root runs the agent, and only when it has some', () => {
  expect(guestUsersOf({ first: 5000, count: 10 }, 0)).toEqual({ first: 5000, count: 10 });
  expect(guestUsersOf({ first: 5000, count: 10 }, 1000)).toBeUndefined();
  expect(guestUsersOf({ first: 5000, count: 0 }, 0)).toBeUndefined();
});

it('keeps the last users of a large range for fetches of commits', () => {
  const large = { first: 5000, count: 100 };
  expect(guestUsersOf(large, 0)).toEqual({ first: 5000, count: 96 });
  expect(fetchUsersOf(large, 0)).toEqual([5099, 5098, 5097, 5096]);
  expect(fetchUsersOf(large, 1000)).toEqual([]);
  expect(fetchUsersOf({ first: 5000, count: 10 }, 0)).toEqual([]);
});
