// All reads from etcd: heads, records, entries, each response from one etcd revision with a quorum (never
// `serializable`). What it reads of the log goes into the known state, in order. It writes nothing.

import { assert } from '../../base/assert.ts';
import { startOfList } from '../check-request.ts';
import { ListInBuffers } from '../list-in-buffers.ts';
import { type LoggedCommit, logPatienceMsMax, type LogPage } from '../shared-log.ts';
import type { Entry, Key, Listed, Revision } from '../store.ts';
import { type CallLimits, type Etcd, Forgotten } from './etcd-client.ts';
import { corrupt, storeErrorOf } from './etcd-errors.ts';
import type { AnsweredKeyValue, KeyValue, RangeResponse, TxnResponse } from './answers.ts';
import type { RangeRequest, RequestOp } from './requests.ts';
import type { Batch, KnownState } from './known-state.ts';
import {
  type Applied,
  checkEntry,
  type CompactedMark,
  decodeApplied,
  decodeCompacted,
  decodeEntry,
  decodeHead,
  type Head,
  type Layout,
  partBytes,
  type Place,
  type StoredEntry,
} from './layout.ts';
import { reachOf } from './reach.ts';
import { decodeCommits, decodeHeader, type RecordHeader } from './record.ts';

/** The store at one of etcd's revisions. */
export interface Look {
  readonly etcdRevision: string;
  readonly head: Head;
  readonly applied: Applied;
  readonly compacted: CompactedMark;
  /** The records after the requested revision, possibly not all. */
  readonly records: readonly KeyValue[];
  /** The other requested ranges. */
  readonly ranges: readonly RangeResponse[];
}

export interface LogReaderOptions {
  readonly etcd: Etcd;
  readonly layout: Layout;
  readonly known: KnownState;
  /** Called with each record that entered the known state, immediately. */
  readonly onTaken: (commits: readonly LoggedCommit[]) => void;
  /** The known state skipped compacted history; the store is at `revision`. */
  readonly onSkipped: (revision: Revision) => void;
}

const recordPageBytes = 4 * 1024 * 1024;
const recordsPerPageMin = 32;
/**
 * etcd 3.4 walks its index to the end of the range for every page, some 50 ms for 300,000 entries: so few large pages
 * instead of many small ones.
 */
const entryPageBytes = 16 * 1024 * 1024;
/** From this page size on it is worth estimating the range of the next page. */
const reachKeysMin = 500;
const reachesMax = 16;
const entriesPerPageMax = 20_000;
/** etcd accepts 128 operations in a transaction; four of them read the log. */
const lookedUpAtOnce = 120;
/** A read starts again this often only if etcd is compacted at every step. */
const beginningsMax = 5;

export class LogReader {
  readonly #options: LogReaderOptions;
  readonly #etcd: Etcd;
  readonly #layout: Layout;
  readonly #known: KnownState;
  readonly #marks: readonly RequestOp[];
  #recordsPerPage = recordsPerPageMin;
  /** The recent size of an entry. */
  #entryBytes = 16 * 1024;
  /** By the end of a list's page: how far the next page should reach. */
  readonly #reach = new Map<Key, Key>();

  constructor(options: LogReaderOptions) {
    this.#options = options;
    this.#etcd = options.etcd;
    this.#layout = options.layout;
    this.#known = options.known;
    const { head, applied, compacted } = options.layout;
    this.#marks = [head, applied, compacted].map((key) => ({ requestRange: { key } }));
  }

  /** The reads for `lookOf`, as operations of a transaction. */
  lookOps(after: Revision): RequestOp[] {
    return [...this.#marks, { requestRange: { ...this.#layout.records(after + 1), limit: this.#recordsPerPage } }];
  }

  /** `after`: what was known when it was sent: the store cannot have less. */
  lookOf(response: TxnResponse, after: Revision): Look {
    const { name } = this.#etcd;
    const [head, applied, compacted, log, ...ranges] = response.responses.map(({ responseRange }) => responseRange);
    const records = log?.kvs ?? [];
    const look: Look = {
      etcdRevision: revisionOf(response),
      head: decodeHead(head?.kvs[0], name),
      applied: decodeApplied(applied?.kvs[0], name),
      compacted: decodeCompacted(compacted?.kvs[0], name),
      records,
      ranges: ranges.filter((range) => range !== null && range !== undefined),
    };
    if (look.head.revision < after)
      throw corrupt(
        name,
        `it has gone back from revision ${after} to ${look.head.revision}, as after a restore; restart all servers then`,
      );
    this.#adaptPage(records, log?.more ?? false);
    return look;
  }

  /**
   * Calls `use` at a moment when the entries in `ranges`, with the unapplied changes on top, are the store at the known
   * revision, which is at least as new as the store was at the call.
   */
  async view<T>(attempted: string, ranges: readonly RangeRequest[], use: (look: Look) => T): Promise<T> {
    for (;;) {
      const look = await this.#look(attempted, this.#known.revision, ranges);
      await this.#takeIn(look);
      while (this.#known.revision < look.head.revision)
        await this.#takeIn(await this.#look(attempted, this.#known.revision, []));
      if (look.applied.revision < this.#known.base) continue; // read before the entries followed, and known after
      this.#known.applied(look.applied.revision);
      return use(look);
    }
  }

  /** Brings the known state to the current revision, starting from the entries. */
  async begin(): Promise<{ revision: Revision; compacted: Revision }> {
    const { kvs } = await this.#etcd.call('range', { key: this.#layout.applied }, 'opening the store');
    this.#known.reset(decodeApplied(kvs[0], this.#etcd.name).revision, '0');
    return this.view('opening the store', [], ({ compacted }) => ({
      revision: this.#known.revision,
      compacted: compacted.before,
    }));
  }

  /** The current revision of the store. */
  revision(attempted: string): Promise<Revision> {
    return this.view(attempted, [], () => this.#known.revision);
  }

  async get(key: Key): Promise<Entry | null> {
    const attempted = `get of "${key}"`;
    return this.#beginAgain(attempted, async () => {
      const { change, stored, etcdRevision } = await this.view(
        attempted,
        [{ key: this.#layout.entry(key) }],
        ({ ranges, etcdRevision }) => ({
          etcdRevision,
          change: this.#known.unapplied(key),
          stored: ranges[0]?.kvs[0],
        }),
      );
      if (change)
        return change.value === null ? null : { key, value: new Uint8Array(change.value), revision: change.revision };
      return stored ? this.#entryOf(decodeEntry(stored, this.#layout, this.#etcd.name), etcdRevision) : null;
    });
  }

  async list(prefix: string, { start, end, limit }: { start: string; end: string; limit: number }): Promise<Listed> {
    const attempted = `list of "${prefix}"`;
    if (start >= end) return { entries: [], revision: await this.revision(attempted) };
    const { name } = this.#etcd;
    return this.#beginAgain(attempted, async () => {
      const entries: Entry[] = [];
      /** They contain the values; gRPC copies each response into memory of its own. */
      const answers: Buffer[] = [];
      const pageLimit = (): number => {
        const fitting = Math.max(16, Math.floor(entryPageBytes / this.#entryBytes));
        return Math.min(limit - entries.length + 16, fitting, entriesPerPageMax);
      };
      const rangeFrom = (from: Key): { readonly to: Key; readonly request: RangeRequest } => {
        const reach = this.#reach.get(from) ?? end;
        this.#reach.delete(from);
        const to = reach > from && reach < end ? reach : end;
        return { to, request: { ...this.#layout.entries(from, to), limit: pageLimit() } };
      };
      let range = rangeFrom(start);
      const begun = await this.view(attempted, [range.request], ({ ranges, etcdRevision }) => ({
        page: ranges[0],
        etcdRevision,
        changes: this.#known.unappliedIn(start, end),
        revision: this.#known.revision,
      }));
      const { changes, etcdRevision, revision } = begun;
      let next = 0;
      const takeChange = (): void => {
        const { key, value, revision } = changes[next++] ?? {};
        if (key !== undefined && value && revision) entries.push({ key, value: new Uint8Array(value), revision });
      };
      let { page } = begun;
      while (page) {
        const keys: Key[] = [];
        if (page.kvs[0]) answers.push(page.kvs[0].bytes);
        for (const kv of page.kvs) {
          const stored = decodeEntry(kv, this.#layout, name);
          for (let at = changes[next]; at && at.key < stored.key && entries.length < limit; at = changes[next])
            takeChange();
          if (entries.length >= limit) break;
          keys.push(stored.key);
          if (changes[next]?.key === stored.key) takeChange();
          else {
            entries.push(
              stored.value instanceof Uint8Array
                ? entryWith(stored, stored.value)
                : await this.#entryOf(stored, etcdRevision),
            );
          }
        }
        if (keys.length > 0) this.#entryBytes = Math.max(bytesOf(page.kvs) / page.kvs.length, this.#entryBytes / 4);
        const full = entries.length >= limit;
        const last = full ? entries.at(-1)?.key : keys.at(-1);
        const from = (page.more || full) && last !== undefined ? startOfList('', { after: last }) : range.to;
        if (keys.length >= reachKeysMin && from !== end) this.#remember(from, reachOf(keys));
        if (full || from === end) break;
        range = rangeFrom(from);
        page = await this.#etcd.call('range', { ...range.request, revision: etcdRevision }, attempted);
      }
      while (next < changes.length && entries.length < limit) takeChange();
      return new ListInBuffers(entries, revision, answers);
    });
  }

  #remember(from: Key, reach: Key): void {
    const [oldest] = this.#reach.keys();
    if (this.#reach.size >= reachesMax && oldest !== undefined) this.#reach.delete(oldest); // of a list that was not continued
    this.#reach.set(from, reach);
  }

  /** Afterwards the known state has the last revision of each key, unless its memory was cleared in between. */
  async lookUp(keys: readonly Key[]): Promise<void> {
    for (let i = 0; i < keys.length; i += lookedUpAtOnce) {
      const some = keys.slice(i, i + lookedUpAtOnce);
      await this.view(
        'look at the keys of a commit',
        some.map((key) => ({ key: this.#layout.entry(key) })),
        ({ ranges }) => {
          const remember = this.#known.remember();
          for (const [n, key] of some.entries()) {
            const stored = ranges[n]?.kvs[0];
            remember(key, stored ? decodeEntry(stored, this.#layout, this.#etcd.name).revision : 0);
          }
        },
      );
    }
  }

  /** A page of the commits after `after`. */
  async page(after: Revision): Promise<LogPage> {
    const attempted = 'reading the log';
    return this.#beginAgain(attempted, async () => {
      const look = await this.#look(attempted, after, [], { patienceMs: logPatienceMsMax });
      const { revision } = look.head;
      const compacted = look.compacted.before;
      if (after + 1 < compacted) return { commits: [], revision, compacted };
      const batches = await this.#load(look, after);
      this.#take(batches);
      this.#known.applied(look.applied.revision);
      const commits = batches.flatMap((batch) => batch.commits).filter((commit) => commit.revision > after);
      if (revision > after && commits[0]?.revision !== after + 1) throw this.#gap(after, commits[0]?.revision);
      return { commits, revision, compacted };
    });
  }

  /** Applies what a look found of the log after `after`. */
  async takeIn(look: Look, after: Revision): Promise<void> {
    this.#takeOrSkip(look, await this.#load(look, after));
    this.#known.applied(look.applied.revision);
  }

  async #takeIn(look: Look): Promise<void> {
    if (this.#known.revision >= look.head.revision) this.#noteHead(look.head);
    else this.#takeOrSkip(look, await this.#load(look, this.#known.revision));
  }

  #takeOrSkip(look: Look, batches: readonly Batch[]): void {
    this.#take(batches);
    const { head, applied } = look;
    const next = batches.find(({ last }) => last > this.#known.revision);
    const stuck = next ? next.first > this.#known.revision + 1 : look.records.length === 0;
    if (this.#known.revision < head.revision && stuck) {
      if (applied.revision <= this.#known.revision) throw this.#gap(this.#known.revision, next?.first);
      // Other processes have compacted what this one has not read: the entries contain all of it.
      this.#known.reset(applied.revision, '0');
      this.#take(batches);
      this.#options.onSkipped(head.revision);
    }
    this.#noteHead(head);
  }

  #noteHead(head: Head): void {
    if (head.revision === this.#known.revision && Number(head.modRevision) > Number(this.#known.modRevision))
      this.#known.modRevision = head.modRevision;
  }

  #take(batches: readonly Batch[]): void {
    for (const batch of batches) if (this.#known.take(batch)) this.#options.onTaken(batch.commits);
  }

  async #look(attempted: string, after: Revision, ranges: readonly RangeRequest[], limits?: CallLimits): Promise<Look> {
    const success = [...this.lookOps(after), ...ranges.map((requestRange): RequestOp => ({ requestRange }))];
    return this.lookOf(await this.#etcd.call('read', { compare: [], success, failure: [] }, attempted, limits), after);
  }

  /** The events of the records after `after`, up to some MiB. */
  async #load(look: Look, after: Revision): Promise<Batch[]> {
    const batches: Batch[] = [];
    let bytes = 0;
    for (const kv of look.records) {
      const header = decodeHeader(kv.value);
      if (!header || !this.#layout.record(header.last).equals(kv.key)) throw this.#damaged(kv);
      if (header.last <= after) continue;
      const parts = header.parts > 0 ? await this.#joinParts(header, look.etcdRevision) : header.inline;
      const commits = decodeCommits(header, parts);
      if (!commits) throw this.#damaged(kv);
      const { id, first, last } = header;
      batches.push({
        id,
        first,
        last,
        modRevision: kv.modRevision,
        commits,
        parted: header.parts > 0,
        bytes: parts.byteLength,
      });
      bytes += parts.byteLength;
      if (bytes >= 2 * recordPageBytes) break;
    }
    return batches;
  }

  #joinParts(header: RecordHeader, etcdRevision: string): Promise<Buffer> {
    return this.#readParts(header.id, { first: 0, end: header.parts }, etcdRevision);
  }

  async #entryOf(stored: StoredEntry, etcdRevision: string): Promise<Entry> {
    if (stored.value instanceof Uint8Array) return entryWith(stored, stored.value);
    const value = await this.#valueAt(stored.value, etcdRevision);
    checkEntry(stored, value, this.#etcd.name);
    return entryWith(stored, new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  }

  async #valueAt({ id, offset, length }: Place, etcdRevision: string): Promise<Buffer> {
    const first = Math.floor(offset / partBytes);
    const bytes = await this.#readParts(id, { first, end: Math.ceil((offset + length) / partBytes) }, etcdRevision);
    return bytes.subarray(offset - first * partBytes, offset - first * partBytes + length);
  }

  async #readParts(id: string, { first, end }: { first: number; end: number }, etcdRevision: string): Promise<Buffer> {
    const pieces: Buffer[] = [];
    while (first + pieces.length < end) {
      const from = first + pieces.length;
      const range = { ...this.#layout.parts(id, from, end), limit: 4, revision: etcdRevision };
      const { kvs } = await this.#etcd.call('range', range, 'reading the parts of a record');
      for (const [i, kv] of kvs.entries()) {
        if (!kv.key.equals(this.#layout.part(id, from + i)))
          throw corrupt(this.#etcd.name, `part ${from + i} of batch ${id} is not there`);
        pieces.push(kv.value);
      }
      if (kvs.length === 0) throw corrupt(this.#etcd.name, `part ${from} of batch ${id} is not there`);
    }
    return Buffer.concat(pieces);
  }

  async #beginAgain<T>(attempted: string, read: () => Promise<T>): Promise<T> {
    for (let beginning = 1; ; beginning++) {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof Forgotten)) throw error;
        if (beginning === beginningsMax)
          throw storeErrorOf(
            { fault: 'forgotten', maybeDone: false, text: error.message },
            { attempted, name: this.#etcd.name },
            { cause: error },
          );
      }
    }
  }

  /** Grows while there is more to read, and starts small again: the size of the next records is unknown. */
  #adaptPage(records: readonly AnsweredKeyValue[], more: boolean): void {
    const fitting = Math.floor((records.length * recordPageBytes) / Math.max(bytesOf(records), 1));
    const wanted = more ? Math.min(fitting, 4 * this.#recordsPerPage) : 0;
    this.#recordsPerPage = Math.max(wanted, recordsPerPageMin);
  }

  #damaged(kv: KeyValue) {
    return corrupt(this.#etcd.name, `the record ${kv.key.toString()} has a wrong checksum`);
  }

  #gap(after: Revision, found: Revision | undefined) {
    return corrupt(
      this.#etcd.name,
      `after revision ${after} its log has ${found === undefined ? 'nothing' : `revision ${found}`}`,
    );
  }
}

export function revisionOf(response: { readonly header: { readonly revision: string } | null }): string {
  assert(response.header, 'etcd answers with a header');
  return response.header.revision;
}

function entryWith({ key, revision }: StoredEntry, value: Uint8Array): Entry {
  return { key, value, revision };
}

function bytesOf(kvs: readonly AnsweredKeyValue[]): number {
  let bytes = 0;
  for (const { valueAt, valueEnd } of kvs) bytes += valueEnd - valueAt + 64;
  return bytes;
}
