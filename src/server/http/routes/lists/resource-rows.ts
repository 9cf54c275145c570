// A part of a list by position, and how many there are in all: for pages that show a window of a list of any length.

import { ApiError } from '../../../../api/errors.ts';
import type { AnyResource, Kind, ResourceByKind } from '../../../../api/resources/index.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import { epochOf } from '../../../../core/state/cluster-state.ts';
import { committedByAge } from '../../../../core/state/indexes/committed-by-age.ts';
import type { Entry } from '../../../../core/state/snapshot.ts';
import type { Decider } from '../../../decide.ts';
import type { Answer } from '../../route.ts';
import { present, withOutlook } from '../present.ts';
import { type KnownKeys, seesSomePlaces, visibleTo } from '../visible.ts';

export type WantedResources = ((resource: AnyResource) => boolean) | 'all';

interface RowsOf<K extends Kind> {
  readonly kind: K;
  readonly decider: Decider;
  readonly known: KnownKeys;
  readonly wanted: WantedResources;
  readonly principal: Principal;
}

interface RowsQuery {
  readonly offset: number;
  readonly limit: number;
  readonly order: 'name' | 'newest';
  readonly continue?: string | undefined;
}

/** A part of the list, by position. The whole list, the newest first, is not even looked at. */
export function rows<K extends Kind>(
  { kind, decider, known, wanted, principal }: RowsOf<K>,
  { offset, limit, order, ...query }: RowsQuery,
): Answer {
  const { cache } = decider;
  if (query.continue !== undefined)
    throw new ApiError('InvalidRequest', 'offset and continue exclude each other', { field: 'offset' });
  const unnamed = seesSomePlaces(principal, kind, cache);
  const seen = visibleTo(principal, cache);
  const aged = committedByAge(cache);
  const all = known === 'all' && wanted === 'all';
  const page: Entry<ResourceByKind[K]>[] = [];
  let total = 0;
  if (all && order === 'newest') {
    total = aged.count(kind);
    for (const entry of aged.list(kind, offset)) if (page.push(entry) >= limit) break;
  } else {
    const place = ({ key, value }: Entry<AnyResource>): string => (unnamed ? value.metadata.id : key);
    const fitting: Entry<ResourceByKind[K]>[] = [];
    for (const entry of aged.list(kind))
      if (
        (known === 'all' || known(entry.key, entry.value)) &&
        (wanted === 'all' || wanted(unnamed ? seen(entry.value, 'several') : entry.value))
      )
        fitting.push(entry);
    if (order === 'name') fitting.sort((a, b) => (place(a) < place(b) ? -1 : 1));
    total = fitting.length;
    page.push(...fitting.slice(offset, offset + limit));
  }
  const shownNow = withOutlook(decider);
  const items = page.map((entry) => seen(shownNow(present(entry)), 'several'));
  return { status: 200, json: { items, revision: cache.revision, epoch: epochOf(cache), total } };
}
