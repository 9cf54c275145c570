// A route of the Placement API.

import type { Exchange, Reply } from '../exchange.ts';

export type Handler = (exchange: Exchange) => Promise<Reply> | Reply;

/** What it asks of its caller: `own` is left to the handler. */
export type Needs = 'read' | 'write' | 'own' | 'nothing';

export interface PlacementRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/traits/:name`. */
  readonly path: string;
  readonly handle: Handler;
  /** The first version that has it; default 0. */
  readonly since?: number;
  /** How an earlier version is refused; default 404. */
  readonly before?: 405;
  readonly needs?: Needs;
  /** It takes a body of `application/json`. Absent: a body is ignored. */
  readonly takes?: 'json';
  /** The last version at which it does; default: all. */
  readonly takesUntil?: number;
  /** Its media types are asked before its version, as in the original. Absent: after. */
  readonly typesFirst?: true;
  /** Of a GET: any `Accept` will do. */
  readonly acceptsAll?: true;
}
