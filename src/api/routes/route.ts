// A route of the API as data: all that the server, the client, the documentation and access checks need to know of it. It serves nothing
// itself: src/server/http binds a handler to it.

import { type TSchema, Type } from 'typebox';
import type { ErrorCode } from '../errors.ts';

/** What a caller must be allowed to do; `agent`: be the host that the path names; `open`: nothing. */
export type RouteVerb = 'read' | 'write' | 'agent' | 'open';

/** The schemas of query parameters by name. Optional, or with a default, or required. */
export type QuerySchemas = Readonly<Record<string, TSchema>>;

/** One status that a request can end with. */
export interface AnswerForm {
  readonly description: string;
  readonly json?: TSchema;
  /** One JSON value a line. */
  readonly lines?: TSchema;
  readonly bytes?: true;
  readonly text?: true;
}

export interface RouteDefinition {
  /** The operationId of OpenAPI. */
  readonly id: string;
  /** The subject it is listed under. */
  readonly tag: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/v1/instances/:name`. The parameters are described in parameters.ts. */
  readonly path: string;
  readonly verb: RouteVerb;
  readonly summary: string;
  /** Parameters that are not listed are refused. Absent: the query is not looked at. */
  readonly query?: QuerySchemas;
  /** Names in `query` that are not documented, because they are known only to be refused with a reason. */
  readonly undocumented?: readonly string[];
  /** Parameters with names of this form are taken as well, and the handler reads them itself. Documented is what stands for all. */
  readonly moreQuery?: { readonly names: RegExp; readonly documented: QuerySchemas };
  /** JSON of this schema; `bytes`: application/octet-stream of any length. */
  readonly body?: TSchema | 'bytes';
  readonly bodyDescription?: string;
  /** The body may be left out. */
  readonly bodyOptional?: true;
  /** The handler checks the body part by part, in place of `bind`. */
  readonly bodyCheckedByHandler?: true;
  /** How large a JSON body may be; default: the server's. */
  readonly bodyBytesMax?: number;
  /** It answers with one resource, or less. Of several requests that a client pipelines it may begin before its turn. */
  readonly answersBriefly?: true;
  /** What the header Idempotency-Key does; absent: nothing. */
  readonly idempotencyKey?: string;
  readonly answers: Readonly<Record<number, AnswerForm>>;
  /** What it can be refused with, besides what every route can be. */
  readonly errors?: readonly ErrorCode[];
  /** It ends in another protocol: `GET` with an `Upgrade` header. */
  readonly upgrade?: true;
}

/** A route with its own types kept. */
export function route<const R extends RouteDefinition>(definition: R): R {
  return definition;
}

/** `/v1/hosts/:host/images/:hex` → `{ host, hex }`. */
export type PathParams<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Readonly<Record<Name, string>> & PathParams<Rest>
  : P extends `${string}:${infer Name}`
    ? Readonly<Record<Name, string>>
    : unknown;

/** The names in a path, in order. */
export function paramsIn(path: string): string[] {
  return path.split('/').flatMap((part) => (part.startsWith(':') ? [part.slice(1)] : []));
}

/** The usual answer. */
export function json<S extends TSchema>(schema: S, description = 'done') {
  return { description, json: schema } as const;
}

/** Any JSON object. */
export const anyObject = Type.Object({});
