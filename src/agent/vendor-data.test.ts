import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { vendorDataIn } from './vendor-data.ts';

let directory = '';
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-vendor-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('is read as it is, anew each time', async () => {
  const path = join(directory, 'vendor.yaml');
  const read = vendorDataIn(path);
  await writeFile(path, '#cloud-config\nlocale: ü\n');
  expect(await read()).toBe('#cloud-config\nlocale: ü\n');
  await writeFile(path, '#!/bin/sh\n');
  expect(await read()).toBe('#!/bin/sh\n');
});

it('is refused when it is not there, is no file, or is longer than it may be', async () => {
  const path = join(directory, 'vendor.yaml');
  await expect(vendorDataIn(path)()).rejects.toThrow(/cannot read the vendor-data \(vendorDataFile\) at .*ENOENT/);
  await expect(vendorDataIn(directory)()).rejects.toThrow(/not a regular file|EISDIR/);
  await writeFile(path, 'x'.repeat(65_536));
  expect(await vendorDataIn(path)()).toHaveLength(65_536);
  await writeFile(path, 'x'.repeat(65_537));
  await expect(vendorDataIn(path)()).rejects.toThrow(/longer than the 65536 bytes/);
});
