// An arrival: a request at a control plane, and its answer before the network carries it back. Routes are found, access is checked and
// errors are answered by the code of the HTTP server.

import type { Snapshot } from '../../core/state/snapshot.ts';
import { callRoute, toApiError } from '../../server/http/exchange.ts';
import { parseJsonBody } from '../../server/http/json-body.ts';
import type { Answer, Route } from '../../server/http/route.ts';
import type { Peer, SeenRequest } from './peer.ts';

/** The whole answer, or its status with a stream of pieces. */
export type Arrival =
  | { readonly status: number; readonly text: string; readonly pieces?: undefined }
  | {
      readonly status: number;
      readonly first: IteratorResult<Uint8Array>;
      readonly pieces: AsyncIterator<Uint8Array>;
    };

export interface Request {
  readonly seen: SeenRequest;
  readonly query: URLSearchParams;
  readonly headers: Record<string, string>;
  readonly peer: Peer;
}

export interface Handling {
  readonly routes: readonly Route[];
  /** Of the control plane, by which rights are decided. */
  readonly snapshot: Snapshot;
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal;
  /** The answer is 500. */
  readonly onInternal: (error: unknown) => void;
}

export async function perform(
  { seen, query, headers, peer }: Request,
  { routes, snapshot, signal, onInternal }: Handling,
): Promise<Arrival> {
  try {
    const given = await callRoute(
      {
        method: seen.method,
        path: seen.path,
        query,
        body: () => (seen.bodyBytes ? piecesOf(seen.bodyBytes) : (parseJsonBody(seen.bodyText ?? '') ?? {})),
        headers,
        principal: peer.principal,
        caller: { requestId: '', address: peer.name, face: 'http' },
        signal,
      },
      { routes, snapshot },
    );
    return await arrivalOf(given);
  } catch (error) {
    const answered = toApiError(error);
    if (answered.code === 'Internal') onInternal(answered.cause ?? answered);
    return { status: answered.status, text: JSON.stringify(answered.toBody()) };
  }
}

/** The last piece of a stream that failed. */
export function pieceOfError(error: unknown): Uint8Array {
  return encode(toApiError(error).toBody());
}

/** As in the HTTP server, the first piece decides: before it is there, the status can still say that the call failed. */
async function arrivalOf(answer: Answer): Promise<Arrival> {
  if ('json' in answer) return { status: answer.status, text: JSON.stringify(answer.json) };
  const stream = 'lines' in answer ? encodeLines(answer.lines) : answer.bytes;
  const pieces = stream[Symbol.asyncIterator]();
  return { status: answer.status, first: await pieces.next(), pieces };
}

async function* encodeLines(lines: AsyncIterable<unknown>): AsyncIterable<Uint8Array> {
  for await (const line of lines) yield encode(line);
}

const encoder = new TextEncoder();

function encode(line: unknown): Uint8Array {
  return encoder.encode(`${JSON.stringify(line)}\n`);
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
