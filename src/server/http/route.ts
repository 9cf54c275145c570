// A route and what passes through it. Handlers know no HTTP library: Fastify serves them, and the simulator calls them.

import { ApiError } from '../../api/errors.ts';
import { nearest } from '../../api/nearest.ts';
import type { RouteDefinition } from '../../api/routes/route.ts';
import type { Question } from '../../core/access/question.ts';
import type { Caller } from './caller.ts';
import type { Source } from './connections/sink.ts';

export interface RouteRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  /** Parsed JSON; undefined when there was no body. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly caller: Caller;
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal;
}

/** Of an answer that goes on for a while: what must stay allowed; absent: the caller's rights must stay as they are. */
interface Ongoing {
  readonly question?: Question;
}

export type Answer =
  /** `text` is the same again, as JSON text: one of the two is read. */
  | {
      readonly status: number;
      readonly json: unknown;
      readonly text?: Uint8Array | undefined;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** One JSON value a line, for as long as it goes on. `texts` tells the same, some whole lines a piece: one of the two is used. */
  | (Ongoing & { readonly status: number; readonly lines: AsyncIterable<unknown>; readonly texts?: Source<Uint8Array> })
  | (Ongoing & {
      readonly status: number;
      readonly bytes: AsyncIterable<Uint8Array>;
      readonly headers?: Readonly<Record<string, string>>;
    });

/**
 * A JSON answer whose value is made only when it is asked for; most often its text is there. A class, for V8 keeps the functions of a
 * getter in an object literal, and all that they see, until the next full collection.
 */
export class Written {
  readonly status: number;
  readonly text: Uint8Array | undefined;
  readonly #json: () => unknown;

  constructor(status: number, text: Uint8Array | undefined, json: () => unknown) {
    this.status = status;
    this.text = text;
    this.#json = json;
  }

  get json(): unknown {
    return this.#json();
  }
}

/** Of `WWW-Authenticate`: tokens are bearer tokens. */
export interface Challenge {
  /** The URL of the metadata of this resource (RFC 9728); absent: only our own tokens are taken. */
  readonly resourceMetadata?: string;
}

/** A route as it is served: bind.ts makes it of a definition and a handler. */
export interface Route {
  readonly method: RouteDefinition['method'];
  /** `/v1/instances/:name`. */
  readonly path: string;
  readonly access: RouteDefinition['access'];
  readonly audit?: RouteDefinition['audit'];
  /** How large a body it takes; default: exchange.ts. */
  readonly bodyBytesMax?: number;
  /** It takes application/octet-stream: `body` is then an async iterable of what comes, of any length. */
  readonly takesBytes?: true;
  /** As `takesBytes`, of application/json. */
  readonly takesUnparsedJson?: true;
  /** A 401 says how to get a token here. */
  readonly challenge?: Challenge;
  /** It answers with one resource, or less. Of several requests that a client pipelines it may begin before its turn. */
  readonly answersBriefly?: true;
  /** What an answer counts as for as long as it goes on; absent: it ends by itself. */
  readonly holds?: 'streams' | 'watches' | 'watchesIfAsked';
  handle(request: RouteRequest): Promise<Answer> | Answer;
}

/** Query parameters, typed where they are asked for. Unknown ones are refused. */
export class Query {
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(pairs: Iterable<readonly [string, string]>) {
    const values = new Map<string, string[]>();
    for (const [name, value] of pairs) {
      const earlier = values.get(name);
      if (earlier) earlier.push(value);
      else values.set(name, [value]);
    }
    this.#values = values;
  }

  only(...known: readonly string[]): this {
    for (const name of this.#values.keys()) {
      if (known.includes(name)) continue;
      const meant = nearest(name, known);
      const hint = meant ? `; did you mean "${meant}"?` : known.length ? `; known: ${known.join(', ')}` : '';
      throw new ApiError('InvalidRequest', `unknown query parameter "${name.slice(0, 80)}"${hint}`, {
        field: name.slice(0, 80),
      });
    }
    return this;
  }

  names(): Iterable<string> {
    return this.#values.keys();
  }

  /** Every value of a parameter that may be given several times, as they were written. */
  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** Throws `InvalidRequest` for a parameter given twice, as `integer` and `flag` do. */
  text(name: string): string | undefined {
    const [value, second] = this.#values.get(name) ?? [];
    if (second === undefined) return value;
    throw new ApiError('InvalidRequest', `query parameter "${name.slice(0, 80)}" is given twice`, {
      field: name.slice(0, 80),
    });
  }

  integer(name: string, range: { readonly min: number; readonly max: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= range.min && value <= range.max) return value;
    throw new ApiError('InvalidRequest', `${name} must be a whole number from ${range.min} to ${range.max}`, {
      field: name,
    });
  }

  flag(name: string): boolean {
    const text = this.text(name);
    if (text === undefined || text === 'false') return false;
    if (text === 'true' || text === '') return true;
    throw new ApiError('InvalidRequest', `${name} must be true or false`, { field: name });
  }
}

/** The route for a method and path, with its parameters. Throws `NotFound` or `MethodNotAllowed`. */
export function findRoute(
  routes: readonly Route[],
  method: string,
  path: string,
): { route: Route; params: Record<string, string> } {
  const given = path.split('/');
  for (const route of routes) {
    const params = matchPath(partsOf(route), given);
    if (!params) continue;
    if (route.method === method) return { route, params };
  }
  if (methodsAt(routes, path).length > 0)
    throw new ApiError('MethodNotAllowed', `${method} is not possible on ${path}`);
  throw new ApiError('NotFound', `there is nothing at ${path}`);
}

/** With which methods something is at the path. */
export function methodsAt(routes: readonly Route[], path: string): Route['method'][] {
  const given = path.split('/');
  return [...new Set(routes.filter((route) => matchPath(partsOf(route), given)).map(({ method }) => method))];
}

/** One piece of a route's path: what must stand there, or the name of the parameter that does. */
interface Part {
  readonly text: string;
  readonly named: boolean;
}

/** Taken apart once for each route: every request asks most of them. */
const partsByRoute = new WeakMap<Route, readonly Part[]>();

function partsOf(route: Route): readonly Part[] {
  let parts = partsByRoute.get(route);
  if (!parts) {
    parts = route.path
      .split('/')
      .map((part) => (part.startsWith(':') ? { text: part.slice(1), named: true } : { text: part, named: false }));
    partsByRoute.set(route, parts);
  }
  return parts;
}

function matchPath(wanted: readonly Part[], given: readonly string[]): Record<string, string> | undefined {
  if (wanted.length !== given.length) return undefined;
  let at = 0;
  for (const { text, named } of wanted) if (given[at++] !== text && !named) return undefined;
  const params: Record<string, string> = {};
  at = 0;
  for (const { text, named } of wanted) {
    const value = given[at++] ?? '';
    if (named) params[text] = decoded(value);
  }
  return params;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    throw badPath(cause);
  }
}

/** Of a path with an escape that stands for no character. */
export function badPath(cause: unknown): ApiError {
  return new ApiError('InvalidRequest', 'the path holds a "%" that begins no character; write it as %25', { cause });
}

/** An answer of bytes that are all there. */
export function bytesAnswer(status: number, bytes: Uint8Array, headers: Readonly<Record<string, string>>): Answer {
  return { status, bytes: oncePiece(bytes), headers };
}

/** A stream of one piece; of none, when it is empty. */
export async function* oncePiece(piece: Uint8Array): AsyncGenerator<Uint8Array> {
  if (piece.byteLength > 0) yield piece;
}
