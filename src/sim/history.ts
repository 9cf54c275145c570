// History: the committed state as the store has it, kept from every commit, and what came before each change. Checkers and the hash
// of a run read it; nothing under test ever does.

import { createHash } from 'node:crypto';
import { decodeRecord } from '../core/state/codec.ts';
import { auditNotesPrefix, kindOfKey } from '../core/state/keys.ts';
import type { Allocation, AnyRecord, RecordByKind, RecordKind } from '../core/state/records.ts';
import type { CommitResult, Write } from '../store/store.ts';

export interface RecordEvent {
  readonly key: string;
  readonly before: AnyRecord | null;
  readonly after: AnyRecord | null;
}

export interface Commit {
  readonly revision: number;
  readonly events: readonly RecordEvent[];
}

export interface StoredRecord {
  readonly key: string;
  readonly value: AnyRecord;
  readonly revision: number;
}

/** One of the writes of a key. */
export interface Written {
  readonly revision: number;
  readonly deleted: boolean;
}

/** The committed state, by key. */
export interface CommittedState {
  get<K extends RecordKind>(kind: K, key: string): RecordByKind[K] | undefined;
  list<K extends RecordKind>(kind: K): Iterable<RecordByKind[K]>;
  entries(): Iterable<StoredRecord>;
  /** The newest commit that was more than leases. */
  readonly newsRevision: () => number;
  /** Every write of a key, the oldest first. */
  written(key: string): readonly Written[];
  allWritten(): Iterable<readonly [key: string, writes: readonly Written[]]>;
  /** Keys of the allocations that instances hold on a host. */
  allocatedOn(host: string): string[];
}

export interface History {
  readonly state: CommittedState;
  readonly commits: readonly Commit[];
  /** Takes in a commit that the store has made; undefined when it changed nothing. */
  record(result: CommitResult, writes: readonly Write[]): Commit | undefined;
  /** Of every key, value and revision so far. */
  hash(): string;
}

export function createHistory(): History {
  const byKind = new Map<RecordKind, Map<string, StoredRecord>>();
  const commits: Commit[] = [];
  const writesByKey = new Map<string, Written[]>();
  const hash = createHash('sha256');
  let newsRevision = 0;

  const ofKind = (kind: RecordKind): Map<string, StoredRecord> => {
    let records = byKind.get(kind);
    if (records === undefined) byKind.set(kind, (records = new Map()));
    return records;
  };

  const put = (key: string, value: Uint8Array | null, revision: number): RecordEvent | undefined => {
    if (key.startsWith(auditNotesPrefix)) return undefined; // no record: only its server reads it
    const kind = kindOfKey(key);
    if (kind === undefined) throw new Error(`${key} was written, which no record kind holds`);
    const records = ofKind(kind);
    const before = records.get(key)?.value ?? null;
    const after = value === null ? null : decodeRecord(key, value);
    if (before === null && after === null) return undefined;
    const writes = writesByKey.get(key);
    const written = { revision, deleted: after === null };
    if (writes) writes.push(written);
    else writesByKey.set(key, [written]);
    if (after === null) records.delete(key);
    else records.set(key, { key, value: after, revision });
    return { key, before, after };
  };

  return {
    state: {
      get: <K extends RecordKind>(kind: K, key: string) => ofKind(kind).get(key)?.value as RecordByKind[K] | undefined, // the key tells the kind
      *list<K extends RecordKind>(kind: K) {
        for (const { value } of ofKind(kind).values()) yield value as RecordByKind[K]; // as above
      },
      *entries() {
        for (const records of byKind.values()) yield* records.values();
      },
      newsRevision: () => newsRevision,
      written: (key) => writesByKey.get(key) ?? [],
      allWritten: () => writesByKey,
      allocatedOn(host) {
        const found: string[] = [];
        for (const { key, value } of ofKind('allocation').values())
          if (value.kind === 'allocation' && value.host === host && !roomOnly(value)) found.push(key);
        return found;
      },
    },
    commits,
    record(result, writes) {
      if (!result.ok || result.revision === (commits.at(-1)?.revision ?? 0)) return undefined;
      const { revision } = result;
      hash.update(`${revision}\n`);
      const events: RecordEvent[] = [];
      for (const { key, value } of writes) {
        hash.update(key).update(value ?? 'deleted');
        const event = put(key, value, revision);
        if (event) events.push(event);
      }
      const commit = { revision, events };
      commits.push(commit);
      if (events.some(({ key }) => !isLease(kindOfKey(key)))) newsRevision = revision;
      return commit;
    },
    hash: () => hash.copy().digest('hex').slice(0, 16),
  };
}

/** What is written even at rest. */
/** Agents do not hear of it. */
function roomOnly({ consumer }: Allocation): boolean {
  return consumer.kind === 'task' || consumer.kind === 'outside';
}

function isLease(kind: RecordKind | undefined): boolean {
  return kind === 'lease' || kind === 'leader' || kind === 'leaderLease';
}
