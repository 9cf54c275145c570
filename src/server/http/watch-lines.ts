// The lines of a watch: what changed, as JSON text. A change whose text is of the present form is copied as it is stored, not read. It
// never tells what is not durable.

import type { Buggify } from '../../base/buggify.ts';
import type { Clock } from '../../base/clock.ts';
import { ApiError } from '../../api/errors.ts';
import type { AnyResource, Kind } from '../../api/resources/index.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import { prefixOf } from '../../core/state/keys.ts';
import { Compacted, type Store, StoreError, type WatchEvent } from '../../store/store.ts';
import { JsonWriter } from './json-writer.ts';
import { isResource, present } from './present.ts';

export interface WatchInput {
  readonly kind: Kind;
  readonly after: number;
  readonly wanted: ((resource: AnyResource) => boolean) | 'all';
  readonly store: Store;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly buggify?: Buggify | undefined;
}

const bookmarkMs = 10_000;

export async function* watchLines(input: WatchInput): AsyncIterable<unknown> {
  for await (const text of watchTexts(input))
    for (const line of decoder.decode(text).trimEnd().split('\n')) yield JSON.parse(line);
}

/**
 * The same as text, some whole lines a piece. Every change once and in order; a bookmark first, after what came together, and whenever
 * nothing came for a while.
 */
export async function* watchTexts(input: WatchInput): AsyncIterable<Uint8Array> {
  const { kind, after, wanted, store, clock, signal } = input;
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
  yield bookmarkOf(revision);
  try {
    while (!signal.aborted) {
      const idle = Promise.withResolvers<'idle'>();
      const timer = clock.setTimer(bookmarkMs, () => idle.resolve('idle'));
      const batch = await Promise.race([next, idle.promise]).finally(() => timer.cancel());
      if (batch === 'idle') {
        yield bookmarkOf(revision);
        continue;
      }
      if (batch.done || input.buggify?.('watch-ends')) return;
      next = readAhead();
      const lines = linesOf(batch.value, prefix, wanted);
      revision = batch.value.at(-1)?.revision ?? revision;
      if (lines) yield lines;
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

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function bookmarkOf(revision: number): Uint8Array {
  return encoder.encode(bookmarkLine(revision));
}

function bookmarkLine(revision: number): string {
  return `{"type":"bookmark","revision":${revision}}\n`;
}

/** Around a resource in its line, and for a bookmark. */
const bytesPerLine = 80;

/** What a watcher is told of `events`, which are whole revisions; undefined: nothing. */
function linesOf(events: readonly WatchEvent[], prefix: string, wanted: WatchInput['wanted']): Uint8Array | undefined {
  const told = events.filter(({ key }) => key.startsWith(prefix));
  if (told.length === 0) return undefined;
  const lines = new JsonWriter(
    told.reduce((sum, { value }) => sum + bytesPerLine + (value?.byteLength ?? 0), bytesPerLine),
  );
  for (const event of told) {
    if (event.value && (wanted === 'all' || isWanted(event.key, event.value, wanted))) put(lines, event, event.value);
    else lines.text(deleteLine(event));
  }
  // One revision may hold several changes; only here is it known that they have all been told.
  lines.text(bookmarkLine(events.at(-1)?.revision ?? 0));
  return lines.take();
}

/** What stops to match is told as deleted: the watcher should not show it any more. */
function isWanted(key: string, value: Uint8Array, wanted: (resource: AnyResource) => boolean): boolean {
  const record = decodeRecord(key, value);
  return isResource(record) && wanted(record);
}

function put(lines: JsonWriter, { key, revision }: WatchEvent, value: Uint8Array): void {
  lines.text(`{"type":"put","revision":${revision},"resource":`);
  if (!lines.resource(value, revision)) lines.text(JSON.stringify(presentOf(key, value, revision)));
  lines.text('}\n');
}

function presentOf(key: string, value: Uint8Array, revision: number): unknown {
  const record = decodeRecord(key, value);
  return isResource(record) ? present({ value: record, revision }) : record;
}

function deleteLine({ key, revision }: WatchEvent): string {
  const [, ...rest] = key.split('/');
  const metadata = { name: rest.at(-1) ?? '', project: rest.length > 1 ? (rest[0] ?? '') : '' };
  return `${JSON.stringify({ type: 'delete', revision, resource: { metadata } })}\n`;
}
