// The description of the API, OpenAPI 3.1, generated from the registry of routes. docs/openapi.json is this document; a
// difference fails the build.

import type { TSchema } from 'typebox';
import { assert } from '../base/assert.ts';
import { errorSchema } from './error-schema.ts';
import { type ErrorCode, errorCodes } from './errors.ts';
import { Components, type Json, titleOf } from './openapi-schemas.ts';
import { pathParameters, queryParameters } from './routes/parameters.ts';
import { bodyExamples, pathExample } from './routes/examples.ts';
import { routes } from './routes/registry.ts';
import { type AnswerForm, paramsIn, type RouteDefinition } from './routes/route.ts';

/** The whole document as plain JSON; deterministic. */
export function openApiDocument(): Json {
  return new Document().write(routes);
}

/** Errors of every route that requires a token. */
const usualErrors: readonly ErrorCode[] = ['InvalidRequest', 'Unauthenticated', 'Forbidden', 'Unavailable'];

class Document {
  readonly #schemas = new Components();
  readonly #parameters: Record<string, Json> = {};
  readonly #responses: Record<string, Json> = {};
  readonly #sharedNames = new Map<unknown, string>(
    Object.entries(queryParameters).map(([name, schema]) => [schema, `query${titleOf(name)}`]),
  );

  write(all: readonly RouteDefinition[]): Json {
    const paths: Record<string, Json> = {};
    for (const route of all) {
      if (route.formerPath) continue;
      const path = route.path.replaceAll(/:([a-zA-Z]+)/g, '{$1}');
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: this.#operation(route) };
    }
    return {
      openapi: '3.1.0',
      info: {
        title: 'Berth',
        version: '1',
        description:
          'Place virtual machines and containers on a fleet of hosts, keep them running, and explain each placement. A field with a default may be omitted from a request; the response contains it.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/', description: 'the server that this document comes from' }],
      security: [{ token: [] }],
      paths,
      components: {
        schemas: this.#schemas.take(),
        parameters: sorted(this.#parameters),
        responses: sorted(this.#responses),
        securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      },
    };
  }

  #operation(route: RouteDefinition): Json {
    const { id, tag, summary, path, body, bodyOptional, bodyDescription, access, answers } = route;
    const parameters = [...paramsIn(path).map((name) => this.#pathParameter(name)), ...this.#query(route)];
    if (route.idempotencyKey !== undefined) parameters.push(this.#idempotencyKey(route.idempotencyKey));
    return {
      tags: [tag],
      operationId: id,
      summary,
      description: `\`\`\`sh\n${curlOf(route)}\n\`\`\``,
      ...(access === 'open' ? { security: [] } : {}),
      ...(parameters.length > 0 ? { parameters } : {}),
      ...(body === undefined
        ? {}
        : {
            requestBody: {
              ...(bodyOptional ? {} : { required: true }),
              ...(bodyDescription === undefined ? {} : { description: bodyDescription }),
              content:
                body === 'bytes'
                  ? { 'application/octet-stream': {} }
                  : jsonContent(this.#schemas.use(body), bodyExamples[id]),
            },
          }),
      responses: {
        ...Object.fromEntries(Object.entries(answers).map(([status, form]) => [status, this.#sharedAnswer(form)])),
        ...this.#refusals(route),
      },
    };
  }

  #pathParameter(name: string): Json {
    const schemas: Readonly<Record<string, (typeof pathParameters)[keyof typeof pathParameters]>> = pathParameters;
    const known = schemas[name];
    assert(known !== undefined, `routes/parameters.ts describes the path parameter ${name}`);
    return this.#sharedParameter(`path${titleOf(name)}`, {
      name,
      in: 'path',
      required: true,
      ...this.#described(known),
    });
  }

  #query({ query = {}, moreQuery, undocumented = [], path }: RouteDefinition): Json[] {
    return Object.entries({ ...query, ...moreQuery?.documented }).flatMap(([name, schema]) => {
      if (undocumented.includes(name)) return [];
      const required = !('~optional' in schema) && !('default' in schema);
      const written = { name, in: 'query', ...(required ? { required } : {}), ...this.#described(schema) };
      const shared = this.#sharedNames.get(schema);
      if (shared === undefined) return [written];
      const reference = this.#sharedParameter(shared, written);
      assert(this.#parameters[shared]?.['name'] === name, `${path} has a shared parameter under another name, ${name}`);
      return [reference];
    });
  }

  #described(schema: TSchema): Json {
    const { description, ...rest } = this.#schemas.use(schema);
    return { schema: rest, description };
  }

  #idempotencyKey(description: string): Json {
    const written = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string' }, description };
    return this.#sharedParameter(description.startsWith('item') ? 'itemsIdempotencyKey' : 'idempotencyKey', written);
  }

  #sharedParameter(name: string, written: Json): Json {
    this.#parameters[name] ??= written;
    return { $ref: `#/components/parameters/${name}` };
  }

  #answer({ description, json, lines, bytes, text }: AnswerForm): Json {
    const content = {
      ...(json ? jsonContent(this.#schemas.use(json)) : {}),
      ...(lines ? { 'application/x-ndjson': { schema: this.#schemas.use(lines) } } : {}),
      ...(bytes ? { 'application/octet-stream': {} } : {}),
      ...(text ? { 'text/plain': {} } : {}),
    };
    return { description, ...(Object.keys(content).length > 0 ? { content } : {}) };
  }

  /** Responses of many routes: `done`, with one named schema. */
  #sharedAnswer(form: AnswerForm): Json {
    const answer = this.#answer(form);
    const reference = form.json && !form.lines && form.description === 'done' && this.#schemas.use(form.json)['$ref'];
    if (typeof reference !== 'string') return answer;
    return this.#response(reference.slice(reference.lastIndexOf('/') + 1), answer);
  }

  /** By status; routes with the same codes at one status share the response. */
  #refusals({ errors = [], access }: RouteDefinition): Json {
    const byStatus = new Map<number, Set<ErrorCode>>();
    for (const code of errors) {
      const { status } = errorCodes[code];
      byStatus.set(status, (byStatus.get(status) ?? new Set()).add(code));
    }
    if (access !== 'open') for (const code of usualErrors) byStatus.get(errorCodes[code].status)?.add(code);
    const special = [...byStatus].map(([status, set]) => {
      const codes = [...set].sort();
      return [status, this.#refusal(codes.join('Or'), codes.join(', '))] as const;
    });
    const usual = usualErrors.map((code) => `${errorCodes[code].status} ${code}`).join(', ');
    return {
      ...Object.fromEntries(special),
      ...(access === 'open' ? {} : { default: this.#refusal('Refused', `${usual}, or another code of the list`) }),
    };
  }

  #refusal(name: string, description: string): Json {
    return this.#response(name, { description, content: jsonContent(this.#schemas.use(errorSchema)) });
  }

  #response(name: string, written: Json): Json {
    this.#responses[name] ??= written;
    return { $ref: `#/components/responses/${name}` };
  }
}

function jsonContent(schema: Json, example?: unknown): Json {
  return { 'application/json': { schema, ...(example === undefined ? {} : { example }) } };
}

/** The operation as a command. */
function curlOf({ id, method, path, body, access }: RouteDefinition): string {
  const target = path.replaceAll(/:([a-zA-Z]+)/g, (_whole, name: string) => pathExample(name, path));
  const example = body === undefined || body === 'bytes' ? undefined : JSON.stringify(bodyExamples[id]);
  const sent = [
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    ...(access === 'open' ? [] : [`-H "Authorization: Bearer $BERTH_TOKEN"`]),
    ...(body === 'bytes' ? [`-H 'Content-Type: application/octet-stream' --data-binary @FILE`] : []),
    ...(example === undefined ? [] : [`-H 'Content-Type: application/json' -d '${example}'`]),
  ];
  return ['curl', ...sent, `"$BERTH_URL${target}"`].join(' ');
}

function sorted(parts: Readonly<Record<string, Json>>): Json {
  return Object.fromEntries(Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1)));
}
