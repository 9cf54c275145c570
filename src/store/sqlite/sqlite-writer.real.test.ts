import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SqliteWriter } from './sqlite-writer.ts';

describe('the writer of the embedded store', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'berth-writer-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const open = (name: string) => new SqliteWriter({ path: join(folder, name), fullCheckBytesMax: 0, tell: () => {} });
  /** The file as a crash leaves it, opened again under another name. */
  const afterCrash = (from: string, to: string) => {
    for (const end of ['', '-wal'])
      if (existsSync(join(folder, from + end))) copyFileSync(join(folder, from + end), join(folder, to + end));
    return open(to);
  };
  const keysOf = (writer: SqliteWriter) => writer.list('k/', { start: 'k/', end: 'k0', limit: -1 }).length;

  it('keeps whole revisions through two crashes, however far the entries have followed between them', () => {
    const [revisions, writes] = [8, 3_000];
    const first = open('first.db');
    for (let revision = 0; revision < revisions; revision++)
      first.commit([
        {
          conditions: [],
          writes: Array.from({ length: writes }, (_, i) => ({ key: `k/${revision}/${i}`, value: Buffer.from('x') })),
        },
      ]);
    const second = afterCrash('first.db', 'second.db');
    expect(keysOf(second)).toBe(revisions * writes);
    while (second.follow(2)); // a round, which ends somewhere among the revisions
    const third = afterCrash('second.db', 'third.db');
    expect(keysOf(third)).toBe(revisions * writes);
    for (const writer of [first, second, third]) writer.close();
  });
});
