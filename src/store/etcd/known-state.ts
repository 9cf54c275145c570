// What this process knows of the store: how far it has read the log, when keys were last written, and the changes in the log beyond the
// entries. It never reads etcd, and never guesses: its callers pass whole records in order.
//
// Reads and conditions rely on one rule. Let `base` be a revision up to which the entries had followed the log. Every change of a
// revision in (base, known] is in `#unapplied`, because every record since is applied here. So for entries E read at an etcd revision
// at which `applied` was at least `base`, and the head at most `known`:
//
//   E, and the unapplied changes on top of it, are the store at `known`.
//
// For a key among the unapplied changes, its last change is there. Any other key was last changed at or before `base`, and that change is
// in E. A round of a dead process that was applied in part is harmless: its changes are from the log, so their keys are among the
// unapplied ones, too.
//
// `#revisions` caches the revisions of keys that were looked up, 0 for absent ones; every record updates it. A key that is not in it is
// looked up in E.

import type { LoggedCommit } from '../shared-log.ts';
import type { Key, Revision } from '../store.ts';
import { leftInParts, type Place } from './layout.ts';
import { offsetsIn } from './record.ts';

/** A record with its events. */
export interface Batch {
  readonly id: string;
  readonly first: Revision;
  readonly last: Revision;
  /** etcd's revision of the transaction that put it together with the head. */
  readonly modRevision: string;
  readonly commits: readonly LoggedCommit[];
  readonly parted: boolean;
  /** Its size in etcd. */
  readonly bytes: number;
}

/** The last change of a key that the entries may lack. */
export interface Unapplied {
  readonly key: Key;
  readonly value: Uint8Array | null;
  readonly revision: Revision;
  /** Where the value is, when it is large and in parts. */
  readonly place?: Place;
}

/** Some 100 bytes each. The map is cleared when full. */
const revisionsMax = 600_000;

export class KnownState {
  /** Everything up to here is known. */
  revision: Revision = 0;
  /** etcd's revision of the head at `revision`. */
  modRevision = '0';
  base: Revision = 0;
  #revisions = new Map<Key, Revision>();
  /** Oldest revision first. */
  readonly #unapplied = new Map<Key, Unapplied>();
  /** The records after `base`, to know how much there is to apply. */
  #records: { readonly last: Revision; readonly bytes: number }[] = [];
  /** Size of those records. */
  unappliedBytes = 0;

  /** Starts again at the revision that the entries have followed to; the records after it come next. */
  reset(applied: Revision, modRevision: string): void {
    this.revision = applied;
    this.modRevision = modRevision;
    this.base = applied;
    this.#revisions = new Map();
    this.#unapplied.clear();
    this.#records = [];
    this.unappliedBytes = 0;
  }

  /** False when it is not the next one: known already, or there is a gap. */
  take(batch: Batch): boolean {
    if (batch.first !== this.revision + 1) return false;
    this.trim(2 * revisionsMax); // a process that only reads never trims
    const offsets = batch.parted ? offsetsIn(batch.commits, leftInParts) : undefined;
    for (const { revision, events } of batch.commits)
      for (const { key, value } of events) {
        this.#revisions.set(key, value === null ? 0 : revision);
        const place = offsets?.get(key);
        this.#unapplied.delete(key); // a key that changes again comes last: the map is ordered by revision
        this.#unapplied.set(key, { key, value, revision, ...(place && { place: { id: batch.id, ...place } }) });
      }
    this.revision = batch.last;
    this.modRevision = batch.modRevision;
    this.#records.push({ last: batch.last, bytes: batch.bytes });
    this.unappliedBytes += batch.bytes;
    return true;
  }

  /** The entries have followed the log to `applied`. */
  applied(applied: Revision): void {
    if (applied <= this.base || applied > this.revision) return;
    this.base = applied;
    for (const [key, { revision }] of this.#unapplied) {
      if (revision > applied) break;
      this.#unapplied.delete(key);
    }
    let count = 0;
    for (const { last, bytes } of this.#records) {
      if (last > applied) break;
      count++;
      this.unappliedBytes -= bytes;
    }
    this.#records.splice(0, count);
  }

  /** The key's last revision, 0 when it is absent; undefined: look it up. */
  revisionOf(key: Key): Revision | undefined {
    const unapplied = this.#unapplied.get(key);
    if (unapplied) return unapplied.value === null ? 0 : unapplied.revision;
    return this.#revisions.get(key);
  }

  unapplied(key: Key): Unapplied | undefined {
    return this.#unapplied.get(key);
  }

  /**
   * The oldest changes, at least `countMin` if there are that many, up to the end of a record. Without keys that
   * changed again after `through`: until that change is applied, every reader puts it on top of the entries.
   */
  oldest(countMin: number): { readonly changes: Unapplied[]; readonly through: Revision } {
    const changes: Unapplied[] = [];
    let through: Revision | undefined;
    for (const change of this.#unapplied.values()) {
      if (through !== undefined && change.revision > through) return { changes, through };
      changes.push(change);
      if (changes.length >= countMin) through ??= this.#records.find(({ last }) => last >= change.revision)?.last;
    }
    return { changes, through: this.revision };
  }

  /** Sorted by key, from `start` to below `end`. */
  unappliedIn(start: string, end: string): Unapplied[] {
    const found: Unapplied[] = [];
    for (const change of this.#unapplied.values()) if (change.key >= start && change.key < end) found.push(change);
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /**
   * A function that records looked-up revisions. Its calls have no effect once the memory was cleared, and never
   * replace what a record has said since.
   */
  remember(): (key: Key, revision: Revision) => void {
    const revisions = this.#revisions;
    return (key, revision) => {
      if (!revisions.has(key)) revisions.set(key, revision);
    };
  }

  /**
   * Clears the memory when it is too large: before keys are looked up, rather than between the lookup and the decision.
   */
  trim(countMax = revisionsMax): void {
    if (this.#revisions.size >= countMax) this.#revisions = new Map();
  }
}
