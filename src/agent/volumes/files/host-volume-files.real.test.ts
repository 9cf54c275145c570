import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../../base/system.ts';
import { atEveryStep } from '../../test-every-step.ts';
import { volumeFilesConformance } from '../conformance.ts';
import { makeRealVolumeHost, type RealVolumeHost } from '../test-volume-host.ts';
import { VolumeError, type VolumeFiles, type VolumeLook } from './volume-files.ts';

volumeFilesConformance('volumes that are files', makeRealVolumeHost);

const id = `vol_${'0'.repeat(25)}1`;
const other = `vol_${'0'.repeat(25)}2`;
const never = new AbortController().signal;
const mebibyte = 1024 * 1024;
/** Not when they were made. */
const namesIn = (look: VolumeLook): string[] => (look.found === 'volume' ? look.snapshots.map(({ name }) => name) : []);

describe('volumes that are files', () => {
  let host: RealVolumeHost;
  beforeEach(async () => {
    host = await makeRealVolumeHost();
  });
  afterEach(() => host.dispose());

  const make = (sizeBytes = mebibyte): Promise<void> => host.open().make({ volumeId: id, sizeBytes }, never);
  const qemuImg = (...words: string[]): string => execFileSync('qemu-img', words, { encoding: 'utf8' });

  it('are as sound as qemu-img makes them, and stay so', async () => {
    const files = host.open();
    await make();
    await files.snapshot(id, 'make', 'a');
    await files.grow(id, 5 * mebibyte);
    await files.snapshot(id, 'make', 'b');
    await files.snapshot(id, 'remove', 'a');
    expect(qemuImg('check', '-f', 'qcow2', host.pathOf(id))).toContain('No errors were found');
    expect(JSON.parse(qemuImg('info', '--output=json', '-f', 'qcow2', host.pathOf(id)))).toMatchObject({
      'virtual-size': 5 * mebibyte,
      snapshots: [{ name: 'berth-b' }],
    });
  });

  it('are kept from other users, whatever was there before', async () => {
    await make();
    expect((await stat(host.pathOf(id))).mode & 0o777).toBe(0o600);
    expect((await stat(join(host.directory, id))).mode & 0o077).toBe(0);
    await host.open({ directoryMode: 0o711 }).make({ volumeId: other, sizeBytes: mebibyte }, never);
    expect((await stat(join(host.directory, other))).mode & 0o777).toBe(0o711);
  });

  it('take nothing but ids as names of folders', async () => {
    const files = host.open();
    for (const volumeId of ['../vol_00000000000000000000000001', 'vol_1', '', '-o'])
      await expect(files.make({ volumeId, sizeBytes: mebibyte }, never)).rejects.toThrow(/not a volume's id/);
    await mkdir(join(host.directory, 'lost+found'));
    expect(await files.list()).toEqual([]);
  });

  it('that were not finished are told from those that are not there, and made at the next try', async () => {
    await mkdir(join(host.directory, id));
    await writeFile(join(host.directory, id, 'disk.qcow2.new'), 'half of a');
    expect(await host.open().look(id)).toEqual({ found: 'unfinished' });
    await make();
    expect(await host.open().look(id)).toMatchObject({ found: 'volume', sizeBytes: mebibyte });
    expect(await readdir(join(host.directory, id))).toEqual(['disk.qcow2']);
  });

  describe('that are no volumes of ours', () => {
    const cases: readonly (readonly [string, RegExp, (path: string) => Promise<void>])[] = [
      ['is empty', /no qcow2 file/, (path) => writeFile(path, '')],
      ['holds anything', /no qcow2 file/, (path) => writeFile(path, 'x'.repeat(5000))],
      ['is cut off', /no qcow2 file/, async (path) => writeFile(path, (await sample()).subarray(0, 60))],
      ['is a symbolic link', /symbolic link/, (path) => symlink('/etc/passwd', path)],
      ['is a folder', /no file/, async (path) => void (await mkdir(path))],
      ['names a backing file', /backing file/, async (path) => writeFile(path, await sample({ at: 8, byte: 1 }))],
      ['has its data elsewhere', /another file/, async (path) => writeFile(path, await sample({ at: 79, byte: 4 }))],
      ['is marked corrupt', /corrupt/, async (path) => writeFile(path, await sample({ at: 79, byte: 2 }))],
      ['is encrypted', /encrypted/, async (path) => writeFile(path, await sample({ at: 35, byte: 1 }))],
      [
        'has more snapshots than can be',
        /snapshots/,
        async (path) => writeFile(path, await sample({ at: 60, byte: 9 })),
      ],
      ['has snapshots at no place', /snapshots/, async (path) => writeFile(path, await sample({ at: 63, byte: 1 }))],
    ];
    const sample = async (change?: { readonly at: number; readonly byte: number }): Promise<Buffer> => {
      const path = join(host.directory, 'sample.qcow2');
      qemuImg('create', '-q', '-f', 'qcow2', path, '1M');
      const bytes = await readFile(path);
      if (change !== undefined) bytes[change.at] = change.byte;
      return bytes;
    };

    it.each(cases)('a file that %s is damage, and left as it is', async (_what, why, write) => {
      await mkdir(join(host.directory, id));
      await write(host.pathOf(id));
      const files = host.open();
      expect(await files.look(id)).toMatchObject({ found: 'damage', why: expect.stringMatching(why) });
      await make();
      expect(await files.look(id)).toMatchObject({ found: 'damage' });
      await expect(
        files.make({ volumeId: other, sizeBytes: mebibyte, source: { volumeId: id, snapshot: 'a' } }, never),
      ).rejects.toMatchObject({ code: 'SourceMissing' });
      await files.remove(id);
      expect(await files.look(id)).toEqual({ found: 'nothing' });
    });
  });

  describe('whose agent is killed', () => {
    /** The agent asks for a change, and dies when qemu-img has said `moment`. */
    const killAgentWhile = async (moment: 'before' | 'after', words: readonly string[]): Promise<void> => {
      const program = join(host.directory, 'qemu-img');
      const say = `echo ${moment} >"$BERTH_TEST_SAYS"`;
      const text = moment === 'before' ? 'SAY; sleep 600' : '/usr/bin/env qemu-img "$@"; SAY; sleep 600';
      const pipe = join(host.directory, 'says');
      spawnSync('mkfifo', [pipe]);
      await writeFile(program, `#!/bin/sh\n${text.replace('SAY', say.replace('$BERTH_TEST_SAYS', pipe))}\n`);
      await chmod(program, 0o755);
      const agent = spawn(
        system.nodePath(),
        [fileURLToPath(new URL('../test-agent.ts', import.meta.url)), host.directory, program, ...words],
        { stdio: 'inherit', detached: true },
      );
      const exited = once(agent, 'exit');
      expect(await readFile(pipe, 'utf8')).toBe(`${moment}\n`);
      system.signal(-(agent.pid ?? 0), 'SIGKILL');
      await exited;
      await rm(pipe);
      await rm(program);
    };

    it.each(['before', 'after'] as const)('%s it is made are made by the next one', async (moment) => {
      await killAgentWhile(moment, ['make', id]);
      expect(await host.open().look(id)).toEqual({ found: 'unfinished' });
      await make();
      expect(await host.open().look(id)).toMatchObject({ found: 'volume', sizeBytes: mebibyte });
      expect(await readdir(join(host.directory, id))).toEqual(['disk.qcow2']);
    });

    it.each(['before', 'after'] as const)(
      '%s it is copied are copied by the next one, from a whole source',
      async (moment) => {
        await make();
        await host.write(id, 'a');
        await host.open().snapshot(id, 'make', 'a');
        await host.write(id, 'b');
        await killAgentWhile(moment, ['copy', other, id]);
        expect(await host.open().look(other)).toEqual({ found: 'unfinished' });
        const source = { volumeId: id, snapshot: 'a' };
        await host.open().make({ volumeId: other, sizeBytes: mebibyte, source }, never);
        expect(await host.read(other)).toBe('a');
        expect(await host.read(id)).toBe('b');
        expect(await readdir(join(host.directory, other))).toEqual(['disk.qcow2']);
      },
    );

    it.each(['before', 'after'] as const)('%s it grows are whole, and grow with the next one', async (moment) => {
      await make();
      await host.write(id, 'a');
      await killAgentWhile(moment, ['grow', id]);
      await host.open().grow(id, 2 * mebibyte);
      expect(await host.open().look(id)).toMatchObject({ found: 'volume', sizeBytes: 2 * mebibyte });
      expect(await host.read(id)).toBe('a');
    });

    it.each(['before', 'after'] as const)('%s a snapshot is made have it once', async (moment) => {
      await make();
      await killAgentWhile(moment, ['snapshot', id]);
      await host.open().snapshot(id, 'make', 'a');
      expect(JSON.parse(qemuImg('snapshot', '-l', host.pathOf(id)).includes('berth-a') ? '1' : '0')).toBe(1);
      expect(await host.open().look(id)).toMatchObject({ snapshots: [{ name: 'a' }] });
    });
  });

  it('whose agent dies at any step of what it does to them are as the next one was asked for, and nothing else is left', async () => {
    const source = { volumeId: id, snapshot: 'a' };
    const wishes: readonly ((files: VolumeFiles) => Promise<void>)[] = [
      (files) => files.make({ volumeId: id, sizeBytes: mebibyte }, never),
      (files) => files.snapshot(id, 'make', 'a'),
      (files) => files.make({ volumeId: other, sizeBytes: 2 * mebibyte, source }, never),
      (files) => files.grow(id, 3 * mebibyte),
      (files) => files.snapshot(id, 'remove', 'a'),
      (files) => files.remove(id),
    ];
    const seen = async (own: RealVolumeHost): Promise<unknown> => {
      const looks = await Promise.all([id, other].map((each) => own.open().look(each)));
      const names = await readdir(own.directory, { recursive: true });
      return { names: names.sort(), looks: looks.map((each) => ({ ...each, usedBytes: 0, snapshots: namesIn(each) })) };
    };
    /** After each wish, when no agent died. */
    const whole: unknown[] = [];
    for (const wish of wishes) {
      await wish(host.open());
      whole.push(await seen(host));
    }
    const steps = await atEveryStep(
      async (life) => {
        const own = await makeRealVolumeHost();
        let at = 0;
        await life.live(async () => {
          const files = own.open({ clock: life.clock });
          for (; at < wishes.length; at++) await wishes[at]?.(files);
        });
        await life.kill();
        const wish = Math.min(at, wishes.length - 1);
        await wishes[wish]?.(own.open());
        expect(await seen(own)).toEqual(whole[wish]);
        await own.dispose();
      },
      { atOnce: 4 },
    );
    expect(steps.filter((name) => name.startsWith('run '))).toHaveLength(6); // create, snapshot, convert, resize, resize, snapshot
  });

  it('say what to install when there is no qemu-img', async () => {
    await expect(
      host.open({ qemuImgProgram: '/nonexistent/qemu-img' }).make({ volumeId: id, sizeBytes: mebibyte }, never),
    ).rejects.toThrow(/install the package qemu-utils/);
  });

  // Needs the right to mount.
  it.skipIf(system.userId() !== 0)(
    'say that the disk is full, leave nothing half, and work once there is room',
    async () => {
      const mount = (...words: string[]) => expect(spawnSync('mount', words).status).toBe(0);
      mount('-t', 'tmpfs', '-o', 'size=100k', 'tmpfs', host.directory);
      try {
        const files = host.open();
        const failure = await files.make({ volumeId: id, sizeBytes: mebibyte }, never).catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(VolumeError);
        expect(failure).toMatchObject({ code: 'DiskFull', message: expect.stringContaining(host.directory) });
        expect(await files.look(id)).toEqual({ found: 'unfinished' });
        mount('-o', 'remount,size=1m', host.directory);
        await make();
        await host.write(id, 'a');
        await writeFile(join(host.directory, 'filler'), new Uint8Array(2 * mebibyte)).catch(() => {}); // all there is
        await expect(files.snapshot(id, 'make', 'a')).rejects.toMatchObject({ code: 'DiskFull' });
        await expect(files.grow(id, 1024 ** 4)).rejects.toMatchObject({ code: 'DiskFull' });
        await rm(join(host.directory, 'filler'));
        mount('-o', 'remount,size=64m', host.directory);
        await files.snapshot(id, 'make', 'a');
        await files.grow(id, 2 * mebibyte);
        expect(await files.look(id)).toMatchObject({ sizeBytes: 2 * mebibyte, snapshots: [{ name: 'a' }] });
        expect(await host.read(id)).toBe('a');
      } finally {
        spawnSync('umount', [host.directory]);
      }
    },
  );
});
