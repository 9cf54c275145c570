// A watch of one kind of resource, as lines or as server-sent events.

import { ApiError } from '../../../../api/errors.ts';
import type { Kind } from '../../../../api/resources/index.ts';
import type { ResourceDefinition } from '../../../../api/resources/metadata.ts';
import { epochOf } from '../../../../core/state/cluster-state.ts';
import type { Store } from '../../../../store/store.ts';
import { seesAll, visibleKeys, visibleTo } from '../visible.ts';
import type { Decider } from '../../../decide.ts';
import { eventStreamHeaders, eventStreamOf, lastEventId, wantsEventStream } from '../../event-stream/event-stream.ts';
import { newestRevision } from '../../newest-revision.ts';
import type { Answer, Query, RouteRequest } from '../../route.ts';
import type { WatchFeed } from '../../watch/watch-feed.ts';
import { watchLines, watchTexts } from '../../watch/watch-lines.ts';
import { filterOf, type ListQuery } from './resource-list.ts';

export interface ResourceParts {
  readonly decider: Decider;
  readonly store: Store;
  readonly feed: WatchFeed;
}

export async function watch(
  kind: Kind,
  definition: ResourceDefinition,
  { store, decider: { cache, buggify }, feed }: ResourceParts,
  query: ListQuery,
  request: RouteRequest,
): Promise<Answer> {
  assertWithoutPages(request.query);
  const { principal } = request.caller;
  const known = visibleKeys(principal, kind, cache, query.project, 'watch');
  const topic = { kind, project: definition.scope === 'fleet' ? undefined : query.project };
  const wanted = filterOf(definition, query, topic);
  const streams = kind === 'event' && wantsEventStream(request);
  const seenLast = streams ? lastEventId(request) : undefined;
  const { epoch, revision: after = seenLast ?? cache.revision } = query;
  if (epoch !== undefined && epoch !== epochOf(cache))
    throw new ApiError('Compacted', 'the store was restored from a backup since; list again', { field: 'epoch' });
  if (after > cache.revision) await assertInStore(store, after);
  const seen = seesAll(principal) ? undefined : visibleTo(principal, cache);
  const input = { topics: [topic], after, wanted, known, seen, feed, buggify };
  if (streams) {
    const bytes = eventStreamOf(watchLines(input, request), epochOf(cache) ?? '');
    return { status: 200, bytes, headers: eventStreamHeaders };
  }
  return { status: 200, lines: watchLines(input, request), texts: watchTexts(input) };
}

const pageParameters: readonly (keyof ListQuery)[] = ['limit', 'continue', 'offset', 'order'];

/** A watch streams every change: a client that asks for a part of them would get more than it expects. */
function assertWithoutPages(query: Query): void {
  const names = new Set(query.names());
  const field = pageParameters.find((name) => names.has(name));
  if (field !== undefined)
    throw new ApiError('InvalidRequest', `query parameter "${field}" selects a page, and a watch has none; remove it`, {
      field,
    });
}

/** The client may have a revision from another control plane, which this one has not seen yet. */
export async function assertInStore(store: Store, after: number): Promise<void> {
  const newest = await newestRevision(store);
  if (after <= newest) return;
  const message = `revision ${after} lies in the future; the newest is ${newest}`;
  throw new ApiError('InvalidRequest', message, { field: 'revision' });
}
