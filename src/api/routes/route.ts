// A route of the API as data: everything that the server, the client, the documentation and access checks need to know.
// It handles no request: src/server/http binds a handler to it.

import { type TSchema, Type } from 'typebox';
import type { AccessResource, Verb } from '../access.ts';
import type { ErrorCode } from '../errors.ts';

/** One of the verbs on a resource, at least somewhere: the handler asks again, about each object. */
export interface Needs {
  readonly resource: AccessResource;
  readonly verbs: readonly Verb[];
}

/**
 * The permission that a caller needs. `host`: to be the host in the path; `self`: any valid credential, for what concerns only
 * the caller; `open`: none.
 */
export type RouteAccess = Needs | 'host' | 'self' | 'open';

export function needs(resource: AccessResource, ...verbs: readonly Verb[]): Needs {
  return { resource, verbs };
}

/** The schemas of query parameters by name: optional, with a default, or required. */
export type QuerySchemas = Readonly<Record<string, TSchema>>;

/** One possible status of the response. */
export interface AnswerForm {
  readonly description: string;
  readonly json?: TSchema;
  /** One JSON value per line. */
  readonly lines?: TSchema;
  readonly bytes?: true;
  readonly text?: true;
}

export interface RouteDefinition {
  /** The operationId of OpenAPI. */
  readonly id: string;
  /** The subject under which it is listed. */
  readonly tag: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/v1/instances/:name`. The parameters are described in parameters.ts. */
  readonly path: string;
  readonly access: RouteAccess;
  readonly summary: string;
  /** Other parameters are refused. Absent: the query is ignored. */
  readonly query?: QuerySchemas;
  /** Names in `query` that are not documented, because they are accepted only to be refused with a reason. */
  readonly undocumented?: readonly string[];
  /** Further parameters, whose names match; the handler reads them itself. `documented` describes them. */
  readonly moreQuery?: { readonly names: RegExp; readonly documented: QuerySchemas };
  /** JSON of this schema; `bytes`: application/octet-stream of any length. */
  readonly body?: TSchema | 'bytes';
  readonly bodyDescription?: string;
  /** The body is optional. */
  readonly bodyOptional?: true;
  /** It comes from a program of Berth that may be newer than this one: fields of the body that are not known are ignored. */
  readonly bodyOfOtherVersions?: true;
  /** The handler validates the body part by part, instead of `bind`. */
  readonly bodyCheckedByHandler?: true;
  /** The handler reads the JSON of the body itself: it needs the bytes, for a signature. */
  readonly bodyUnparsed?: true;
  /** Maximum size of a JSON body; default: the server's. */
  readonly bodyBytesMax?: number;
  /**
   * The response is at most one resource. Of several requests that a client pipelines, this one may start before its
   * turn.
   */
  readonly answersBriefly?: true;
  /** The effect of the header Idempotency-Key; absent: none. */
  readonly idempotencyKey?: string;
  readonly answers: Readonly<Record<number, AnswerForm>>;
  /** Possible errors, in addition to those of every route. */
  readonly errors?: readonly ErrorCode[];
  /** The former path of another route: served for one version, and not documented. */
  readonly formerPath?: true;
  /**
   * How the audit log treats it. `first`: it has an effect outside the store, or shows secrets, so its line comes first. `no`: it changes
   * nothing. `applied`: it changes something when its body has `apply`. Absent: by its method.
   */
  readonly audit?: 'first' | 'no' | 'applied';
  /** Switches to another protocol: `GET` with an `Upgrade` header. */
  readonly upgrade?: true;
}

/** A route with its own types preserved. */
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

/** The usual response. */
export function json<S extends TSchema>(schema: S, description = 'done') {
  return { description, json: schema } as const;
}

/** Errors of a route that needs no token and reads a JSON body. */
export const openBodyErrors = [
  'InvalidRequest',
  'PayloadTooLarge',
  'UnsupportedMediaType',
  'TooManyRequests',
  'Unavailable',
] as const;

/** Any JSON object. */
export const anyObject = Type.Object({});
