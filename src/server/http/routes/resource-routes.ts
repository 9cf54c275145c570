// Routes of the resources, made from the registry: list, watch, get, create, replace, delete.

import { isRecord } from '../../../base/is-record.ts';
import { type TSchema, Type } from 'typebox';
import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { type AnyResource, type Kind, type ResourceByKind, resourceDefinitions } from '../../../api/resources/index.ts';
import type { ResourceDefinition } from '../../../api/resources/metadata.ts';
import { createMetadata, ReplaceMetadata } from '../../../api/routes/resource-schemas.ts';
import { resourceRoutes as registeredRoutes } from '../../../api/routes/resources.ts';
import { fits, parseWords } from '../../../api/lists/words.ts';
import { parseSelector, type Selector, selects } from '../../../api/selector.ts';
import { placedAtOnce } from '../../../core/controllers/at-once.ts';
import type { Decision } from '../../../core/operations/decision.ts';
import type { Cache } from '../../../core/state/cache.ts';
import { epochOf } from '../../../core/state/cluster-state.ts';
import type { Context } from '../../../core/state/context.ts';
import { isIndexed, keyOfId } from '../../../core/state/ids.ts';
import { kindOfKey } from '../../../core/state/keys.ts';
import type { Entry, Snapshot } from '../../../core/state/snapshot.ts';
import type { Store } from '../../../store/store.ts';
import { assertMayReplace } from '../../../core/access/change.ts';
import { assertMay, assertMayOn, mayKnow, mayRead, notFound } from '../../../core/access/may.ts';
import { decideFor, permitted } from '../on-behalf.ts';
import type { Caller } from '../caller.ts';
import { type KnownKeys, seesAll, seesSomePlaces, visibleKeys, visibleTo } from './visible.ts';
import { committedByProject } from '../../../core/state/indexes/committed-by-project.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import { type Decider, forProject } from '../../decide.ts';
import { isResource, present, withOutlook } from './present.ts';
import { withHiddenKept } from './hidden-values.ts';
import { rows, type WantedResources } from './lists/resource-rows.ts';
import { dryRun, dryRunOfChange, dryRunOfDelete } from './dry-run.ts';
import { JsonWriter } from '../json-writer.ts';
import { eventStreamHeaders, eventStreamOf, lastEventId, wantsEventStream } from '../event-stream/event-stream.ts';
import { newestRevision } from '../newest-revision.ts';
import { type ResourceInput, resourceOperations } from './resource-operations.ts';
import { bind, type QueryOf } from './bind.ts';
import { byHash, dryRunOfRollout } from './workloads/rollouts.ts';
import { type Answer, type Query, type Route, type RouteRequest, Written } from '../route.ts';
import type { Topic, WatchFeed } from '../watch/watch-feed.ts';
import { watchLines, watchTexts } from '../watch/watch-lines.ts';

export interface ResourceParts {
  readonly decider: Decider;
  readonly store: Store;
  readonly feed: WatchFeed;
}

const defaultProject = 'default';
type ListQuery = QueryOf<ReturnType<typeof registeredRoutes>['list']>;

export function resourceRoutes(parts: ResourceParts): Route[] {
  return Object.values(resourceDefinitions).flatMap((definition) => routesOf(definition.kind, definition, parts));
}

function routesOf<K extends Kind>(kind: K, definition: ResourceDefinition, parts: ResourceParts): Route[] {
  const { cache } = parts.decider;
  const routes = registeredRoutes(kind);
  const writes = { create, replace, delete: remove };
  return [
    bind(routes.list, ({ query }, request) =>
      query.watch
        ? watch(kind, definition, parts, query, request)
        : list(kind, definition, parts.decider, query, request),
    ),
    bind(routes.get, ({ params, query }, { caller }) => {
      const entry = find(kind, definition, cache, { caller, name: params.name, project: query.project });
      const seen = visibleTo(caller.principal, cache);
      return { status: 200, json: seen(withOutlook(parts.decider)(present(entry)), 'one') };
    }),
    ...definition.verbs.map((verb) => writes[verb](kind, definition, parts.decider)),
  ];
}

function create(kind: Kind, definition: ResourceDefinition, decider: Decider): Route {
  const bodySchema = createBody(definition);
  const operations = resourceOperations[kind];
  return bind(registeredRoutes(kind).create, async ({ query, body }, request) => {
    const input = { ...inputOf(parse(bodySchema, body), definition), ...idempotencyKeyOf(request) };
    const { principal } = request.caller;
    const assertAllowed = (snapshot: Snapshot): void => {
      if (definition.scope === 'project')
        assertMay(snapshot, principal, { verb: 'create', resource: kind, project: input.project });
    };
    assertAllowed(decider.cache); // before the request waits in the line of that project
    const create = permitted(principal, (snapshot, ctx) => {
      assertAllowed(snapshot);
      return operations.create(snapshot, input, ctx);
    });
    if (query.dryRun)
      return dryRun(kind, decider, { ...query, caller: request.caller }, (ctx) => create(decider.cache, ctx, 0));
    const done = await decideFor(forProject(input.project, decider), request, placing(create));
    return answer(kind, done.decision.changed ? 201 : 200, { ...done, caller: request.caller }, decider);
  });
}

function replace(kind: Kind, definition: ResourceDefinition, decider: Decider): Route {
  const bodySchema = sentBody(ReplaceMetadata);
  const operations = resourceOperations[kind];
  return bind(registeredRoutes(kind).replace, async ({ params: { name }, query, body }, request) => {
    const { principal } = request.caller;
    const { project, apply } = query;
    if (apply !== undefined && kind !== 'workload')
      throw new ApiError('InvalidRequest', 'apply: only changes of workloads are applied by a hash', {
        field: 'apply',
      });
    const key = keyFor(definition, name, project);
    const before = decider.cache.get(kind, key)?.value;
    if (!before || !mayRead(principal, before, decider.cache)) throw notFound(kind, name);
    assertMayReplace(decider.cache, principal, before);
    const { metadata, spec } = parse(bodySchema, withoutReadOnly(body, before));
    const { revision: ifRevision } = metadata;
    const named = { ...metadata, name, ...(definition.scope === 'fleet' ? {} : { project }) };
    const input: ResourceInput = {
      ...inputOf({ metadata: named, spec }, definition),
      ...(ifRevision === undefined ? {} : { ifRevision }),
    };
    const replace = permitted(principal, (snapshot, ctx) => {
      const now = snapshot.get(kind, key)?.value;
      return operations.replace(snapshot, { ...input, spec: withHiddenKept(input.spec, now) }, ctx);
    });
    if (query.dryRun)
      return kind === 'workload'
        ? dryRunOfRollout('update', decider, request.caller, replace)
        : dryRunOfChange(kind, decider, request.caller, replace);
    const done = await decideFor(forProject(input.project, decider), request, byHash('update', apply, replace));
    return answer(kind, 200, { ...done, caller: request.caller }, decider);
  });
}

function remove(kind: Kind, definition: ResourceDefinition, decider: Decider): Route {
  const operations = resourceOperations[kind];
  return bind(registeredRoutes(kind).delete, async ({ params, query }, request) => {
    const { project, ifRevision, force, dryRun: isDryRun, apply } = query;
    const { caller } = request;
    const before = find(kind, definition, decider.cache, { caller, name: params.name, project });
    assertMayOn(decider.cache, caller.principal, 'delete', before.value);
    if (isDryRun) return dryRunOfDelete(decider, caller, present(before));
    const input = {
      project: before.value.metadata.project,
      name: before.value.metadata.name,
      force,
      ...(apply === undefined ? {} : { apply }),
      ...(ifRevision === undefined ? {} : { ifRevision }),
    };
    const done = await decideFor(
      forProject(input.project, decider),
      request,
      permitted(caller.principal, (snapshot, ctx) => {
        // The name may belong to a new resource by now, which the caller did not mean.
        const now = snapshot.get(kind, before.key)?.value.metadata.id;
        if (now !== undefined && now !== before.value.metadata.id)
          throw new ApiError('NotFound', `${kind} "${params.name}" has been deleted, and another has its name`);
        return operations.delete(snapshot, input, ctx);
      }),
    );
    return answer(kind, 200, { ...done, caller }, decider, before);
  });
}

/** Places a new instance at once when no other waits before it. After a conflict it is only created, and waits for its turn. */
export function placing(create: (snapshot: Snapshot, ctx: Context, attempt: number) => Decision) {
  return (snapshot: Snapshot, ctx: Context, attempt: number): Decision => {
    const created = create(snapshot, ctx, attempt);
    return attempt === 0 ? placedAtOnce(snapshot, created, ctx) : created;
  };
}

// Bodies.

/** The body of a create. */
export function createBody(definition: ResourceDefinition) {
  return sentBody(createMetadata(definition));
}

/** The spec is checked by the operation, which knows its type. */
function sentBody<M extends TSchema>(metadata: M) {
  return Type.Object({ metadata, spec: Type.Unknown({ default: {} }) }, { additionalProperties: false });
}

interface SentBody {
  readonly metadata: {
    readonly name?: unknown;
    readonly project?: unknown;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly spec: unknown;
}

export function inputOf(sent: SentBody, definition: ResourceDefinition): ResourceInput {
  const { name, project, labels } = sent.metadata;
  return {
    name: typeof name === 'string' ? name : '',
    project: definition.scope === 'fleet' ? '' : typeof project === 'string' ? project : defaultProject,
    labels,
    spec: sent.spec,
  };
}

/** A resource may be sent back as it was read: fields that users cannot write are dropped when they are unchanged, and refused otherwise. */
function withoutReadOnly(sent: unknown, current: AnyResource | undefined): unknown {
  if (!isRecord(sent)) return sent;
  const { kind, schemaVersion: _version, status: _status, ...rest } = sent;
  if (kind !== undefined && current && kind !== current.kind) {
    throw new ApiError('InvalidRequest', `this is another kind of resource, not a ${current.kind}`, {
      field: 'kind',
    });
  }
  if (!isRecord(rest['metadata'])) return rest;
  const metadata = { ...rest['metadata'] };
  for (const field of [
    'id',
    'name',
    'project',
    'generation',
    'createdAtMs',
    'deletionRequestedAtMs',
    'traceParent',
  ] as const) {
    if (!(field in metadata)) continue;
    if (current && field !== 'generation' && metadata[field] !== current.metadata[field]) {
      throw new ApiError('InvalidRequest', `metadata.${field} cannot be changed`, { field: `metadata.${field}` });
    }
    delete metadata[field];
  }
  return { ...rest, metadata };
}

export function idempotencyKeyOf({ headers }: RouteRequest): { idempotencyKey?: string } {
  const key = headers['idempotency-key'];
  if (key === undefined) return {};
  if (/^[A-Za-z0-9._:-]{1,128}$/.test(key)) return { idempotencyKey: key };
  throw new ApiError('InvalidRequest', 'the Idempotency-Key must be 1 to 128 letters, digits and . _ : -', {
    field: 'Idempotency-Key',
  });
}

// Finding and showing.

function keyFor(definition: ResourceDefinition, name: string, project: string): string {
  return `${definition.plural}/${definition.scope === 'fleet' ? '' : `${project}/`}${name}`;
}

interface Wanted {
  readonly caller: Pick<Caller, 'principal'>;
  readonly name: string;
  readonly project: string;
}

/** By name, or by id. Throws `NotFound`, also when the caller may not know of it. */
function find<K extends Kind>(
  kind: K,
  definition: ResourceDefinition,
  cache: Cache,
  { caller, name, project }: Wanted,
): Entry<ResourceByKind[K]> {
  const byName = cache.committed(kind, keyFor(definition, name, project));
  if (byName && mayRead(caller.principal, byName.value, cache)) return byName;
  const byId = findById(kind, definition, cache, name);
  if (byId && mayKnow(caller.principal, byId.value, cache)) return byId;
  throw notFound(kind, name, definition.scope === 'project' && project !== defaultProject ? project : '');
}

function findById<K extends Kind>(
  kind: K,
  definition: ResourceDefinition,
  cache: Cache,
  id: string,
): Entry<ResourceByKind[K]> | undefined {
  if (!id.startsWith(`${definition.idPrefix}_`)) return undefined;
  const isInstance = kind === 'instance';
  if (isInstance || isIndexed(kind)) {
    const key = isInstance ? cache.instanceById(id)?.key : keyOfId(cache, kind, id);
    const entry = key === undefined ? undefined : cache.committed(kind, key);
    return entry?.value.metadata.id === id ? entry : undefined;
  }
  for (const entry of cache.listCommitted(kind)) if (entry.value.metadata.id === id) return entry;
  return undefined;
}

/** Finds a resource of a project for the routes of its own. Throws `NotFound`, also when the caller may not know of it. */
export function findOne<
  K extends 'instance' | 'job' | 'task' | 'workload' | 'warmPool' | 'jobTemplate' | 'spare' | 'webhook',
>(
  kind: K,
  cache: Cache,
  { caller, name, project = defaultProject }: Omit<Wanted, 'project'> & { readonly project?: string | undefined },
): Entry<ResourceByKind[K]> {
  return find(kind, resourceDefinitions[kind], cache, { caller, name, project });
}

interface Done {
  readonly decision: {
    readonly key: string;
    readonly plan: { readonly changes: readonly { readonly key: string; readonly value: unknown }[] };
  };
  readonly revision: number;
}

interface DoneFor extends Done {
  readonly caller: Caller;
}

function answer(
  kind: Kind,
  status: number,
  done: DoneFor,
  { cache, committer }: Decider,
  before?: Entry<AnyResource>,
): Answer {
  const entry = shown(kind, done, cache, before);
  const seen = visibleTo(done.caller.principal, cache)(entry.value, 'one');
  const stored = seen === entry.value ? committer.writtenNow(entry.value) : undefined;
  if (!stored) return { status, json: present({ ...entry, value: seen }) };
  const text = new JsonWriter(stored.byteLength + revisionDigitsMax);
  return new Written(status, text.resource(stored, entry.revision) ? text.take() : undefined, () => present(entry));
}

const revisionDigitsMax = 16;

/** The resource of an operation, as it is durable now. */
export function shown(kind: Kind, done: Done, cache: Cache, before?: Entry<AnyResource>): Entry<AnyResource> {
  const { decision, revision } = done;
  const change = decision.plan.changes.find((each) => each.key === decision.key)?.value;
  const written = isResource(change) ? { key: decision.key, value: change, revision } : before;
  // Others may have changed it in the same commit: what is shown at a revision is what a read shows at it.
  const committed = cache.committed(kind, decision.key);
  const same = committed && (!written || committed.value.metadata.id === written.value.metadata.id);
  const entry = same ? committed : written;
  if (!entry) throw new ApiError('NotFound', 'it has been deleted since');
  return entry;
}

// Lists and watches.

function list<K extends Kind>(
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
function filterOf(
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

async function watch(
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
