// What a cache removes when it is over its budget, with real files and real disks upon them.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ImageSpec } from '../../api/resources/image.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import { ensure, type ImageTrial, sha256, startImageTrial, testImage } from './test-images.ts';

let trial: ImageTrial;
beforeEach(async () => {
  trial = await startImageTrial();
});
afterEach(() => trial.end());

const imageBytes = 393_216;
const budgetOf = (images: number): Partial<ImageCacheOptions> => ({
  bytesMax: images * imageBytes,
  guestRoots: async () => [join(trial.directory, 'guests')],
});

/** Fetched one after the other: the first is the one unused the longest. */
async function fetchAll(names: readonly string[], more: Partial<ImageCacheOptions>) {
  const clock = createManualClock();
  const cache = trial.cache({ clock, ...more });
  const specs = new Map<string, ImageSpec>();
  const paths = new Map<string, string>();
  for (const name of names) {
    // From files: what waits for the network would wait for this clock.
    await writeFile(join(trial.directory, `${name}.qcow2`), testImage());
    const spec = trial.spec(pathToFileURL(join(trial.directory, `${name}.qcow2`)).href);
    specs.set(name, spec);
    paths.set(name, (await ensure(cache, spec, { name })).path);
    clock.advance(60_000);
  }
  clock.advance(3_600_000);
  const here = (): string[] => names.filter((name) => existsSync(paths.get(name) ?? ''));
  return { cache, clock, specs, paths, here };
}

async function makeGuest(name: string, backing: string): Promise<string> {
  const directory = join(trial.directory, 'guests', name);
  await mkdir(directory, { recursive: true });
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', backing, 'disk.qcow2'], {
    cwd: directory,
  });
  return directory;
}

describe('a cache over its budget', () => {
  it('removes the image unused the longest, and its record', async () => {
    const { cache, here, clock, specs } = await fetchAll(['a', 'b', 'c'], budgetOf(2));
    const a = specs.get('a');
    if (a) await ensure(cache, a, { name: 'a' }); // used again: b is the oldest now
    clock.advance(3_600_000);
    await cache.clean({ kept: [] });
    expect(here()).toEqual(['a', 'c']);
    expect((await cache.list()).map(({ name }) => name).sort()).toEqual(['a', 'c']);
    expect((await trial.cache().list()).map(({ name }) => name).sort()).toEqual(['a', 'c']);
  });

  it('never removes what a guest lies upon, also after a restart', async () => {
    const { paths, here, clock } = await fetchAll(['a', 'b'], budgetOf(1));
    await makeGuest('web-1', paths.get('a') ?? '');
    const later = trial.cache({ clock, ...budgetOf(0) });
    await later.clean({ kept: [] });
    expect(here()).toEqual(['a']);
    expect(await later.list()).toMatchObject([{ name: 'a', guests: 1 }]);
  });

  it('removes it once its last guest is gone', async () => {
    const { cache, paths, here } = await fetchAll(['a'], budgetOf(0));
    const guest = await makeGuest('web-1', paths.get('a') ?? '');
    await cache.clean({ kept: [] });
    expect(here()).toEqual(['a']);
    execFileSync('rm', ['-r', guest]);
    await cache.clean({ kept: [] });
    expect(here()).toEqual([]);
    expect(await trial.left()).toEqual([]);
  });

  it('keeps what a guest is about to lie upon', async () => {
    const { cache, specs, here, clock } = await fetchAll(['a', 'b'], budgetOf(0));
    const a = specs.get('a');
    if (a) await ensure(cache, a, { name: 'a' });
    const b = await readFile(join(trial.directory, 'b.qcow2'));
    const preparing = join(trial.directory, 'guests', 'web-2');
    await mkdir(preparing, { recursive: true });
    await writeFile(join(preparing, 'guest.json'), JSON.stringify({ imageDigest: sha256(b) }));
    await cache.clean({ kept: [] });
    expect(here()).toEqual(['a', 'b']); // a was handed out a moment ago, b stands in a record
    clock.advance(3_600_000);
    await cache.clean({ kept: [] });
    expect(here()).toEqual(['b']);
  });

  it('keeps what is pinned or wanted before it is asked for', async () => {
    const { cache, specs, here } = await fetchAll(['a', 'b'], budgetOf(0));
    await cache.clean({ kept: [...specs.values()].slice(0, 1) });
    expect(here()).toEqual(['a']);
  });

  it('removes nothing while it cannot tell who uses what', async () => {
    const { cache, here } = await fetchAll(['a'], budgetOf(0));
    const odd = join(trial.directory, 'guests', 'odd');
    await mkdir(odd, { recursive: true });
    const disk = Buffer.alloc(1024);
    disk.write('QFI\xfb', 0, 'latin1');
    disk.writeBigUInt64BE(512n, 8);
    disk.writeUInt32BE(6, 16);
    disk.write('nbd://', 512);
    await writeFile(join(odd, 'disk.qcow2'), disk);
    await cache.clean({ kept: [] });
    expect(here()).toEqual(['a']);
  });

  it('removes nothing before the control plane has said what must stay', async () => {
    const { here } = await fetchAll(['a', 'b'], budgetOf(0));
    expect(here()).toEqual(['a', 'b']);
  });

  it('fetches again what it has removed', async () => {
    const { cache, specs, here, clock } = await fetchAll(['a'], budgetOf(0));
    await cache.clean({ kept: [] });
    expect(here()).toEqual([]);
    const a = specs.get('a');
    if (a) await ensure(cache, a, { name: 'a' });
    clock.advance(1);
    expect(here()).toEqual(['a']);
  });
});

describe('one content under two names', () => {
  it('is stored once, and published once by two fetches at once', async () => {
    const bytes = testImage();
    trial.server.files.set('/a', { bytes });
    trial.server.files.set('/b', { bytes });
    const cache = trial.cache();
    const [a, b] = await Promise.all([
      ensure(cache, trial.spec('/a'), { name: 'a' }),
      ensure(cache, trial.spec('/b'), { name: 'b' }),
    ]);
    expect(a.path).toBe(b.path);
    expect(await trial.left()).toEqual(['DIGEST.img', 'KEY.json', 'KEY.json']);
    expect(await readFile(a.path)).toEqual(bytes);
  });

  it('is one file under a localPath, too', async () => {
    const bytes = testImage();
    trial.server.files.set('/a', { bytes });
    const cache = trial.cache();
    const { path } = await ensure(cache, trial.spec('/a'));
    const localPath = join(trial.directory, 'own', 'debian.img');
    await ensure(cache, trial.spec('/a', { localPath }), { name: 'own' });
    expect((await stat(localPath)).ino).toBe((await stat(path)).ino);
  });

  it('goes only when nobody wants it under either name', async () => {
    const bytes = testImage();
    await writeFile(join(trial.directory, 'a.qcow2'), bytes);
    await writeFile(join(trial.directory, 'b.qcow2'), bytes);
    const clock = createManualClock();
    const cache = trial.cache({ clock, ...budgetOf(0) });
    const [a, b] = ['a', 'b'].map((name) => trial.spec(pathToFileURL(join(trial.directory, `${name}.qcow2`)).href));
    if (!a || !b) throw new Error('two images');
    const { path } = await ensure(cache, a, { name: 'a' });
    await ensure(cache, b, { name: 'b' });
    clock.advance(3_600_000);
    await cache.clean({ kept: [b] });
    expect(existsSync(path)).toBe(true);
    await cache.clean({ kept: [] });
    expect(await trial.left()).toEqual([]);
  });
});

describe('an image of an earlier version, which named files by their key', () => {
  it('is used as it is', async () => {
    await writeFile(join(trial.directory, 'a.qcow2'), testImage());
    const source = pathToFileURL(join(trial.directory, 'a.qcow2')).href;
    const { path, digest } = await ensure(trial.cache(), trial.spec(source));
    const directory = join(trial.directory, 'cache');
    const key = (await readdir(directory)).find((name) => name.endsWith('.json'))?.slice(0, 32) ?? '';
    const {
      sourceChecksum: _checksum,
      sourceBytes: _bytes,
      ...record
    } = JSON.parse(await readFile(join(directory, `${key}.json`), 'utf8'));
    const formerPath = join(directory, `${key}.img`);
    await rename(path, formerPath);
    await writeFile(join(directory, `${key}.json`), JSON.stringify({ ...record, path: formerPath }));
    await rm(join(trial.directory, 'a.qcow2'));
    expect(await ensure(trial.cache(), trial.spec(source))).toMatchObject({ path: formerPath, digest });
  });
});

describe('an image that has lost its record', () => {
  const orphaned = async (): Promise<string> => {
    await writeFile(join(trial.directory, 'a.qcow2'), testImage());
    const { path } = await ensure(trial.cache(), trial.spec(pathToFileURL(join(trial.directory, 'a.qcow2')).href));
    for (const entry of await readdir(join(trial.directory, 'cache'))) {
      if (!entry.endsWith('.json')) continue;
      await writeFile(join(trial.directory, 'cache', entry), '{');
      await utimes(join(trial.directory, 'cache', entry), 1, 1);
    }
    return path;
  };

  it('stays while a guest lies upon it', async () => {
    const path = await orphaned();
    await makeGuest('web-1', path);
    await trial.cache(budgetOf(1)).list();
    expect(existsSync(path)).toBe(true);
  });

  it('goes when none does', async () => {
    const path = await orphaned();
    await trial.cache(budgetOf(1)).list();
    expect(existsSync(path)).toBe(false);
  });
});
