import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isoImage } from './iso9660.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const files = [
  { name: 'meta-data', data: bytes('instance-id: a\n') },
  { name: 'user-data', data: bytes('x'.repeat(5000)) },
  { name: 'network-config', data: bytes('') },
];
const hasProgram = (name: string): boolean => spawnSync(name, ['--version']).error === undefined;

describe('an ISO image', () => {
  it('is the same for the same files', () => {
    expect(isoImage('cidata', files)).toEqual(isoImage('cidata', files));
  });

  it('bears its label where blkid looks for it, in both descriptors', () => {
    const image = isoImage('cidata', files);
    expect(
      Buffer.from(image.subarray(16 * 2048 + 40, 16 * 2048 + 72))
        .toString('latin1')
        .trimEnd(),
    ).toBe('cidata');
    expect(
      Buffer.from(image.subarray(17 * 2048 + 40, 17 * 2048 + 72))
        .swap16()
        .toString('utf16le')
        .trimEnd(),
    ).toBe('cidata');
    expect(image.length % 2048).toBe(0);
  });

  it('refuses names that are paths, and labels that are too long', () => {
    expect(() => isoImage('cidata', [{ name: '../evil', data: bytes('') }])).toThrow(RangeError);
    expect(() => isoImage('a label of many words', files)).toThrow(RangeError);
    expect(() => isoImage('cidata', [...files, { name: 'USER_DATA', data: bytes('') }])).toThrow(RangeError);
  });

  it.skipIf(!hasProgram('blkid'))('is recognised by blkid', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-iso-'));
    const path = join(directory, 'seed.iso');
    await writeFile(path, isoImage('cidata', files));
    expect(spawnSync('blkid', ['-p', '-o', 'export', path]).stdout.toString()).toMatch(/LABEL=cidata[^]*TYPE=iso9660/);
    await rm(directory, { recursive: true });
  });

  // Only where another reader of ISO images happens to be installed; everywhere, the tiny image reads its seed.
  it.skipIf(!hasProgram('xorriso'))('gives its files back to another reader', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-iso-'));
    const path = join(directory, 'seed.iso');
    await writeFile(path, isoImage('cidata', files));
    const out = join(directory, 'out');
    const run = spawnSync('xorriso', ['-osirrox', 'on', '-indev', path, '-extract', '/', out]);
    expect(run.status, run.stderr.toString()).toBe(0);
    for (const file of files) expect(new Uint8Array(await readFile(join(out, file.name)))).toEqual(file.data);
    await rm(directory, { recursive: true });
  });
});
