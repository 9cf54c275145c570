// MCP over streamable HTTP. Where the request came from is checked before the library sees it; what it asks for goes through the routes
// of the API, as its caller.

import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';
import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';
import { createUserClient } from '../../api/client/user-client.ts';
import type { Logger } from '../../base/log.ts';
import { describeError } from '../../base/log.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { fetchAs, inProcessUrl } from '../http/in-process.ts';
import type { Answer, Route, RouteRequest } from '../http/route.ts';
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

  constructor(parts: McpHttpParts) {
    this.#parts = parts;
    this.#planHash = new PlanHash(parts.secret);
  }

  /** Throws `Forbidden` for a request from a page of another site. */
  async answer(request: RouteRequest): Promise<Answer> {
    assertOrigin(request.headers, this.#parts.hostNames);
    if (!isRecord(request.body)) throw new ApiError('InvalidRequest', 'the body must be one JSON-RPC message');
    const handler = this.#handlerFor(request);
    try {
      const response = await handler.fetch(requestOf(request), { parsedBody: request.body });
      return await answerOf(response);
    } finally {
      await handler.close();
    }
  }

  /** For one request: it knows its caller. */
  #handlerFor({ caller, signal, headers }: RouteRequest): McpHttpHandler {
    const { routes, snapshot, log, writes, version } = this.#parts;
    const fetch = fetchAs({ ...caller, face: 'mcp' }, signal, { routes, snapshot, log });
    const client = createUserClient({ fetch, url: inProcessUrl });
    const project = headers['berth-project'] ?? 'default';
    return createMcpHandler(() => createMcp({ client, project, planHash: this.#planHash, writes, version }), {
      responseMode: 'json',
      onerror: (error) => log.debug('a message of MCP was refused', { why: describeError(error) }),
    });
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
  return { status, bytes: whole(bytes), headers: { 'content-type': type } };
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}
