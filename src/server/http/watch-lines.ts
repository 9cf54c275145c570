// The lines of a watch: what changed, as JSON text. A change is written out once, however many watch it, and not read when its text
// is of the present form. It never tells what is not durable.

import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../api/errors.ts';
import type { AnyResource, Kind } from '../../api/resources/index.ts';
import { decodeRecord, schemaVersion } from '../../core/state/codec.ts';
import { prefixOf } from '../../core/state/keys.ts';
import { Compacted, type Store, StoreError, type WatchEvent } from '../../store/store.ts';
import { isResource, present } from './present.ts';

export interface WatchInput {
  readonly kind: Kind;
  readonly after: number;
  readonly wanted: ((resource: AnyResource) => boolean) | 'all';
  readonly store: Store;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const bookmarkMs = 10_000;

export async function* watchLines(input: WatchInput): AsyncIterable<unknown> {
  for await (const lines of watchBatches(input)) for (const line of lines) yield JSON.parse(line);
}

/** The same as text, some whole lines a piece. */
export async function* watchTexts(input: WatchInput): AsyncIterable<string> {
  for await (const lines of watchBatches(input)) yield `${lines.join('\n')}\n`;
}

/** Every change once and in order; a bookmark first, after what came together, and whenever nothing came for a while. */
async function* watchBatches({ kind, after, wanted, store, clock, signal }: WatchInput): AsyncIterable<string[]> {
  const prefix = prefixOf(kind);
  const batches = store.watch('', after, signal)[Symbol.asyncIterator]();
  let revision = after;
  /** May fail while a slow reader is still busy with what came before; then it is told when its turn comes. */
  const readAhead = (): Promise<IteratorResult<readonly WatchEvent[]>> => {
    const batch = batches.next();
    batch.catch(() => {});
    return batch;
  };
  let next = readAhead();
  yield [bookmarkOf(revision)];
  try {
    while (!signal.aborted) {
      const idle = Promise.withResolvers<'idle'>();
      const timer = clock.setTimer(bookmarkMs, () => idle.resolve('idle'));
      const batch = await Promise.race([next, idle.promise]).finally(() => timer.cancel());
      if (batch === 'idle') {
        yield [bookmarkOf(revision)];
        continue;
      }
      if (batch.done) return;
      next = readAhead();
      const lines: string[] = [];
      for (const event of batch.value) {
        revision = event.revision;
        if (event.key.startsWith(prefix)) lines.push(wanted === 'all' ? lineOf(event) : lineOfWanted(event, wanted));
      }
      // One revision may hold several changes; only here is it known that they have all been told.
      if (lines.length > 0) yield [...lines, bookmarkOf(revision)];
    }
  } catch (error) {
    if (error instanceof Compacted) throw new ApiError('Compacted', error.message, { cause: error });
    if (error instanceof StoreError)
      throw new ApiError('Unavailable', 'the store cannot be watched now; try again', { cause: error });
    throw error;
  } finally {
    await batches.return?.();
  }
}

function bookmarkOf(revision: number): string {
  return `{"type":"bookmark","revision":${revision}}`;
}

/** Stores give all watchers the same events. */
const lines = new WeakMap<WatchEvent, string>();

function lineOf(event: WatchEvent): string {
  let line = lines.get(event);
  if (line === undefined) lines.set(event, (line = event.value ? putOf(event.value, event) : deleteOf(event)));
  return line;
}

/** What stops to match is told as deleted: the watcher should not show it any more. */
function lineOfWanted(event: WatchEvent, wanted: (resource: AnyResource) => boolean): string {
  const record = event.value && decodeRecord(event.key, event.value);
  return record && isResource(record) && wanted(record) ? lineOf(event) : deleteOf(event);
}

const decoder = new TextDecoder();

/** A resource is stored with revision 0, the first number of its metadata: names and ids hold no quotes. */
const present0 = new RegExp(
  `^\\{"kind":"[A-Za-z]+","schemaVersion":${schemaVersion},"metadata":\\{"id":"[^"\\\\]*","name":"[^"\\\\]*","project":"[^"\\\\]*","revision":(?=0,)`,
);

function putOf(value: Uint8Array, { key, revision }: WatchEvent): string {
  const text = decoder.decode(value);
  const head = present0.exec(text)?.[0];
  const resource =
    head === undefined
      ? JSON.stringify(presentOf(key, value, revision))
      : `${head}${revision}${text.slice(head.length + 1)}`;
  return `{"type":"put","revision":${revision},"resource":${resource}}`;
}

function presentOf(key: string, value: Uint8Array, revision: number): unknown {
  const record = decodeRecord(key, value);
  return isResource(record) ? present({ value: record, revision }) : record;
}

function deleteOf({ key, revision }: WatchEvent): string {
  const [, ...rest] = key.split('/');
  const metadata = { name: rest.at(-1) ?? '', project: rest.length > 1 ? (rest[0] ?? '') : '' };
  return JSON.stringify({ type: 'delete', revision, resource: { metadata } });
}
