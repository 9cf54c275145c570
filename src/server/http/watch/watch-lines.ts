// The lines of a watch: changes as JSON text. A record that is stored in the present form is copied, not decoded. Only durable changes are
// sent.

import type { Buggify } from '../../../base/buggify.ts';
import type { AnyResource } from '../../../api/resources/index.ts';
import { decodeRecord } from '../../../core/state/codec.ts';
import { kindOfKey } from '../../../core/state/keys.ts';
import type { WatchEvent } from '../../../store/store.ts';
import { JsonWriter } from '../json-writer.ts';
import { isResource, present } from '../routes/present.ts';
import type { KnownKeys, Seen } from '../routes/visible.ts';
import { withoutSecrets } from '../routes/without-secrets.ts';
import { mayHoldSecrets } from '../../sealing/may-hold-secrets.ts';
import { pulled, type Sink, type Source } from '../connections/sink.ts';
import type { News, Topic, WatchFeed } from './watch-feed.ts';

export interface WatchInput {
  readonly topics: readonly Topic[];
  /** Deletions name their kind. */
  readonly named?: boolean;
  readonly after: number;
  readonly wanted: ((resource: AnyResource) => boolean) | 'all';
  /** The resources that the watcher may know of: nothing is sent about others, not even their deletion. */
  readonly known: KnownKeys;
  /** The part of a resource that the watcher may see; undefined: all of it. */
  readonly seen: Seen | undefined;
  readonly feed: WatchFeed;
  readonly buggify?: Buggify | undefined;
}

/** The lines of `watchTexts`, decoded. The signal of `request` is used only when the lines are read. */
export function watchLines(input: WatchInput, request: { readonly signal: AbortSignal }): AsyncIterable<unknown> {
  return linesIn(watchTexts(input), request);
}

export async function* linesIn(
  texts: Source<Uint8Array>,
  request: { readonly signal: AbortSignal },
): AsyncIterable<unknown> {
  for await (const text of pulled(texts, request.signal))
    for (const line of decoder.decode(text).trimEnd().split('\n')) yield JSON.parse(line);
}

/**
 * Text, in pieces of whole lines. Every change once and in order; a bookmark first, after each batch of changes, and after every quiet
 * time.
 */
export function watchTexts({ topics, after, feed, buggify, ...rest }: WatchInput): Source<Uint8Array> {
  const filter = { named: false, ...rest };
  const same = filter.wanted === 'all' && filter.known === 'all' && filter.seen === undefined;
  return async (sink, signal) => {
    const over = new AbortController();
    const abort = (): void => over.abort();
    signal.addEventListener('abort', abort, { once: true });
    if (!sink.take(bookmarkOf(after))) await sink.ready();
    if (signal.aborted) return;
    const news: Sink<News> = {
      take({ events, revision }) {
        if (over.signal.aborted) return true;
        if (buggify?.('watch-ends')) {
          abort();
          return true;
        }
        if (events.length === 0) return sink.take(bookmarkOf(revision));
        return sink.take(
          same
            ? sharedLinesOf(filter.named ? kindsOf(topics) : '', { events, revision })
            : linesOf(events, revision, filter),
        );
      },
      ready: () => sink.ready(),
    };
    try {
      await feed.follow(topics, after, news, over.signal);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  };
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function kindsOf(topics: readonly Topic[]): string {
  return topics.map(({ kind }) => kind).join();
}

function bookmarkOf(revision: number): Uint8Array {
  return encoder.encode(bookmarkLine(revision));
}

function bookmarkLine(revision: number): string {
  return `{"type":"bookmark","revision":${revision}}\n`;
}

/** Length of what surrounds a resource in its line, and of a bookmark. */
const bytesPerLine = 80;

interface SharedLines {
  /** Of several kinds: events of other kinds may lie between the first and the last. */
  readonly kinds: string;
  readonly first: WatchEvent | undefined;
  readonly count: number;
  readonly revision: number;
  readonly bytes: Uint8Array;
}

/**
 * By the last event: watchers of one topic receive the same text at the same time, and it is encoded once for all. The table holds as many
 * as one batch of changes makes, and is cleared when it is full.
 */
const shared = new Map<WatchEvent, SharedLines>();
const sharedMax = 256;

/** `kinds`: those that the watch names; empty: a watch of one kind. */
function sharedLinesOf(kinds: string, { events, revision }: Pick<News, 'events' | 'revision'>): Uint8Array {
  const [first, last] = [events[0], events.at(-1)];
  const known = last && shared.get(last);
  if (
    known &&
    known.kinds === kinds &&
    known.first === first &&
    known.count === events.length &&
    known.revision === revision
  )
    return known.bytes;
  const bytes = linesOf(events, revision, { ...everything, named: kinds !== '' });
  if (shared.size >= sharedMax) shared.clear();
  if (last) shared.set(last, { kinds, first, count: events.length, revision, bytes });
  return bytes;
}

/** The lines for `events`. Only a bookmark says that all changes of a revision have been sent. */
type Filter = Pick<WatchInput, 'wanted' | 'known' | 'seen'> & { readonly named: boolean };
const everything = { wanted: 'all', known: 'all', seen: undefined } as const;

function linesOf(events: readonly WatchEvent[], revision: number, { wanted, known, seen, named }: Filter): Uint8Array {
  const lines = new JsonWriter(
    events.reduce((sum, { value }) => sum + bytesPerLine + (value?.byteLength ?? 0), bytesPerLine),
  );
  for (const event of events) {
    if (known !== 'all' && !known(event.key)) continue;
    if (event.value && (wanted === 'all' || isWanted(event.key, event.value, wanted)))
      put(lines, event, { value: event.value, seen });
    else lines.text(deleteLine(event, named));
  }
  lines.text(bookmarkLine(revision));
  return lines.take();
}

/** A resource that no longer matches is sent as deleted: the watcher should no longer show it. */
function isWanted(key: string, value: Uint8Array, wanted: (resource: AnyResource) => boolean): boolean {
  const record = decodeRecord(key, value);
  return isResource(record) && wanted(record);
}

function put(
  lines: JsonWriter,
  { key, revision }: WatchEvent,
  { value, seen }: { readonly value: Uint8Array; readonly seen: Seen | undefined },
): void {
  lines.text(`{"type":"put","revision":${revision},"resource":`);
  if (seen || mayHoldSecrets(key, value) || !lines.resource(value, revision))
    lines.text(JSON.stringify(presentOf(key, value, { revision, seen })));
  lines.text('}\n');
}

function presentOf(
  key: string,
  value: Uint8Array,
  { revision, seen }: { readonly revision: number; readonly seen: Seen | undefined },
): unknown {
  const record = decodeRecord(key, value);
  if (!isResource(record)) return record;
  const shown = present({ value: record, revision });
  return seen ? seen(shown, 'several') : withoutSecrets(shown);
}

function deleteLine({ key, revision }: WatchEvent, named: boolean): string {
  const [, ...rest] = key.split('/');
  const metadata = { name: rest.at(-1) ?? '', project: rest.length > 1 ? (rest[0] ?? '') : '' };
  const resource = { ...(named ? { kind: kindOfKey(key) } : {}), metadata };
  return `${JSON.stringify({ type: 'delete', revision, resource })}\n`;
}
