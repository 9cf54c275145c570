// A batch of commits as the parameters of the function in postgres-schema.ts, and the decoding of its result. Keys and
// values are sent once: in the bytes of the events, from which the server cuts the values.

import { crc32 } from 'node:zlib';
import { assert } from '../../base/assert.ts';
import { encodeEvents } from '../event-codec.ts';
import type { LoggedCommit } from '../shared-log.ts';
import type { CommitResult, Condition, Key, Revision, Write } from '../store.ts';

export interface CommitRequest {
  readonly conditions: readonly Condition[];
  /** Their values are views of `events`. */
  readonly writes: readonly Write[];
  /** All writes, in the form of the log. */
  readonly events: Buffer;
}

/** A copy: the batch is written later, and the caller may reuse its arrays and buffers. */
export function commitRequest(conditions: readonly Condition[], writes: readonly Write[]): CommitRequest {
  const events = encodeEvents(writes);
  let at = 0;
  const copies = writes.map(({ key, value }): Write => {
    at += 6 + key.length;
    if (value === null) return { key, value };
    at += value.byteLength;
    return { key, value: new Uint8Array(events.buffer, events.byteOffset + at - value.byteLength, value.byteLength) };
  });
  return { conditions: conditions.map(({ key, ifRevision }) => ({ key, ifRevision })), writes: copies, events };
}

/** The parameters of the function for a single write, after the name of the batch; undefined when there is more. */
export function encodeOne(requests: readonly CommitRequest[]): unknown[] | undefined {
  const [request, ...others] = requests;
  const [write, ...more] = request?.writes ?? [];
  if (!request || !write || others.length > 0 || more.length > 0) return undefined;
  return [
    ...[request.events, write.key, 7 + write.key.length, write.value?.byteLength ?? -1, crc32(request.events)],
    ...[request.conditions.map(({ key }) => key), request.conditions.map(({ ifRevision }) => ifRevision)],
  ];
}

/** The parameters of the function, after the name of the batch. Positions count from 1, as in PostgreSQL. */
export function encodeBatch(requests: readonly CommitRequest[]): unknown[] {
  const places = new Map<Key, number>();
  const placeOf = (key: Key): number => {
    const place = places.get(key) ?? places.size + 1;
    places.set(key, place);
    return place;
  };
  const conditions = { ends: numbers(), keys: numbers(), revisions: numbers() };
  const writes = { ends: numbers(), keys: numbers(), starts: numbers(), lengths: numbers() };
  const events = { starts: numbers(), lengths: numbers(), checksums: numbers() };
  let at = 1;
  for (const request of requests) {
    for (const { key, ifRevision } of request.conditions) {
      conditions.keys.push(placeOf(key));
      conditions.revisions.push(ifRevision);
    }
    conditions.ends.push(conditions.keys.length);
    events.starts.push(at);
    events.lengths.push(request.events.byteLength);
    events.checksums.push(crc32(request.events));
    for (const { key, value } of request.writes) {
      at += 6 + key.length;
      writes.keys.push(placeOf(key));
      writes.starts.push(at);
      writes.lengths.push(value?.byteLength ?? -1);
      at += value?.byteLength ?? 0;
    }
    writes.ends.push(writes.keys.length);
  }
  const [first] = requests;
  const payload =
    first && requests.length === 1 ? first.events : Buffer.concat(requests.map((request) => request.events));
  return [
    payload,
    [...places.keys()],
    ...[conditions.ends, conditions.keys, conditions.revisions],
    ...[writes.ends, writes.keys, writes.starts, writes.lengths],
    ...[events.starts, events.lengths, events.checksums],
  ];
}

function numbers(): number[] {
  return [];
}

export interface BatchOutcome {
  /** The revision of the store after the batch. */
  readonly revision: Revision;
  readonly results: readonly CommitResult[];
  /** Those with a revision, in order. */
  readonly commits: readonly LoggedCommit[];
}

export function decodeOutcome(requests: readonly CommitRequest[], answer: readonly number[]): BatchOutcome {
  let [revision] = answer;
  assert(
    revision !== undefined && answer.length > requests.length,
    'the answer to a batch has a place for each request',
  );
  const absent = new Set(answer.slice(requests.length + 1));
  const conditions = requests.flatMap((request) => request.conditions);
  const commits: LoggedCommit[] = [];
  let write = 0;
  const results = requests.map(({ writes }, i): CommitResult => {
    const first = write + 1;
    write += writes.length;
    const made = answer[i + 1] ?? 0;
    if (made < 0) {
      const failed = conditions[-made - 1];
      assert(failed, 'a failed condition is one of those asked for');
      return { ok: false, key: failed.key };
    }
    if (made !== revision) commits.push(loggedCommit({ revision: made, writes, absent: (n) => absent.has(first + n) }));
    revision = made;
    return { ok: true, revision: made };
  });
  return { revision, results, commits };
}

/** The commit of one request; `absent`: its writes, counted from 0, that deleted nothing. */
export function loggedCommit(made: {
  readonly revision: Revision;
  readonly writes: readonly Write[];
  readonly absent: (write: number) => boolean;
}): LoggedCommit {
  const { revision, writes, absent } = made;
  const there = writes.filter((_, n) => !absent(n));
  return { revision, events: there.map(({ key, value }) => ({ key, value, revision })) };
}
