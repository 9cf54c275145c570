// MCP over streamable HTTP. Where the request came from is checked before the library sees it; what it asks for goes through the routes
// of the API, as its caller.

import { type AuthInfo, createMcpHandler, type McpHttpHandler, type McpServer } from '@modelcontextprotocol/server';
import { ApiError } from '../../api/errors.ts';
import { assert } from '../../base/assert.ts';
import { isRecord } from '../../base/is-record.ts';
import { createUserClient } from '../../api/client/user-client.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { fetchAs, inProcessUrl } from '../http/in-process.ts';
import { type Answer, bytesAnswer, type Route, type RouteRequest } from '../http/route.ts';
import { createMcp } from './mcp-server.ts';
import { assertOrigin } from './origin.ts';
import { PlanHash } from './plan-hash.ts';

export interface McpHttpParts {
  /** Those of the API. */
  readonly routes: readonly Route[];
  readonly snapshot: Snapshot;
  readonly log: Logger;
  readonly version: string;
  readonly writes: boolean;
  /** Host names of this server, besides addresses and "localhost". */
  readonly hostNames: readonly string[];
  /** The same on all servers of the fleet: the next request may reach another. */
  readonly secret: string;
}

export class McpHttp {
  readonly #parts: McpHttpParts;
  readonly #planHash: PlanHash;
  readonly #handler: McpHttpHandler;
  /** Whose message is answered: the library hands on what it is given of its sender. */
  readonly #requests = new WeakMap<AuthInfo, RouteRequest>();

  constructor(parts: McpHttpParts) {
    this.#parts = parts;
    this.#planHash = new PlanHash(parts.secret);
    this.#handler = createMcpHandler(({ authInfo }) => this.#serverFor(authInfo), {
      // Nothing of what is served changes, so that nothing can be subscribed to.
      maxSubscriptions: 0,
      onerror: (error) => parts.log.debug('a message of MCP was refused', { why: describeError(error) }),
    });
  }

  /** Throws `Forbidden` for a request from a page of another site. */
  async answer(request: RouteRequest): Promise<Answer> {
    assertOrigin(request.headers, this.#parts.hostNames);
    if (!isRecord(request.body)) throw new ApiError('InvalidRequest', 'the body must be one JSON-RPC message');
    const authInfo: AuthInfo = { token: '', clientId: '', scopes: [] };
    this.#requests.set(authInfo, request);
    return answerOf(await this.#handler.fetch(requestOf(request), { parsedBody: request.body, authInfo }));
  }

  /** It calls the API as the sender of the message. */
  #serverFor(authInfo: AuthInfo | undefined): McpServer {
    const request = authInfo && this.#requests.get(authInfo);
    assert(request !== undefined, 'a message comes with its sender');
    const { caller, signal, headers } = request;
    const { routes, snapshot, log, writes, version } = this.#parts;
    const fetch = fetchAs({ ...caller, face: 'mcp' }, signal, { routes, snapshot, log });
    const client = createUserClient({ fetch, url: inProcessUrl });
    const project = headers['berth-project'] ?? 'default';
    return createMcp({ client, project, planHash: this.#planHash, writes, version });
  }
}

/** Headers of the protocol and of content; credentials stay out. */
const passed = /^(accept|content-type|mcp-.*)$/;

function requestOf({ headers, body, signal }: RouteRequest): Request {
  const kept = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    value !== undefined && passed.test(name) ? [[name, value]] : [],
  );
  return new Request(`${inProcessUrl}/mcp`, { method: 'POST', headers: kept, body: JSON.stringify(body), signal });
}

async function answerOf(response: Response): Promise<Answer> {
  const { status } = response;
  const bytes = Buffer.from(await response.arrayBuffer());
  const type = response.headers.get('content-type') ?? 'application/json';
  if (type.startsWith('application/json') && bytes.byteLength > 0)
    return { status, json: JSON.parse(bytes.toString()), text: bytes };
  return bytesAnswer(status, bytes, { 'content-type': type });
}
