// Commands in guests that outlive the connection they were begun on: a client that comes back goes on at the byte where it was, both
// ways. Nothing is lost and nothing is kept without bound: while nobody reads, the command waits.
//
//   begun ─► attached ◄─► detached ─(kept 10 minutes)─► killed
//               └─► ended ─(told to a client, or 10 minutes)─► forgotten

import { execReplayBytes, execStreams } from '../../api/access-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { GuestCommand } from '../drivers/access.ts';
import { type Conversation, controlOf } from './conversation.ts';

export interface ExecSessions {
  begin(instanceId: string, run: () => Promise<GuestCommand>): Promise<ExecSession>;
  /** Throws `NotFound`. */
  find(instanceId: string, id: string): ExecSession;
  close(): void;
}

export interface ExecSession {
  readonly id: string;
  /** Serves a client until it leaves, another takes its place, or the command has ended and the client knows. */
  attach(conversation: Conversation, receivedBytes: number): Promise<void>;
}

export interface ExecSessionsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** For the names of sessions: who knows one may take it over. */
  readonly randomSecret: (bytes: number) => Uint8Array;
  readonly keptMs?: number;
  readonly sessionsMax?: number;
  readonly replayBytes?: number;
}

const keptMsDefault = 10 * 60 * 1000;
const sessionsMaxDefault = 256;
/** A message of the line; small enough for a terminal to stay lively behind a flood. */
const pieceBytesMax = 64 * 1024;

export function createExecSessions(options: ExecSessionsOptions): ExecSessions {
  const sessions = new Map<string, { readonly instanceId: string; readonly session: ExecSession; end(): void }>();
  const sessionsMax = options.sessionsMax ?? sessionsMaxDefault;
  return {
    async begin(instanceId, run) {
      if (sessions.size >= sessionsMax) {
        throw new ApiError(
          'TooManyRequests',
          `this host looks after ${sessions.size} commands already, as many as it may; end some, or wait`,
        );
      }
      const id = Buffer.from(options.randomSecret(16)).toString('base64url');
      const place = { instanceId, end: () => {} };
      sessions.set(id, { ...place, session: unborn(id) }); // counted while it begins
      try {
        const command = await run();
        const { session, end } = createSession(id, command, { ...options, forget: () => sessions.delete(id) });
        sessions.set(id, { instanceId, session, end });
        return session;
      } catch (error) {
        sessions.delete(id);
        throw error;
      }
    },
    find(instanceId, id) {
      const known = sessions.get(id);
      if (known?.instanceId === instanceId) return known.session;
      throw new ApiError('NotFound', 'this command is not known any more: it ended, or its host was restarted');
    },
    close() {
      for (const { end } of sessions.values()) end();
      sessions.clear();
    },
  };
}

const unborn = (id: string): ExecSession => ({
  id,
  attach: () => Promise.reject(new ApiError('NotFound', 'this command has not begun yet')),
});

interface Piece {
  readonly fromByte: number;
  /** With the byte that says which stream it is of. */
  readonly message: Uint8Array;
}

type Outcome =
  | { readonly type: 'exit'; readonly code: number; readonly signal?: number }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

function createSession(
  id: string,
  command: GuestCommand,
  {
    clock,
    log,
    forget,
    keptMs = keptMsDefault,
    replayBytes = execReplayBytes,
  }: ExecSessionsOptions & { forget(): void },
): { session: ExecSession; end(): void } {
  const pieces: Piece[] = [];
  let droppedPieces = 0; // of the front: a client is at a piece by its number, for the front may go while it waits
  let writtenBytes = 0; // of output so far
  let sentBytes = 0; // of it, what a client was sent at least once
  let inputBytes = 0;
  let outcome: Outcome | undefined;
  let attached: { readonly leave: AbortController } | undefined;
  let idle = new AbortController();
  let changed = Promise.withResolvers<void>();
  const wakeSenders = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  let wakePump = (): void => {};

  /** What was sent long ago has arrived: what is on its way is far less than the replay. */
  const trim = (): void => {
    while (pieces[0] !== undefined && pieces[0].fromByte + pieces[0].message.length - 1 <= sentBytes - replayBytes) {
      pieces.shift();
      droppedPieces += 1;
    }
  };
  const pump = async (): Promise<void> => {
    for await (const { stream, data } of command.output()) {
      for (let at = 0; at < data.length; at += pieceBytesMax) {
        const part = data.subarray(at, at + pieceBytesMax);
        const message = new Uint8Array(1 + part.length);
        message[0] = execStreams[stream];
        message.set(part, 1);
        pieces.push({ fromByte: writtenBytes, message });
        writtenBytes += part.length;
      }
      trim();
      wakeSenders();
      while (writtenBytes - sentBytes >= replayBytes && !ended.signal.aborted)
        await new Promise<void>((resolve) => {
          wakePump = resolve;
        });
    }
  };
  const ended = new AbortController();
  const kill = (): void => {
    ended.abort();
    wakePump();
    command.kill();
    attached?.leave.abort();
    forget();
  };
  const keepFor = async (): Promise<void> => {
    idle = new AbortController();
    const waiting = idle.signal;
    await sleep(clock, keptMs, waiting);
    if (!waiting.aborted) kill();
  };

  pump()
    .then(() => command.exit)
    .then(
      (exit): Outcome => ({ type: 'exit', ...exit }),
      (error: unknown): Outcome => ({
        type: 'error',
        code: 'Internal',
        message: `nobody knows how the command ended: ${describeError(error)}`,
      }),
    )
    .then((result) => {
      outcome = result;
      wakeSenders();
    })
    .catch((error: unknown) => log.error('a command was lost', { error: describeError(error) }));

  /** True: the client knows how the command ended. */
  const sendTo = async (conversation: Conversation, fromByte: number, leave: AbortSignal): Promise<boolean> => {
    let next = fromByte;
    let number = droppedPieces;
    while (!leave.aborted) {
      const awake = changed.promise;
      const piece = pieces[number - droppedPieces];
      if (piece !== undefined) {
        number += 1;
        const end = piece.fromByte + piece.message.length - 1;
        if (end <= next) continue;
        await conversation.send(restOf(piece, next));
        next = end;
        if (leave.aborted) return false;
        sentBytes = Math.max(sentBytes, end);
        wakePump();
        continue;
      }
      if (outcome !== undefined) {
        await conversation.tell(outcome);
        conversation.end();
        return true;
      }
      await awake;
    }
    return false;
  };
  const hear = async (conversation: Conversation, leave: AbortSignal): Promise<void> => {
    for await (const message of conversation.messages()) {
      if (leave.aborted) return;
      if (typeof message !== 'string') {
        if (message[0] !== execStreams.stdin) continue;
        inputBytes += message.length - 1;
        await command.write(message.subarray(1));
        continue;
      }
      const control = controlOf(message);
      if (control.type === 'end') command.endInput();
      else if (control.type === 'resize') await command.resize(control);
      else return kill();
    }
  };

  void keepFor();
  const session: ExecSession = {
    id,
    async attach(conversation, receivedBytes) {
      trim(); // what may go goes now, not while this client is on its way to it
      const firstByte = pieces[0]?.fromByte ?? writtenBytes;
      if (receivedBytes < firstByte || receivedBytes > writtenBytes) {
        throw new ApiError(
          'Compacted',
          `cannot go on at byte ${receivedBytes} of what the command wrote: bytes ${firstByte} to ${writtenBytes} are here`,
        );
      }
      attached?.leave.abort(); // the newest client has it: the older one is most likely dead
      idle.abort();
      const me = { leave: new AbortController() };
      attached = me;
      const leave = (): void => {
        me.leave.abort();
        wakeSenders();
      };
      conversation.over.addEventListener('abort', leave, { once: true });
      me.leave.signal.addEventListener('abort', () => wakeSenders(), { once: true });
      await conversation.tell({ type: 'started', session: id, inputBytes });
      try {
        const hearing = hear(conversation, me.leave.signal);
        hearing.catch(() => {}); // told below
        const sending = sendTo(conversation, receivedBytes, me.leave.signal);
        await Promise.race([hearing, sending]);
        me.leave.abort();
        if (await sending) forget();
      } finally {
        me.leave.abort();
        if (attached === me) {
          attached = undefined;
          void keepFor();
        }
      }
    },
  };
  return { session, end: kill };
}

/** What a client at `next` has not got of a piece, with the byte that says which stream it is of. */
function restOf({ fromByte, message }: Piece, next: number): Uint8Array {
  if (next <= fromByte) return message;
  const rest = message.slice(next - fromByte);
  rest[0] = message[0] ?? 0;
  return rest;
}
