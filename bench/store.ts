// How fast the SQLite store commits durably, beside what better-sqlite3 and this disk can do at all in the same run.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { systemClock } from '../src/base/system.ts';
import { openSqliteStore } from '../src/store/sqlite/sqlite-store.ts';
import type { BenchRow } from './row.ts';

const measureMs = 2000;
const callers = 64;
const keysPerCommit = 100;
const value = new Uint8Array(500).fill(0x61); // about a small resource as JSON

export async function run(emit: (row: BenchRow) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-store-'));
  try {
    const rawSingle = rawPerSecond(join(folder, 'raw-single.db'), 1);
    const rawBatch = rawPerSecond(join(folder, 'raw-batch.db'), keysPerCommit) * keysPerCommit;
    const store = await openSqliteStore({ path: join(folder, 'store.db') });
    const write = async (count: number, turn: number, caller = 0): Promise<void> => {
      const writes = Array.from({ length: count }, (_, i) => ({
        key: `bench/${caller}/${(turn * count + i) % 10_000}`,
        value,
      }));
      await store.commit([], writes);
    };

    const single = await perSecond(1, (turn) => write(1, turn));
    emit(row('single_write', single, 'commits/s', 3000, rawSingle));
    const concurrent = await perSecond(callers, (turn, caller) => write(1, turn, caller));
    emit(row('concurrent_write', concurrent, 'commits/s', 5000, rawSingle));
    const keys = keysPerCommit * (await perSecond(1, (turn) => write(keysPerCommit, turn)));
    emit(row('batch_write', keys, 'keys/s', 50_000, rawBatch));
    const reads = await perSecond(1, async (turn) => void (await store.get(`bench/0/${turn % 10_000}`)));
    emit({ suite: 'store', name: 'get', value: Math.round(reads), unit: 'gets/s', better: 'higher', goal: 100_000 });
    await store.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function row(name: string, value: number, unit: string, goal: number, limit: number): BenchRow {
  const ratio = Number((value / limit).toFixed(2));
  return {
    suite: 'store',
    name,
    value: Math.round(value),
    unit,
    better: 'higher',
    goal,
    limit: Math.round(limit),
    ratio,
  };
}

/** One row per key, no log, no conditions, no checksums: the floor under any store on this library and disk. */
function rawPerSecond(path: string, rowsPerCommit: number): number {
  const db = new Database(path);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec('CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID');
  const put = db.prepare<[string, Uint8Array]>('INSERT OR REPLACE INTO entries VALUES (?, ?)');
  const commit = db.transaction((turn: number) => {
    for (let i = 0; i < rowsPerCommit; i++) put.run(`bench/0/${(turn * rowsPerCommit + i) % 10_000}`, value);
  });
  const start = systemClock.monotonicMs();
  let turns = 0;
  while (systemClock.monotonicMs() - start < measureMs) commit(turns++);
  db.close();
  return (turns * 1000) / measureMs;
}

async function perSecond(count: number, work: (turn: number, caller: number) => Promise<void>): Promise<number> {
  const start = systemClock.monotonicMs();
  let turns = 0;
  const caller = async (_: unknown, number: number): Promise<void> => {
    while (systemClock.monotonicMs() - start < measureMs) await work(turns++, number);
  };
  await Promise.all(Array.from({ length: count }, caller));
  return (turns * 1000) / (systemClock.monotonicMs() - start);
}
