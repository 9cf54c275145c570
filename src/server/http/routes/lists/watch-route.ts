// `/v1/watch`: several kinds of resources over one connection. What a caller may not watch is said first and left out.

import { ApiError } from '../../../../api/errors.ts';
import { type Kind, resourceDefinitions } from '../../../../api/resources/index.ts';
import { watchRoutes } from '../../../../api/routes/watch.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import { epochOf } from '../../../../core/state/cluster-state.ts';
import { kindOfKey } from '../../../../core/state/keys.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import type { Source } from '../../connections/sink.ts';
import type { Route } from '../../route.ts';
import { linesIn, watchTexts } from '../../watch/watch-lines.ts';
import { bind } from '../bind.ts';
import { assertInStore, type ResourceParts } from './resource-watch.ts';
import { type KnownKeys, seesAll, visibleKeys, visibleTo } from '../visible.ts';

export function watchRoute({ store, decider: { cache, buggify }, feed }: ResourceParts): Route {
  return bind(watchRoutes.watch, async ({ query }, request) => {
    const { principal } = request.caller;
    const asked = kindsIn(query.kinds);
    const { epoch, revision: after = cache.revision } = query;
    if (epoch !== undefined && epoch !== epochOf(cache))
      throw new ApiError('Compacted', 'the store was restored from a backup since; list again', { field: 'epoch' });
    if (after > cache.revision) await assertInStore(store, after);
    const { known, refused } = rightsToWatch(asked, principal, cache);
    if (known.size === 0) throw refused[0]?.error ?? new ApiError('Forbidden', 'you may watch none of these kinds');
    const changes = watchTexts({
      topics: [...known.keys()].map((kind) => ({ kind, project: undefined })),
      named: true,
      after,
      wanted: 'all',
      known: knownOfAll(known),
      seen: seesAll(principal) ? undefined : visibleTo(principal, cache),
      feed,
      buggify,
    });
    const texts = withFirst(
      refused.map(({ kind, error: { message } }) => ({ type: 'refused', kind, message })),
      changes,
    );
    return { status: 200, lines: linesIn(texts, request), texts };
  });
}

/** Throws `InvalidRequest` for one that does not exist. */
function kindsIn(text: string): readonly Kind[] {
  const kinds = new Set(text.split(',').map((name) => name.trim()));
  return [...kinds].map((name) => {
    const definition = Object.values(resourceDefinitions).find(({ kind }) => kind === name);
    if (definition) return definition.kind;
    const message = `kinds: there is no kind "${name.slice(0, 80)}"; name some as in "instance,host"`;
    throw new ApiError('InvalidRequest', message, { field: 'kinds' });
  });
}

interface Refused {
  readonly kind: Kind;
  readonly error: ApiError;
}

function rightsToWatch(kinds: readonly Kind[], principal: Principal, snapshot: Snapshot) {
  const known = new Map<Kind, KnownKeys>();
  const refused: Refused[] = [];
  for (const kind of kinds) {
    try {
      known.set(kind, visibleKeys(principal, kind, snapshot, undefined, 'watch'));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refused.push({ kind, error });
    }
  }
  return { known, refused };
}

function knownOfAll(known: ReadonlyMap<Kind, KnownKeys>): KnownKeys {
  if ([...known.values()].every((each) => each === 'all')) return 'all';
  const byKind: ReadonlyMap<string | undefined, KnownKeys> = known;
  return (key, resource) => {
    const of = byKind.get(kindOfKey(key));
    return of === 'all' || (of !== undefined && of(key, resource));
  };
}

const encoder = new TextEncoder();

function withFirst(first: readonly object[], rest: Source<Uint8Array>): Source<Uint8Array> {
  if (first.length === 0) return rest;
  const text = first.map((line) => `${JSON.stringify(line)}\n`).join('');
  return async (sink, signal) => {
    if (!sink.take(encoder.encode(text))) await sink.ready();
    return rest(sink, signal);
  };
}
