// Calls the routes of this server without a connection, on behalf of a caller: for protocols that translate to the API. Access is checked as
// for any request, and the audit log names the protocol.

import type { FetchInit, FetchLike, FetchResponse } from '../../api/client/user-client.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Caller } from './caller.ts';
import { callRoute, toApiError } from './exchange.ts';
import { parseJsonBody } from './json-body.ts';
import { type Answer, oncePiece, type Route } from './route.ts';

interface InProcessParts {
  readonly routes: readonly Route[];
  /** The state by which rights are decided. */
  readonly snapshot: Snapshot;
  readonly log: Logger;
}

/** The origin in URLs of such calls. */
export const inProcessUrl = 'http://in-process';

/** `signal`: aborts when the caller is gone. */
export function fetchAs(caller: Caller, signal: AbortSignal, { routes, snapshot, log }: InProcessParts): FetchLike {
  return async (url, init) => {
    try {
      const { pathname, searchParams } = new URL(url);
      const { method, headers } = init;
      const answer = await callRoute(
        {
          ...{ method, path: pathname, query: searchParams, headers },
          body: () => bodyOf(init),
          principal: caller.principal,
          caller,
          signal: init.signal ?? signal,
        },
        { routes, snapshot },
      );
      return responseOf(answer);
    } catch (error) {
      const refusal = toApiError(error);
      if (refusal.code === 'Internal') log.error('a request failed', { url, why: describeError(error) });
      return responseOf({ status: refusal.status, json: refusal.toBody() });
    }
  };
}

function bodyOf({ body }: FetchInit): unknown {
  return typeof body === 'string' ? parseJsonBody(body) : {};
}

function responseOf(answer: Answer): FetchResponse {
  const pieces = 'json' in answer ? oncePiece(Buffer.from(JSON.stringify(answer.json))) : piecesOf(answer);
  return {
    status: answer.status,
    headers: { get: () => null },
    body: pieces,
    async text() {
      const all: Uint8Array[] = [];
      for await (const piece of pieces) all.push(piece);
      return Buffer.concat(all).toString();
    },
  };
}

async function* piecesOf(answer: Exclude<Answer, { readonly json: unknown }>): AsyncGenerator<Uint8Array> {
  if ('bytes' in answer) yield* answer.bytes;
  else for await (const line of answer.lines) yield Buffer.from(`${JSON.stringify(line)}\n`);
}
