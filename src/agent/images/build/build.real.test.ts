import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltImage, buildImage, imageBuildPackages } from './build.ts';
import { requirePackages } from './build-step.ts';
import { cpioArchive } from './cpio.ts';
import { mbrSector } from './mbr.ts';
import { bootImage } from '../test-boot.ts';

describe('the tiny image', () => {
  let directory = '';
  let image: BuiltImage;
  const steps: string[] = [];
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-build-'));
    image = await buildImage('tiny', { directory, onProgress: (step) => steps.push(step) });
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('is built, whole, and nothing else is left of the build', async () => {
    expect(steps).toContain('making the disk');
    expect(image).toMatchObject({ built: true, spec: { format: 'qcow2', checksum: image.digest } });
    expect((await readdir(directory)).sort()).toEqual([image.path.slice(directory.length + 1), 'tiny.json']);
  });

  it('gives its guests a disk whose size is known, so that it counts against their host', () => {
    expect(image.spec.defaults.diskGiB).toBe(1);
  });

  it('is not built twice, and comes out the same when it is', async () => {
    expect(await buildImage('tiny', { directory })).toEqual({ ...image, built: false });
    expect(await buildImage('tiny', { directory, fresh: true })).toEqual(image);
  });

  it('leaves nothing behind when its build is given up', async () => {
    const other = await mkdtemp(join(tmpdir(), 'berth-build-'));
    const signal = AbortSignal.abort();
    await expect(buildImage('tiny', { directory: other, signal })).rejects.toThrow(
      /cannot build image "tiny": .*given up/,
    );
    expect(await readdir(other)).toEqual([]);
    await rm(other, { recursive: true });
  });

  it('boots, greets, tells its address, runs its script, serves its page, and obeys the power button', async () => {
    const userData =
      '#!/bin/sh\necho "the script runs on $(hostname)"\necho "got $(wget -T 20 -qO- http://localhost/)"\nexit 3\n';
    const guest = await bootImage(image.path, { memoryMiB: 128, seed: { hostname: 'tiny-one', userData } });
    try {
      await guest.line(/^berth: ready/);
      expect(guest.console()).toContain('Welcome to tiny-one.');
      expect(guest.console()).toMatch(/^berth: address eth0 10\.0\.2\.15\r?$/m);
      expect(guest.console()).toContain('the script runs on tiny-one');
      expect(guest.console()).toContain('got Hello from tiny-one.');
      expect(guest.console()).toContain('berth: user-data exited 3');
      expect(await (await fetch(`http://127.0.0.1:${guest.httpPort}/`)).text()).toBe('Hello from tiny-one.\n');
      guest.pressPowerButton();
      await guest.ended;
    } finally {
      await guest.stop();
    }
  });

  it('says that it runs scripts only, but not when nobody asked for more', async () => {
    const userData = '#cloud-config\nhostname: tiny-two\nruncmd:\n  - echo never\n';
    const guest = await bootImage(image.path, { memoryMiB: 128, seed: { hostname: 'tiny-two', userData } });
    try {
      await guest.line(/^berth: ready/);
      expect(guest.console()).toContain('the tiny image runs scripts that begin with #!');
    } finally {
      await guest.stop();
    }
  });

  it('boots without a seed', async () => {
    const guest = await bootImage(image.path, { memoryMiB: 128 });
    try {
      await guest.line(/^berth: ready/);
      expect(guest.console()).toContain('Welcome to tiny.');
    } finally {
      await guest.stop();
    }
  });
});

describe('a build', () => {
  it('that lacks programs names them and the line that installs them', async () => {
    const missing = [
      { name: 'mmdebstrap', program: 'no-such-program', reason: 'installs packages' },
      { name: 'syslinux-common', program: '/usr/lib/no-such-file', reason: 'boots' },
    ];
    await expect(requirePackages('debian-12', missing)).rejects.toThrow(
      'cannot build image "debian-12": missing no-such-program (installs packages), /usr/lib/no-such-file (boots); install with: apt-get install --no-install-recommends mmdebstrap syslinux-common',
    );
  });

  it('says of every package what it is for', () => {
    for (const one of [...imageBuildPackages.tiny, ...imageBuildPackages.debian])
      expect(one.reason.length).toBeGreaterThan(10);
  });
});

describe('the bytes of a disk', () => {
  it('begin with a partition table', () => {
    const partitions = [{ bootable: true, type: 0x83, firstSector: 2048, sectors: 4096 }];
    const sector = mbrSector({ bootCode: new Uint8Array(440).fill(0x90), diskId: 0xbe274012, partitions });
    expect(sector.length).toBe(512);
    expect(sector.subarray(438, 448).toString('hex')).toBe('9090124027be000080fe');
    expect(sector.readUInt32LE(454)).toBe(2048);
    expect(sector.readUInt16LE(510)).toBe(0xaa55);
  });

  it('hold a first file system of aligned records', () => {
    const archive = cpioArchive([
      { kind: 'directory', path: 'bin' },
      { kind: 'file', path: 'bin/one', mode: 0o755, data: Buffer.from('one!!') },
    ]).toString('latin1');
    // 110 bytes of header, the name and its zero, both padded to four; then the data, padded too.
    expect(archive.indexOf('070701', 1)).toBe(116);
    expect(archive.slice(116, 240)).toBe(
      `07070100000002000081ed${'0'.repeat(16)}00000001${'0'.repeat(8)}00000005${'0'.repeat(32)}00000008${'0'.repeat(8)}bin/one\0\0\0one!`,
    );
    expect(archive).toContain('TRAILER!!!');
  });
});
