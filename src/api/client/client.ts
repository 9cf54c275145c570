// The typed client of the API including the agent's part, for agent and simulator; user programs use user-client.ts.

import type { TSchema } from 'typebox';
import type {
  Heartbeat,
  HeartbeatAnswer,
  MoveManifest,
  Registration,
  ReportResults,
  Reports,
  Session,
} from '../agent-protocol.ts';
import {
  AssignmentEvent,
  HeartbeatAnswer as HeartbeatAnswerSchema,
  MoveManifest as MoveManifestSchema,
  ReportResults as ReportResultsSchema,
  Session as SessionSchema,
} from '../agent-protocol.ts';
import { ApiError } from '../errors.ts';
import { matches } from '../parse.ts';
import { withoutUnknown } from '../upgrade/parse-known.ts';
import { runRoutes } from '../routes/jobs.ts';
import { type ClientOptions, createUserClient, linesOf, parseLine, pathOf } from './user-client.ts';

export type * from './user-client.ts';

export type Client = ReturnType<typeof createClient>;

export function createClient(options: ClientOptions) {
  const client = createUserClient(options);
  return {
    ...client,

    /** Calls for hosts' agents only. */
    agent: (host: string) => {
      const base = pathOf('host', host);
      return {
        register: async (registration: Registration, signal?: AbortSignal): Promise<Session> =>
          known(
            SessionSchema,
            await client.json(`${base}/session`, { method: 'PUT', body: registration, ...(signal ? { signal } : {}) }),
          ),
        heartbeat: async (heartbeat: Heartbeat, signal?: AbortSignal): Promise<HeartbeatAnswer> => {
          const extra = { repeatable: true, ...(signal ? { signal } : {}) };
          return known(
            HeartbeatAnswerSchema,
            await client.json(`${base}/heartbeat`, { method: 'POST', body: heartbeat, ...extra }),
          );
        },
        /** Sequence numbers make a report that is sent twice stale. */
        report: async (reports: Reports, signal?: AbortSignal): Promise<ReportResults> => {
          const extra = { repeatable: true, ...(signal ? { signal } : {}) };
          return known(
            ReportResultsSchema,
            await client.json(`${base}/reports`, { method: 'POST', body: reports, ...extra }),
          );
        },
        /** Bytes of a run, for the server to keep. Resolves to what it has then; a gap is a `Conflict` with `details.size`. */
        sendRunPart: async (
          { instanceId, part, bytes, ...query }: RunPiece & { readonly epoch: number },
          signal?: AbortSignal,
        ): Promise<number> => {
          const call = { method: 'PUT', query, bytes, ...(signal ? { signal } : {}) } as const;
          return checked(RunSize, await client.json(`${base}/runs/${instanceId}/${part}`, call)).size;
        },
        /** What a guest that moves to this host consists of. */
        moveManifest: async ({ instanceId, ...query }: MoveQuery, signal: AbortSignal): Promise<MoveManifest> =>
          checked(MoveManifestSchema, await client.json(`${base}/moves/${instanceId}`, { query, signal })),
        /** A piece of one of its files, after its SHA-256. */
        readMove: async (
          { instanceId, name, ...query }: MoveQuery & { name: string; offset: number; length: number },
          signal: AbortSignal,
        ): Promise<Uint8Array> => {
          const response = await client.request(`${base}/moves/${instanceId}/${name}`, { query, signal });
          const pieces: Uint8Array[] = [];
          for await (const bytes of response.body ?? []) pieces.push(bytes);
          return joined(pieces);
        },
        async *assignments(epoch: number, signal: AbortSignal): AsyncIterable<AssignmentEvent> {
          const response = await client.request(`${base}/assignments`, { query: { epoch }, signal });
          for await (const line of linesOf(response)) yield checked(AssignmentEvent, parseLine(line));
        },
      };
    },
  };
}

/** Which move of which instance; `epoch` of the session of the host that it moves to. */
export interface MoveQuery {
  readonly instanceId: string;
  readonly id: string;
  readonly epoch: number;
}

/** A piece of the log or the artifacts of a run. */
export interface RunPiece {
  readonly instanceId: string;
  readonly incarnation: number;
  readonly part: 'log' | 'artifacts';
  /** Where `bytes` begin. */
  readonly offset: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

const RunSize = runRoutes.put.answers[200].json;

/** The answer of a server that may be newer. */
function known<S extends TSchema>(schema: S, value: unknown) {
  return checked(schema, matches(schema, value) ? value : withoutUnknown(schema, value));
}

function checked<S extends TSchema>(schema: S, value: unknown) {
  if (!matches(schema, value))
    throw new ApiError('Internal', 'the server answered with something unexpected; are both of one version?');
  return value;
}
