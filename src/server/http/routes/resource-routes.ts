// Routes of the resources, made from the registry: list, watch, get, create, replace, delete.

import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { type AnyResource, type Kind, resourceDefinitions } from '../../../api/resources/index.ts';
import type { ResourceDefinition } from '../../../api/resources/metadata.ts';
import { ReplaceMetadata } from '../../../api/routes/resource-schemas.ts';
import { placedAtOnce } from '../../../core/controllers/at-once.ts';
import type { Decision } from '../../../core/operations/decision.ts';
import type { Cache } from '../../../core/state/cache.ts';
import type { Context } from '../../../core/state/context.ts';
import type { Entry, Snapshot } from '../../../core/state/snapshot.ts';
import { assertMayReplace } from '../../../core/access/change.ts';
import { assertMay, assertMayOn, mayRead, notFound } from '../../../core/access/may.ts';
import { decideFor, permitted } from '../on-behalf.ts';
import type { Caller } from '../caller.ts';
import { visibleTo } from './visible.ts';
import { type Decider, forProject } from '../../decide.ts';
import { isResource, present, withOutlook } from './present.ts';
import { withHiddenKept } from './hidden-values.ts';
import { dryRun, dryRunOfChange, dryRunOfDelete } from './dry-run.ts';
import { JsonWriter } from '../json-writer.ts';
import { type ResourceInput, resourceOperations } from './resource-operations.ts';
import { bind } from './bind.ts';
import { byHash, dryRunOfRollout } from './workloads/rollouts.ts';
import { type Answer, type Route, Written } from '../route.ts';
import { type ResourceParts, watch } from './lists/resource-watch.ts';
import { list } from './lists/resource-list.ts';
import { find, keyFor } from './find-resource.ts';
import { createBody, idempotencyKeyOf, inputOf, sentBody, withoutReadOnly } from './sent-resource.ts';
import { resourceRoutes as registeredRoutes } from '../../../api/routes/resources.ts';

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
