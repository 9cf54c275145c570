// Routes of every kind of resource, built from the registry of resources: list and watch, get, create, replace, delete.

import { Type } from 'typebox';
import { type Kind, resourceDefinitions } from '../resources/index.ts';
import type { ResourceDefinition } from '../resources/metadata.ts';
import { isUsedKind } from '../plans/used-kinds.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route, type RouteDefinition } from './route.ts';

const { project, hostLimit, hostOffset } = queryParameters;

const planned = Type.Boolean({
  default: false,
  description: 'create nothing: answer with the result and an explanation of its placement',
});

const seenByPlace: ReadonlySet<Kind> = new Set<Kind>([
  'instance',
  'job',
  'task',
  'workload',
  'warmPool',
  'jobTemplate',
  'spare',
  'group',
  'volume',
  'event',
]);

/** The routes of one kind. All kinds have the same types; `verbs` says which routes a kind has. */
export function resourceRoutes(kind: Kind) {
  const definition: ResourceDefinition = resourceDefinitions[kind];
  const schemas = resourceSchemas[kind];
  const name = kind.charAt(0).toUpperCase() + kind.slice(1);
  const tag = definition.plural;
  const collection = `/v1/${definition.plural}` as const;
  const single = `${collection}/:name` as const;
  /** A fleet operator sees where they are, and no more. */
  const placement = seenByPlace.has(kind) ? (['read-placement'] as const) : [];
  const power = kind === 'instance' ? (['power'] as const) : kind === 'host' ? (['drain'] as const) : [];
  const withEffects = isUsedKind(kind);
  /** Known everywhere, documented only where they have an effect. */
  const undocumented = (...names: readonly (string | false)[]): readonly string[] =>
    [definition.scope === 'fleet' && 'project', ...names].filter((each) => each !== false);
  return {
    list: route({
      id: `list${name}s`,
      tag,
      method: 'GET',
      path: collection,
      access: needs(kind, 'read', ...placement),
      summary: `List or watch ${definition.plural}`,
      query: {
        project: queryParameters.ofProject,
        selector: queryParameters.selector,
        subject: Type.Optional(Type.String({ description: 'name or id of the subject of the events' })),
        limit: queryParameters.pageLimit,
        continue: queryParameters.continue,
        offset: queryParameters.offset,
        order: queryParameters.order,
        words: queryParameters.words,
        watch: queryParameters.watch,
        revision: queryParameters.revision,
        epoch: queryParameters.epoch,
      },
      undocumented: undocumented(kind !== 'event' && 'subject'),
      answers: {
        200: {
          description: 'a page, or with `watch` one change per line',
          json: schemas.list,
          lines: schemas.change,
        },
      },
      errors: ['Compacted'],
    }),
    get: route({
      id: `get${name}`,
      tag,
      method: 'GET',
      path: single,
      access: needs(kind, 'read', ...placement),
      summary: 'Get one',
      query: { project },
      undocumented: undocumented(),
      answers: { 200: json(schemas.resource) },
      errors: ['NotFound'],
    }),
    create: route({
      id: `create${name}`,
      tag,
      method: 'POST',
      answersBriefly: true,
      path: collection,
      access: needs(kind, 'create'),
      summary: 'Create one; it is durable when the response is sent',
      query: {
        dryRun: kind === 'instance' ? planned : queryParameters.dryRun,
        limit: hostLimit,
        continue: hostOffset,
      },
      undocumented: kind === 'instance' ? [] : ['limit', 'continue'],
      body: schemas.created,
      bodyCheckedByHandler: true, // the operation knows the type of the spec
      idempotencyKey: 'a repeated create with the same key returns the resource of the first',
      answers: { 201: json(schemas.resource), 200: json(schemas.planned) },
      errors: ['AlreadyExists', 'IdempotencyMismatch', 'StoreFull'],
    }),
    replace: route({
      id: `replace${name}`,
      tag,
      method: 'PUT',
      answersBriefly: true,
      path: single,
      access: needs(kind, 'update', ...power),
      summary: 'Replace labels and spec',
      query: { project, dryRun: queryParameters.dryRunOfChange, apply: queryParameters.applyPlan },
      undocumented: undocumented(kind !== 'workload' && 'apply'),
      body: schemas.replaced,
      bodyCheckedByHandler: true, // a resource may be sent back as it was read
      answers: { 200: json(withEffects || kind === 'workload' ? schemas.affecting : schemas.resource) },
      errors: ['NotFound', 'RevisionMismatch', 'Conflict', 'StoreFull'],
    }),
    delete: route({
      id: `delete${name}`,
      tag,
      method: 'DELETE',
      answersBriefly: true,
      path: single,
      access: needs(kind, 'delete'),
      summary: 'Delete one',
      query: {
        project,
        ifRevision: queryParameters.ifRevision,
        force: queryParameters.force,
        dryRun: queryParameters.dryRunOfDelete,
        apply: queryParameters.applyEffects,
      },
      undocumented: undocumented(kind !== 'host' && 'force', !withEffects && 'dryRun', !withEffects && 'apply'),
      answers: { 200: json(withEffects ? schemas.affecting : schemas.resource) },
      errors: ['NotFound', 'RevisionMismatch', 'Conflict'],
    }),
  } as const;
}

/** Those that a kind has. */
export function routesOfKind(kind: Kind): RouteDefinition[] {
  const { list, get, ...writes } = resourceRoutes(kind);
  return [list, get, ...resourceDefinitions[kind].verbs.map((verb) => writes[verb])];
}
