import { utimesSync } from 'node:fs';
import { expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { auditFiles } from './audit-folder.ts';
import { linesIn, testFolder, testLog } from './testing.ts';
import { verifyLog } from './verify-log.ts';

const entry = { face: 'http', verb: 'create', kind: 'image' } as const;
const dayMs = 86_400_000;

it('begins a file when one is full, each with the count of the one before', async () => {
  const directory = testFolder();
  const log = testLog(directory, { fileBytesMax: 1_000 });
  for (let i = 0; i < 12; i++) {
    await log.append({ ...entry, object: `image-${i}` }, { outcome: 'done' }, { durable: true });
    await log.settled();
  }
  const files = auditFiles(directory);
  expect(files.length).toBeGreaterThan(2);
  const begins = linesIn(directory).filter(({ verb, object }) => verb === 'begin' && object !== undefined);
  expect(begins.map(({ object, count }) => [object, count])).toEqual(
    files.slice(0, -1).map(({ name, firstSeq }, i) => [name, (files[i + 1]?.firstSeq ?? 0) - firstSeq]),
  );
  expect((await verifyLog(directory, [log.head])).faults).toEqual([]);
  await log.close();
});

it('deletes whole files that are too old, says so, and the rest is sound', async () => {
  const directory = testFolder();
  const clock = createManualClock();
  const log = testLog(directory, { fileBytesMax: 1_000, keptMs: 7 * dayMs, clock });
  const append = async (object: string): Promise<void> => {
    await log.append({ ...entry, object }, { outcome: 'done' }, { durable: true });
    await log.settled();
  };
  for (let i = 0; i < 12; i++) await append(`old-${i}`);
  const old = auditFiles(directory).slice(0, -1);
  expect(old.length).toBeGreaterThan(1);
  for (const { path } of old) utimesSync(path, clock.nowMs() / 1000, clock.nowMs() / 1000);
  clock.advance(6 * dayMs);
  expect(auditFiles(directory)).toEqual(expect.arrayContaining(old));
  clock.advance(2 * dayMs);
  const left = auditFiles(directory).map(({ name }) => name);
  for (const { name } of old) expect(left).not.toContain(name);
  const told = linesIn(directory).filter(({ verb }) => verb === 'expire');
  expect(told).toEqual(
    old.map(({ name }) => expect.objectContaining({ object: name, kind: 'audit', outcome: 'done' })),
  );
  await append('new');
  expect(await verifyLog(directory, [log.head])).toMatchObject({ faults: [] });
  await log.close();
});
