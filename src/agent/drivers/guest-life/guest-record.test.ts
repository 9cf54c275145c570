import { link, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { testSpec } from '../qemu/test-host.ts';
import { readGuestRecord, readPreviousRecord, restorePreviousRecord, writeGuestRecord } from './guest-record.ts';
import { newRecord } from './records.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-record-'));
});
afterEach(() => rm(directory, { recursive: true }));

const record = newRecord(testSpec(), 'a uuid');
const write = (memoryMiB: number) => writeGuestRecord(directory, { ...record, memoryMiB });

it('keeps the record before the last change, and puts it in the place of a damaged one', async () => {
  await write(1);
  expect(await readPreviousRecord(directory)).toEqual({ found: 'nothing' });
  await write(2);
  await write(3);
  await writeFile(join(directory, 'guest.json'), '{');
  expect(await readGuestRecord(directory)).toEqual({ found: 'damage' });
  expect(await readPreviousRecord(directory)).toMatchObject({ found: 'record', record: { memoryMiB: 2 } });
  await restorePreviousRecord(directory);
  expect(await readGuestRecord(directory)).toMatchObject({ found: 'record', record: { memoryMiB: 2 } });
  expect(await readdir(directory)).toEqual(['guest.json']);
});

it('keeps it also when a change was interrupted before', async () => {
  await write(1);
  await link(join(directory, 'guest.json'), join(directory, 'guest.json.old'));
  await write(2);
  expect(await readPreviousRecord(directory)).toMatchObject({ found: 'record', record: { memoryMiB: 1 } });
  expect((await readdir(directory)).sort()).toEqual(['guest.json', 'guest.json.old']);
});
