// What every `VolumeFiles` must do, as tests. Its own test brings a host to try it on, and the ground truth about what is in a volume.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mebibyte } from '../../base/bytes.ts';
import { type FoundVolume, VolumeError, type VolumeErrorCode, type VolumeFiles } from './files/volume-files.ts';

export interface VolumeTestHost {
  /** As a new run of the agent makes them. */
  open(): VolumeFiles;
  /** What a guest writes, and finds: one letter. */
  write(volumeId: string, letter: string): Promise<void>;
  /** Empty: never written. */
  read(volumeId: string): Promise<string>;
  /** A guest has it open, until the answer is called. */
  use(volumeId: string): Promise<() => Promise<void>>;
  dispose(): Promise<void>;
}

const [one, two] = [`vol_${'0'.repeat(25)}1`, `vol_${'0'.repeat(25)}2`];
const never = new AbortController().signal;

export function volumeFilesConformance(name: string, makeHost: () => Promise<VolumeTestHost>): void {
  describe(`${name} keep the contract of volumes' files`, () => {
    let host: VolumeTestHost;
    let files: VolumeFiles;
    beforeEach(async () => {
      host = await makeHost();
      files = host.open();
    });
    afterEach(() => host.dispose());

    const make = (volumeId = one, sizeBytes = mebibyte): Promise<void> => files.make({ volumeId, sizeBytes }, never);
    const copy = (snapshot: string, sizeBytes = mebibyte): Promise<void> =>
      files.make({ volumeId: two, sizeBytes, source: { volumeId: one, snapshot } }, never);
    const found = async (volumeId = one): Promise<FoundVolume> => {
      const look = await files.look(volumeId);
      if (look.found !== 'volume') throw new Error(`${volumeId} is not there, but ${JSON.stringify(look)}`);
      return look;
    };
    const snapshots = async (): Promise<string[]> => (await found()).snapshots.map((each) => each.name);
    const fails = (act: Promise<unknown>): Promise<VolumeErrorCode | 'none' | 'foreign'> =>
      act.then(
        () => 'none',
        (error: unknown) => (error instanceof VolumeError ? error.code : 'foreign'),
      );

    it('finds nothing where nothing was made', async () => {
      expect(await files.list()).toEqual([]);
      expect(await files.look(one)).toEqual({ found: 'nothing' });
    });

    it('makes a volume of the size asked for, which the next agent finds', async () => {
      await make();
      files = host.open();
      expect(await files.list()).toEqual([one]);
      expect(await found()).toMatchObject({ sizeBytes: mebibyte, snapshots: [] });
      expect(await host.read(one)).toBe('');
    });

    it('never makes a volume anew that is there', async () => {
      await make();
      await host.write(one, 'a');
      await make(one, 2 * mebibyte);
      expect((await found()).sizeBytes).toBe(mebibyte);
      expect(await host.read(one)).toBe('a');
    });

    it('grows a volume with what is in it, and never makes it smaller', async () => {
      await make();
      await host.write(one, 'a');
      await files.grow(one, 3 * mebibyte);
      await files.grow(one, 2 * mebibyte);
      await files.grow(one, 3 * mebibyte);
      expect((await found()).sizeBytes).toBe(3 * mebibyte);
      expect(await host.read(one)).toBe('a');
    });

    it('keeps snapshots by name, whatever the name looks like, each once', async () => {
      await make();
      for (const each of ['1', 'nightly', '2', 'nightly', '1-c']) await files.snapshot(one, 'make', each);
      expect(await snapshots()).toEqual(['1', '1-c', '2', 'nightly']);
      expect((await found()).snapshots.every(({ createdAtMs }) => createdAtMs > 0)).toBe(true);
      await files.snapshot(one, 'remove', '1');
      await files.snapshot(one, 'remove', '1');
      await files.snapshot(one, 'remove', 'never-was');
      expect(await snapshots()).toEqual(['1-c', '2', 'nightly']);
    });

    it('makes a copy of what was in a volume when its snapshot was made', async () => {
      await make();
      await host.write(one, 'a');
      await files.snapshot(one, 'make', 'before');
      await host.write(one, 'b');
      await files.grow(one, 2 * mebibyte);
      await copy('before', 3 * mebibyte);
      expect(await host.read(two)).toBe('a');
      expect(await found(two)).toMatchObject({ sizeBytes: 3 * mebibyte, snapshots: [] });
      await host.write(two, 'c');
      expect(await host.read(one)).toBe('b');
      expect(await snapshots()).toEqual(['before']);
    });

    it('makes a copy no smaller than what it is a copy of', async () => {
      await make(one, 2 * mebibyte);
      await files.snapshot(one, 'make', 'before');
      await copy('before');
      expect((await found(two)).sizeBytes).toBe(2 * mebibyte);
    });

    it('makes a copy while a guest has the original open', async () => {
      await make();
      await host.write(one, 'a');
      await files.snapshot(one, 'make', 'before');
      const end = await host.use(one);
      await copy('before');
      await end();
      expect(await host.read(two)).toBe('a');
    });

    it.each(['another', 'before'])('makes no copy of a snapshot "%s" that is not there', async (missing) => {
      await make();
      await files.snapshot(one, 'make', 'before');
      if (missing === 'before') await files.remove(one);
      expect(await fails(copy(missing))).toBe('SourceMissing');
      expect((await files.look(two)).found).not.toBe('volume');
      await files.remove(two);
      expect(await files.look(two)).toEqual({ found: 'nothing' });
    });

    it('removes a volume with its snapshots, and does not mind when there is none', async () => {
      await make();
      await make(two);
      await files.snapshot(one, 'make', 'before');
      await files.remove(one);
      await files.remove(one);
      expect(await files.look(one)).toEqual({ found: 'nothing' });
      expect(await files.list()).toEqual([two]);
      await make();
      expect(await snapshots()).toEqual([]);
    });

    it('changes nothing of a volume that a guest has open, and can be asked what it is', async () => {
      await make();
      await files.snapshot(one, 'make', 'before');
      const end = await host.use(one);
      expect(await fails(files.grow(one, 2 * mebibyte))).toBe('InUse');
      expect(await fails(files.snapshot(one, 'make', 'now'))).toBe('InUse');
      expect(await fails(files.snapshot(one, 'remove', 'before'))).toBe('InUse');
      expect(await fails(files.remove(one))).toBe('InUse');
      expect(await found()).toMatchObject({ sizeBytes: mebibyte, snapshots: [{ name: 'before' }] });
      await end();
      await files.grow(one, 2 * mebibyte);
      expect((await found()).sizeBytes).toBe(2 * mebibyte);
    });

    it('gives up when its signal aborts, and makes it at the next try', async () => {
      expect(await fails(files.make({ volumeId: one, sizeBytes: mebibyte }, AbortSignal.abort()))).toBe('Aborted');
      expect((await files.look(one)).found).not.toBe('volume');
      await make();
      expect((await found()).sizeBytes).toBe(mebibyte);
    });
  });
}
