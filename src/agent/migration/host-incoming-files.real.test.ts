import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createHostIncomingFiles } from './host-incoming-files.ts';
import type { IncomingFiles } from './moved-files.ts';

const incoming = { instanceId: `inst_${'0'.repeat(26)}`, incarnation: 2 };
const look = { id: 'mig_1', whole: false, files: [{ name: 'disk', sizeBytes: 9, doneBytes: 0 }] };

let directory: string;
let files: IncomingFiles;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-incoming-'));
  files = createHostIncomingFiles({ directory: join(directory, 'incoming'), directoryMode: 0o700 });
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('keeps files for their owner only, whole or by another name', async () => {
  await files.begin(incoming, look);
  await files.append(incoming, { name: 'disk', length: 4, bytes: Buffer.from('abcd') });
  const { path } = files.fileOf(incoming, 'disk');
  await expect(stat(path)).rejects.toThrow('ENOENT');
  await files.append(incoming, { name: 'disk', length: 5 });
  await files.finish(incoming);
  expect(await readFile(path, 'latin1')).toBe('abcd\0\0\0\0\0');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await files.list()).toMatchObject([{ ...incoming, id: 'mig_1', whole: true }]);
  await files.finish(incoming); // by the next agent
  await files.discard(incoming);
  expect(await readdir(join(directory, 'incoming'))).toEqual([]);
});

it('writes again what a killed agent wrote and did not note', async () => {
  await files.begin(incoming, look);
  await files.append(incoming, { name: 'disk', length: 4, bytes: Buffer.from('abcd') });
  const { path } = files.fileOf(incoming, 'disk');
  await writeFile(`${path}.part`, 'abcdXXXXXXXX');
  expect((await files.look(incoming))?.files).toEqual([{ name: 'disk', sizeBytes: 9, doneBytes: 4 }]);
  await files.append(incoming, { name: 'disk', length: 5, bytes: Buffer.from('efghi') });
  await files.finish(incoming);
  expect(await readFile(path, 'latin1')).toBe('abcdefghi');
});

it('begins again for another move, and takes nothing but ids as names', async () => {
  await files.begin(incoming, look);
  await files.append(incoming, { name: 'disk', length: 4, bytes: Buffer.from('abcd') });
  await files.begin(incoming, { ...look, id: 'mig_2' });
  expect(await files.look(incoming)).toEqual({ ...look, id: 'mig_2' });
  expect(() => files.fileOf(incoming, '../../etc/passwd')).toThrow(/no file of a move/);
  await expect(files.look({ ...incoming, instanceId: '../x' })).rejects.toThrow(/no instance/);
});
