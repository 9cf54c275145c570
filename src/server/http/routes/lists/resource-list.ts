// A list of one kind of resource, by page, and what of it the caller may see.

import { ApiError } from '../../../../api/errors.ts';
import type { AnyResource, Kind, ResourceByKind } from '../../../../api/resources/index.ts';
import type { ResourceDefinition } from '../../../../api/resources/metadata.ts';
import { fits, parseWords } from '../../../../api/lists/words.ts';
import { parseSelector, type Selector, selects } from '../../../../api/selector.ts';
import type { Cache } from '../../../../core/state/cache.ts';
import { epochOf } from '../../../../core/state/cluster-state.ts';
import { kindOfKey } from '../../../../core/state/keys.ts';
import type { Entry } from '../../../../core/state/snapshot.ts';
import { type KnownKeys, seesSomePlaces, visibleKeys, visibleTo } from '../visible.ts';
import { committedByProject } from '../../../../core/state/indexes/committed-by-project.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import { rightsOf } from '../../../../core/access/rights-of.ts';
import type { Decider } from '../../../decide.ts';
import { present, withOutlook } from '../present.ts';
import { rows, type WantedResources } from './resource-rows.ts';
import type { QueryOf } from '../bind.ts';
import type { Answer, RouteRequest } from '../../route.ts';
import type { Topic } from '../../watch/watch-feed.ts';
import type { resourceRoutes as registeredRoutes } from '../../../../api/routes/resources.ts';

export type ListQuery = QueryOf<ReturnType<typeof registeredRoutes>['list']>;

export function list<K extends Kind>(
  kind: K,
  definition: ResourceDefinition,
  decider: Decider,
  query: ListQuery,
  { caller: { principal } }: RouteRequest,
): Answer {
  const { cache } = decider;
  const known = visibleKeys(principal, kind, cache, query.project);
  const { limit } = query;
  const after = continuation(query.continue);
  const wanted = filterOf(definition, query);
  if (query.offset !== undefined)
    return rows({ kind, decider, known, wanted, principal }, { ...query, offset: query.offset });
  if (query.order === 'newest')
    throw new ApiError('InvalidRequest', 'order=newest needs offset: offset=0 begins with the newest', {
      field: 'order',
    });
  const revision = cache.revision;
  const seen = visibleTo(principal, cache);
  // Neither the order nor the selection may depend on fields that the caller does not see.
  const unnamed = seesSomePlaces(principal, kind, cache);
  const place = ({ key, value }: Entry<AnyResource>): string =>
    unnamed ? `${definition.plural}/${value.metadata.id}` : key;
  const shownOf = (value: AnyResource): AnyResource => (unnamed ? seen(value, 'several') : value);
  const found: Entry<ResourceByKind[K]>[] = [];
  for (const entry of candidates(kind, definition, cache, { project: query.project, known, principal })) {
    if (after !== undefined && place(entry) <= after) continue;
    if ((known === 'all' || known(entry.key, entry.value)) && (wanted === 'all' || wanted(shownOf(entry.value))))
      found.push(entry);
  }
  found.sort((a, b) => (place(a) < place(b) ? -1 : 1));
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const shownNow = withOutlook(decider);
  return {
    status: 200,
    json: {
      items: page.map((entry) => seen(shownNow(present(entry)), 'several')),
      revision,
      epoch: epochOf(cache),
      ...(found.length > limit && last ? { continue: base64(place(last)) } : {}),
    },
  };
}

/** All resources that can be in the list, and as few others as possible without a check of each. */
function* candidates<K extends Kind>(
  kind: K,
  { scope, plural }: ResourceDefinition,
  cache: Cache,
  {
    project,
    known,
    principal,
  }: { readonly project: string | undefined; readonly known: KnownKeys; readonly principal: Principal },
): Iterable<Entry<ResourceByKind[K]>> {
  const everything = scope === 'fleet' || (project === undefined && known === 'all');
  if (everything || rightsOf(principal, cache).isShare) return yield* cache.listCommitted(kind);
  const index = committedByProject(cache);
  for (const each of project === undefined ? [...index.projects(kind)] : [project])
    if (known === 'all' || known(`${plural}/${each}/`)) yield* index.list(kind, each);
}

/** `topic`: a filter that the topic satisfies by itself needs no check of each resource. */
export function filterOf(
  definition: ResourceDefinition,
  { selector: selectorText = '', project, subject, words: wordsText = '' }: ListQuery,
  topic?: Topic,
): WantedResources {
  const words = parseWords(wordsText);
  const selector: Selector = parseSelector(selectorText);
  if (project !== undefined && definition.scope === 'fleet') {
    throw new ApiError('InvalidRequest', `${definition.plural} belong to no project`, { field: 'project' });
  }
  if (subject !== undefined && definition.kind !== 'event') {
    throw new ApiError('InvalidRequest', 'only events have a subject', { field: 'subject' });
  }
  if (project === topic?.project && subject === undefined && selector.length === 0 && words.length === 0) return 'all';
  return (resource) =>
    (project === undefined || resource.metadata.project === project) &&
    (subject === undefined ||
      (resource.kind === 'event' &&
        (resource.spec.subject.name === subject || resource.spec.subject.id === subject))) &&
    selects(selector, resource.metadata.labels) &&
    fits(resource, words);
}

/** The last key of the page before; opaque to users. */
function continuation(token: string | undefined): string | undefined {
  if (token === undefined) return undefined;
  try {
    const key = atob(token.replaceAll('-', '+').replaceAll('_', '/'));
    if (kindOfKey(key)) return key;
  } catch {
    // refused below
  }
  throw new ApiError('InvalidRequest', 'continue must be the token returned with the previous page', {
    field: 'continue',
  });
}

function base64(key: string): string {
  return btoa(key).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
