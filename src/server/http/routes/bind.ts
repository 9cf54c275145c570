// Binds a handler to a route of the registry (src/api/routes): query and body are checked by the route's schemas before the handler sees
// them. Method, path and verb are the route's; nothing here says them a second time.

import type { Static, TObject, TSchema } from 'typebox';
import { assert } from '../../../base/assert.ts';
import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { parseKnown } from '../../../api/upgrade/parse-known.ts';
import type { PathParams, QuerySchemas, RouteDefinition } from '../../../api/routes/route.ts';
import type { Answer, Query, Route, RouteRequest } from '../route.ts';

export type QueryOf<R extends RouteDefinition> = R['query'] extends QuerySchemas
  ? Readonly<Static<TObject<R['query']>>>
  : unknown;

type BodyOf<R extends RouteDefinition> = R extends { bodyCheckedByHandler: true }
  ? unknown
  : R['body'] extends TSchema
    ? Static<R['body']>
    : unknown;

/** What a request says, checked. */
export interface Checked<R extends RouteDefinition> {
  readonly params: PathParams<R['path']>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
}

export function bind<R extends RouteDefinition>(
  definition: R,
  handle: (checked: Checked<R>, request: RouteRequest) => Promise<Answer> | Answer,
): Route {
  const { method, path, access, audit, body, bodyBytesMax, bodyUnparsed, answersBriefly } = definition;
  const bodySchema = body === 'bytes' || definition.bodyCheckedByHandler ? undefined : body;
  const read = definition.bodyOfOtherVersions ? parseKnown : parse;
  const queryOf = queryReader(definition);
  const holds = holdsOf(definition);
  return {
    method,
    path,
    access,
    ...(audit === undefined ? {} : { audit }),
    ...(bodyBytesMax === undefined ? {} : { bodyBytesMax }),
    ...(answersBriefly ? { answersBriefly } : {}),
    ...(body === 'bytes' ? { takesBytes: true } : {}),
    ...(bodyUnparsed ? { takesUnparsedJson: true } : {}),
    ...(holds === undefined ? {} : { holds }),
    handle(request) {
      const checked = {
        params: request.params,
        query: queryOf(request.query),
        body: bodySchema ? read(bodySchema, request.body) : request.body,
      };
      return handle(checked as Checked<R>, request); // the codec: params are those of the path, query and body are of their schemas
    },
  };
}

function holdsOf({ answers }: RouteDefinition): Route['holds'] {
  const forms = Object.values(answers);
  if (forms.some(({ bytes }) => bytes)) return 'streams';
  if (!forms.some(({ lines }) => lines)) return undefined;
  return forms.some(({ json }) => json) ? 'watchesIfAsked' : 'watches';
}

type Read = (query: Query) => unknown;

/** Reads what the route takes from a query. Refuses the names that it does not take. */
function queryReader({ query: schemas, moreQuery }: RouteDefinition): (query: Query) => Record<string, unknown> {
  if (schemas === undefined) return () => ({});
  const names = Object.keys(schemas);
  const readers = Object.entries(schemas).map(([name, schema]) => [name, parameterReader(name, schema)] as const);
  return (query) => {
    query.only(...names, ...(moreQuery ? [...query.names()].filter((name) => moreQuery.names.test(name)) : []));
    const values: Record<string, unknown> = {};
    for (const [name, read] of readers) {
      const value = read(query);
      if (value !== undefined) values[name] = value;
    }
    return values;
  };
}

function parameterReader(name: string, schema: TSchema): Read {
  const read = valueReader(name, schema);
  if ('default' in schema) return (query) => read(query) ?? schema['default'];
  if ('~optional' in schema) return read;
  return (query) => {
    const value = read(query);
    if (value === undefined) throw new ApiError('InvalidRequest', `${name} is missing`, { field: name });
    return value;
  };
}

function valueReader(name: string, schema: TSchema): Read {
  const { type, minimum, maximum } = { type: undefined, minimum: undefined, maximum: undefined, ...schema };
  if (type === 'boolean') return (query) => query.flag(name);
  if (type === 'integer') {
    const range = { min: Number(minimum), max: Number(maximum) };
    assert(range.min <= range.max, `the query parameter ${name} has a minimum and a maximum`);
    return (query) => query.integer(name, range);
  }
  return (query) => {
    const text = query.text(name);
    return text === undefined ? undefined : parse(schema, text, name);
  };
}
