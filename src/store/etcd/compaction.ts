// Forgets history: records, unused parts, and then etcd's own old revisions. Nothing is deleted before the entries have
// followed, and before `compacted` says so; what a crash leaves behind is deleted by the next compaction.

import { assert } from '../../base/assert.ts';
import type { Key, Revision } from '../store.ts';
import { type Etcd, Forgotten } from './etcd-client.ts';
import type { EntryFollower } from './entry-follower.ts';
import type { RangeResponse } from './answers.ts';
import type { RequestOp } from './requests.ts';
import {
  type CompactedMark,
  decodeEntry,
  decodeParted,
  encodeCompacted,
  type Layout,
  type Parted,
  unchanged,
} from './layout.ts';
import type { LogReader } from './log-reader.ts';

interface Parts {
  readonly etcd: Etcd;
  readonly layout: Layout;
  readonly reader: LogReader;
  readonly follower: EntryFollower;
}

/** Per request, so that commits can run in between. */
const forgetRevisionsMax = 1_000;
const keysPerPage = 2_000;
const attempted = 'compaction';

export async function compactLog(parts: Parts, before: Revision): Promise<void> {
  await parts.follower.through(before - 1);
  const previous = await markCompacted(parts, before);
  if (!previous) return;
  await forgetRecords(parts, before);
  await forgetParts(parts, before);
  await forgetStrayParts(parts, previous.etcdRevision);
  // Of dead processes; a living one asks again.
  await parts.etcd.call('deleteRange', parts.layout.allWaiting, attempted);
  await forgetEtcdHistory(parts.etcd, previous.etcdRevision);
}

/** Returns the previous mark; undefined when it was as high or higher. */
async function markCompacted({ etcd, layout, reader }: Parts, before: Revision): Promise<CompactedMark | undefined> {
  for (;;) {
    const { previous, etcdRevision } = await reader.view(attempted, [], (look) => ({
      previous: look.compacted,
      etcdRevision: look.etcdRevision,
    }));
    if (previous.before >= before) return undefined;
    const value = encodeCompacted({ before, etcdRevision: Number(etcdRevision) });
    const success: RequestOp[] = [{ requestPut: { key: layout.compacted, value: [value] } }];
    const compare = [unchanged(layout.compacted, previous.modRevision)];
    if ((await etcd.call('txn', { compare, success, failure: [] }, attempted)).succeeded) return previous;
  }
}

/** Records that end below `before`. */
async function forgetRecords({ etcd, layout }: Parts, before: Revision): Promise<void> {
  const oldest = await etcd.call('range', { ...layout.records(0, before), limit: 1, keysOnly: true }, attempted);
  const first = oldest.kvs[0];
  if (!first) return;
  for (let from = layout.revisionOfRecord(first.key); from < before; from += forgetRevisionsMax)
    await etcd.call('deleteRange', layout.records(from, Math.min(from + forgetRevisionsMax, before)), attempted);
}

/**
 * Parts of deleted records, unless an entry has its value in them. No new entry can refer to them: the entries have
 * followed further.
 */
async function forgetParts({ etcd, layout, reader }: Parts, before: Revision): Promise<void> {
  const { kvs } = await etcd.call('range', layout.allParted, attempted);
  for (const parted of kvs.map((kv) => decodeParted(kv, layout))) {
    if (parted.last >= before || (await inUse({ etcd, layout, reader }, parted))) continue;
    const success: RequestOp[] = [
      { requestDeleteRange: layout.parts(parted.id) },
      { requestDeleteRange: { key: layout.parted(parted.last) } },
    ];
    await etcd.call('txn', { compare: [], success, failure: [] }, attempted);
  }
}

async function inUse({ etcd, layout, reader }: Omit<Parts, 'follower'>, { id, keys }: Parted): Promise<boolean> {
  for (let i = 0; i < keys.length; i += 100) {
    const some: readonly Key[] = keys.slice(i, i + 100);
    const ranges = await reader.view(
      attempted,
      some.map((key) => ({ key: layout.entry(key) })),
      (look) => look.ranges,
    );
    for (const kv of ranges.flatMap((range) => range.kvs)) {
      const { value } = decodeEntry(kv, layout, etcd.name);
      if (!(value instanceof Uint8Array) && value.id === id) return true;
    }
  }
  return false;
}

/**
 * Parts without a record: their process died. Only those that existed at the previous compaction, so that commits in
 * progress are hardly ever affected; an affected commit fails, because its transaction checks its parts.
 */
async function forgetStrayParts({ etcd, layout, reader }: Parts, olderThan: number): Promise<void> {
  const ids = new Set<string>();
  let page: RangeResponse | undefined;
  let start = layout.allParts.key;
  do {
    page = await etcd.call('range', { ...layout.allParts, key: start, limit: keysPerPage, keysOnly: true }, attempted);
    for (const { key, modRevision } of page.kvs) if (Number(modRevision) <= olderThan) ids.add(layout.idOfPart(key));
    const last = page.kvs.at(-1);
    if (last) start = Buffer.concat([last.key, Buffer.of(0)]);
  } while (page.more);
  for (const id of ids) {
    assert(id !== '', 'a part belongs to a batch');
    const { head, named } = await reader.view(attempted, [layout.allParted], (look) => ({
      head: look.head,
      named: look.ranges[0]?.kvs.some((kv) => decodeParted(kv, layout).id === id) ?? true,
    }));
    // A commit in between may use these parts: then the next compaction checks again.
    const compare = [unchanged(layout.head, head.modRevision)];
    const success: RequestOp[] = [{ requestDeleteRange: layout.parts(id) }];
    if (!named) await etcd.call('txn', { compare, success, failure: [] }, attempted);
  }
}

/** Up to the previous compaction: reads in progress, and watches, need younger revisions. */
async function forgetEtcdHistory(etcd: Etcd, revision: number): Promise<void> {
  if (revision === 0) return;
  try {
    await etcd.call('compact', { revision: String(revision) }, attempted);
  } catch (error) {
    if (!(error instanceof Forgotten)) throw error; // another process has done it
  }
}
