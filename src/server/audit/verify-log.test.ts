import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { auditFiles } from './audit-folder.ts';
import { linesIn, testFolder, testLog } from './testing.ts';
import { verifyLog } from './verify-log.ts';

const entry = { face: 'http', verb: 'create', kind: 'image' } as const;

async function filled(directory: string) {
  const log = testLog(directory, { fileBytesMax: 2_000 });
  for (let i = 0; i < 30; i++)
    await log.append({ ...entry, object: `image-${i}` }, { outcome: 'done' }, { durable: true });
  await log.settled();
  return log;
}

const edit = (path: string, change: (lines: string[]) => string[]): void =>
  writeFileSync(path, change(readFileSync(path, 'utf8').split('\n')).join('\n'));

it.each<readonly [string, (paths: string[]) => void, string]>([
  [
    'a line was edited',
    ([first = '']) => edit(first, (l) => l.map((x) => x.replace('image-1"', 'image-x"'))),
    'Edited',
  ],
  ['a line was taken out', ([first = '']) => edit(first, (l) => l.toSpliced(2, 1)), 'LineMissing'],
  [
    'two lines were swapped',
    ([first = '']) => edit(first, ([a = '', b = '', c = '', ...r]) => [a, c, b, ...r]),
    'LineMissing',
  ],
  ['the tail was cut off', (paths) => edit(paths.at(-1) ?? '', ([a = '']) => [a, '']), 'TailCut'],
  ['the last file was deleted', (paths) => rmSync(paths.at(-1) ?? ''), 'TailCut'],
  ['the first file was deleted', ([first = '']) => rmSync(first), 'FileMissing'],
  ['a file in between was deleted', ([, second = '']) => rmSync(second), 'LineMissing'],
])('finds that %s', async (_, attack, code) => {
  const directory = testFolder();
  const log = await filled(directory);
  const { head } = log;
  await log.close();
  expect((await verifyLog(directory, [head])).faults).toEqual([]);
  const paths = auditFiles(directory).map(({ path }) => path);
  expect(paths.length).toBeGreaterThan(3);
  attack(paths);
  expect((await verifyLog(directory, [head])).faults).toContainEqual(expect.objectContaining({ code }));
});

it('tolerates one torn last line, and goes on after it', async () => {
  const directory = testFolder();
  const log = await filled(directory);
  const { head } = log;
  await log.close();
  appendFileSync(auditFiles(directory).at(-1)?.path ?? '', '{"seq":99,"pr');
  expect((await verifyLog(directory, [head])).faults).toEqual([]);
  const next = testLog(directory, { head });
  await next.append(entry, { outcome: 'done' }, { durable: true });
  expect(linesIn(directory).at(-2)).toMatchObject({ verb: 'repair' });
  expect((await verifyLog(directory, [next.head])).faults).toEqual([]);
  await next.close();
});

it('keeps a cut tail visible after the next start', async () => {
  const directory = testFolder();
  const log = await filled(directory);
  const { head } = log;
  await log.close();
  truncateSync(auditFiles(directory).at(-1)?.path ?? '', 0);
  const next = testLog(directory, { head });
  await next.append(entry, { outcome: 'done' }, { durable: true });
  expect((await verifyLog(directory, [next.head])).faults).toContainEqual(expect.objectContaining({ code: 'TailCut' }));
  await next.close();
});

it('begins another file when its own is deleted, and says so', async () => {
  const directory = testFolder();
  const log = await filled(directory);
  rmSync(auditFiles(directory).at(-1)?.path ?? '');
  await log.append(entry, { outcome: 'done' }, { durable: true });
  expect((await verifyLog(directory, [log.head])).faults.map(({ code }) => code)).toContain('Replaced');
  await log.close();
});
