import { lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../base/system.ts';
import {
  chooseUser,
  giveTo,
  giveVolumeTo,
  holderOf,
  leaveUser,
  makeOwnFolder,
  socketFolder,
  takeBack,
  userOfGuest,
  usersBelow,
} from './guest-user.ts';

const users = { first: 5000, count: 3 };
const choose = (taken: readonly number[], before?: number) =>
  chooseUser('/guests/a', { users, before, taken: new Set(taken) });

describe('the user of a guest', () => {
  it('is the one it had', () => {
    expect(choose([5000], 5002)).toBe(5002);
  });
  it.each([
    ['somebody else’s by now', [5001], 5001],
    ['not of those any more', [], 4999],
  ])('is another when that is %s', (_, taken, before) => {
    const user = choose(taken, before);
    expect([5000, 5001, 5002]).toContain(user);
    expect([...taken, before]).not.toContain(user);
  });
  it('is the only one that is free', () => {
    expect(choose([5000, 5002])).toBe(5001);
    expect(() => choose([5000, 5001, 5002])).toThrow('all 3 of guestUsers are taken');
  });
});

const reason = system.userId() === 0 ? undefined : 'only root may give files away';
describe.skipIf(reason !== undefined)(`what a guest’s user is given${reason ? ` (${reason})` : ''}`, () => {
  let root: string;
  let directory: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'berth-user-'));
    directory = join(root, 'a');
    await mkdir(directory, { mode: 0o700 });
  });
  afterEach(() => rm(root, { recursive: true }));

  it('is a folder for its sockets, and the way to it, until it has none any more', async () => {
    await mkdir(join(root, 'b'));
    expect(await userOfGuest(directory)).toBeUndefined();
    expect(await socketFolder(directory)).toBe('');
    await makeOwnFolder(directory, 5001);
    expect(await userOfGuest(directory)).toBe(5001);
    expect(await socketFolder(directory)).toBe('run');
    expect((await lstat(join(directory, 'run'))).mode & 0o777).toBe(0o700);
    expect(await lstat(directory)).toMatchObject({ uid: 0 });
    expect((await lstat(directory)).mode & 0o777).toBe(0o711);
    expect(await usersBelow(root)).toEqual(new Map([[directory, 5001]]));
    await leaveUser(directory);
    expect(await userOfGuest(directory)).toBeUndefined();
  });

  it('is the same folder again, emptied, and another user’s when it is given to that one', async () => {
    await makeOwnFolder(directory, 5001);
    await writeFile(join(directory, 'run', 'qmp.sock'), '');
    await makeOwnFolder(directory, 5001);
    expect(await readdir(join(directory, 'run'))).toEqual([]);
    await makeOwnFolder(directory, 5002);
    expect(await userOfGuest(directory)).toBe(5002);
  });

  describe('of a volume', () => {
    let path: string;
    const owned = async (): Promise<string> => {
      const { uid, gid, mode } = await lstat(path);
      return `${uid}:${gid} ${(mode & 0o777).toString(8)}`;
    };
    beforeEach(async () => {
      path = join(directory, 'disk.qcow2');
      await writeFile(path, '', { mode: 0o600 });
    });

    it('is its file and the way to it, until that is taken back', async () => {
      expect(await holderOf(path)).toBeUndefined();
      await giveVolumeTo({ path, readOnly: false }, 5001);
      expect(await owned()).toBe('5001:5001 600');
      expect(await holderOf(path)).toBe(5001);
      expect((await lstat(directory)).mode & 0o777).toBe(0o711);
      await takeBack(path, 5002); // somebody else's
      expect(await owned()).toBe('5001:5001 600');
      await takeBack(path, 5001);
      expect(await owned()).toBe('0:0 600');
    });
    it('is only to read where it may only read', async () => {
      await giveVolumeTo({ path, readOnly: true }, 5001);
      expect(await owned()).toBe('0:5001 640');
      expect(await holderOf(path)).toBe(5001);
      await takeBack(path, 5001);
      expect(await owned()).toBe('0:0 600');
    });
    it('is nothing where there is no file, and never what a link leads to', async () => {
      await rm(path);
      await giveVolumeTo({ path, readOnly: false }, 5001);
      await takeBack(path, 5001);
      expect(await readdir(directory)).toEqual([]);
      await writeFile(join(root, 'secret'), '');
      await symlink('../secret', path);
      await giveVolumeTo({ path, readOnly: false }, 5001);
      expect(await lstat(join(root, 'secret'))).toMatchObject({ uid: 0, gid: 0 });
    });
  });

  it('is a file, made when there is none, and never what a link leads to', async () => {
    const path = join(directory, 'console.log');
    await giveTo(path, 5001);
    expect(await lstat(path)).toMatchObject({ uid: 5001, gid: 5001, size: 0 });
    expect((await lstat(path)).mode & 0o777).toBe(0o600);
    await writeFile(join(root, 'secret'), '');
    await symlink('../secret', join(directory, 'disk.qcow2'));
    await expect(giveTo(join(directory, 'disk.qcow2'), 5001)).rejects.toThrow('ELOOP');
    expect(await lstat(join(root, 'secret'))).toMatchObject({ uid: 0 });
  });
});
