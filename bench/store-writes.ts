// How fast a store commits durably, beside what its backend does for the same bytes when nothing of Berth is between. The two take turns,
// so that what else happens on the machine strikes both; the value is the median of the turns' ratios.

import { openStore } from '../src/store/open.ts';
import type { Store } from '../src/store/store.ts';
import { type Emit, median } from './row.ts';
import type { Backend } from './store-backends.ts';
import type { RawStore, Row } from './store-raw.ts';

const suite = 'store';
const turns = 13;
const turnMs = 350;
/** What a store leaves for a quiet moment must not fall into the other's turn: SQLite's begins after 200 ms. */
const restMs = 350;
const keysPerCommit = 100;
/** Of each caller. */
const keyCount = 10_000;
const valueBytes = 500; // about a small resource as JSON

export async function measureWrites(backend: Backend, emit: Emit): Promise<void> {
  const store = await openStore(backend.storeUrl('writes'));
  const raw = await backend.raw(batchCallers);
  try {
    // One caller, one value a commit, on the condition that the key was not written meanwhile.
    const single = await inTurns(1, { ours: singleOf(store), raw: singleRaw(raw) });
    tell(backend, 'single_write', { ...single, keys: 1 });
    emit(rowOf(`single_write_ratio${backend.suffix}`, single, 0.6));
    // Eight callers on both sides, each with its next commit when the one before is durable.
    const batch = await inTurns(batchCallers, { ours: batchOf(store), raw: batchRaw(raw) });
    tell(backend, 'batch_write', { ...batch, keys: keysPerCommit });
    emit(rowOf(`batch_write_ratio${backend.suffix}`, batch, 0.5));
  } finally {
    await raw.close();
    await store.close();
  }
}

const batchCallers = 8;

/** One commit of one of the callers. */
type Write = (caller: number) => Promise<void>;

function singleOf(store: Store): Write {
  const revisions = new Map<string, number>();
  const next = rowsInTurn(1);
  return async (caller) => {
    const [row] = next(caller);
    if (!row) return;
    const done = await store.commit([{ key: row.key, ifRevision: revisions.get(row.key) ?? 0 }], [row]);
    if (!done.ok) throw new Error(`the condition on ${done.key} did not hold, though nobody else writes`);
    revisions.set(row.key, done.revision);
  };
}

function singleRaw(raw: RawStore): Write {
  const next = rowsInTurn(1);
  return async (caller) => {
    const [row] = next(caller);
    if (row) await raw.putOne(row);
  };
}

function batchOf(store: Store): Write {
  const next = rowsInTurn(keysPerCommit);
  return async (caller) => void (await store.commit([], next(caller)));
}

function batchRaw(raw: RawStore): Write {
  const next = rowsInTurn(keysPerCommit);
  return (caller) => raw.putAll(next(caller), caller);
}

/**
 * The keys of a caller come round again and again: some are new, most are written again. Each commit has a value of its own: SQLite
 * writes nothing, and waits for no disk, where a row would stay as it is.
 */
function rowsInTurn(count: number): (caller: number) => Row[] {
  const at = new Map<number, number>();
  return (caller) => {
    const from = at.get(caller) ?? 0;
    at.set(caller, from + count);
    const value = new Uint8Array(valueBytes).fill(0x61);
    new DataView(value.buffer).setUint32(0, from);
    return Array.from({ length: count }, (_, i) => ({ key: `bench/${caller}/${(from + i) % keyCount}`, value }));
  };
}

interface Rates {
  readonly ours: number;
  readonly raw: number;
  readonly ratio: number;
}

async function inTurns(callers: number, { ours, raw }: { readonly ours: Write; readonly raw: Write }): Promise<Rates> {
  const rates: Rates[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const a = await perSecond(callers, ours);
    await rest();
    const b = await perSecond(callers, raw);
    await rest();
    if (turn > 0) rates.push({ ours: a, raw: b, ratio: a / b }); // the first warms up
  }
  const middle = (of: (rates: Rates) => number): number => median(rates.map(of));
  return { ours: middle((each) => each.ours), raw: middle((each) => each.raw), ratio: middle((each) => each.ratio) };
}

async function perSecond(callers: number, write: Write): Promise<number> {
  const startedAt = performance.now();
  let count = 0;
  const one = async (_: unknown, caller: number): Promise<void> => {
    while (performance.now() - startedAt < turnMs) {
      await write(caller);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, one));
  return (count * 1000) / (performance.now() - startedAt);
}

function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, restMs));
}

function tell({ suffix }: Backend, name: string, { ours, raw, keys }: Rates & { readonly keys: number }): void {
  const rate = (perSecondValue: number): string => `${Math.round(perSecondValue * keys)} keys/s`;
  process.stderr.write(`  ${name}${suffix}: ${rate(ours)}, the backend alone ${rate(raw)}\n`);
}

function rowOf(name: string, { ratio, raw }: Rates, goal: number) {
  const value = Number(ratio.toFixed(3));
  return { suite, name, value, unit: 'ratio', better: 'higher', goal, limit: Math.round(raw), ratio: value } as const;
}
