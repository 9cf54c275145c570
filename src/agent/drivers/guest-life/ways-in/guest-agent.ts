// The QEMU guest agent (docs/interop/qemu-ga-ref of QEMU): JSON lines over the machine's channel, with what runs a command in the guest. The
// guest's owner has the agent in hand: nothing it says is trusted, and none of it may cost more memory than its bound.

import type { Socket } from 'node:net';
import { type Clock, sleep } from '../../../../base/clock.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { NeedsSsh } from '../../needs-ssh.ts';

/** It has an error of its own for everything; only what went wrong on the way is ours. */
export class GuestAgentError extends Error {
  override name = 'GuestAgentError';
}

export interface GuestAgentTalk {
  /** The command's `return`. Throws `GuestAgentError`, or `NeedsSsh` when no agent answers. */
  ask(command: string, values?: Readonly<Record<string, unknown>>): Promise<unknown>;
}

export interface GuestAgentUse {
  readonly talk: GuestAgentTalk;
  /** Once for each use. */
  release(): void;
}

export function noGuestAgent(): NeedsSsh {
  return new NeedsSsh(
    'the guest agent does not answer: install and start qemu-guest-agent in the guest, or go in by ssh',
  );
}

/** Answers come within milliseconds; a guest that boots or swaps may take its time. */
const answerTimeoutMs = 10_000;
const greetTimeoutMs = 3_000;
/** The agent itself keeps 16 MiB of each stream of a command (GUEST_EXEC_MAX_OUTPUT); in base64 both are 43 MiB. */
const answerBytesMax = 48 * 1024 * 1024;

/** One after the other over one connection: the agent answers in order and knows no ids. */
export function talkToGuestAgent(
  socket: Socket,
  { clock, syncId }: { clock: Clock; syncId: () => number },
): GuestAgentTalk {
  const lines = readLines(socket);
  let line: Promise<unknown> = Promise.resolve();
  let synced = false;

  const answer = async (limitMs: number, accept: (message: Readonly<Record<string, unknown>>) => boolean) => {
    const limit = new AbortController();
    const late = sleep(clock, limitMs, limit.signal).then(() => undefined);
    try {
      for (;;) {
        const text = await Promise.race([lines.next(), late]);
        if (text === undefined) {
          synced = false; // an answer that comes late must not be taken for the next one's
          throw noGuestAgent();
        }
        const message = objectOf(text);
        if (message !== undefined && accept(message)) return message;
      }
    } finally {
      limit.abort();
    }
  };
  const sync = async (): Promise<void> => {
    const id = syncId();
    // 0xFF ends whatever an earlier client left half-said.
    socket.write(Buffer.concat([Buffer.of(0xff), request('guest-sync-delimited', { id })]));
    await answer(greetTimeoutMs, (message) => message['return'] === id);
    synced = true;
  };
  return {
    ask(command, values) {
      const asked = line.then(async () => {
        if (lines.drop()) synced = false; // it has no request: it must not be taken for an answer
        if (!synced) await sync();
        socket.write(request(command, values));
        const message = await answer(answerTimeoutMs, () => true);
        const { error } = message;
        if (isRecord(error)) {
          const { desc } = error;
          throw new GuestAgentError(typeof desc === 'string' ? desc.slice(0, 1024) : 'the guest agent refused');
        }
        return message['return'];
      });
      line = asked.catch(() => {}); // reported to the caller
      return asked;
    },
  };
}

function request(execute: string, values?: Readonly<Record<string, unknown>>): Buffer {
  return Buffer.from(`${JSON.stringify({ execute, ...(values === undefined ? {} : { arguments: values }) })}\n`);
}

function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // the rest of something said to an earlier client
  }
}

interface Lines {
  /** Resolves to undefined when there will be none any more. */
  next(): Promise<string | undefined>;
  /** Those that have come are forgotten. False: there was nothing, not even the beginning of one. */
  drop(): boolean;
}

/** Lines as they come. */
function readLines(socket: Socket): Lines {
  const ready: string[] = [];
  let readyLength = 0;
  let waiting: ((line: string | undefined) => void) | undefined;
  const pieces: Buffer[] = [];
  let bytes = 0;
  let over = socket.destroyed;
  const give = (line: string): void => {
    if (waiting === undefined) {
      if (ready.length >= linesWaitingMax || readyLength + line.length > lineLengthsWaitingMax) return;
      readyLength += line.length;
      return void ready.push(line);
    }
    waiting(line);
    waiting = undefined;
  };
  socket.on('data', (data: Buffer) => {
    for (let from = 0; from < data.length; ) {
      const cut = data.indexOf(0x0a, from);
      const piece = data.subarray(from, cut < 0 ? data.length : cut);
      bytes += piece.length;
      if (bytes > answerBytesMax) return void socket.destroy();
      pieces.push(piece);
      if (cut < 0) return;
      const line = Buffer.concat(pieces);
      give(line.subarray(line.lastIndexOf(0xff) + 1).toString()); // 0xFF stands before what answers a sync, perhaps in the middle of a line
      pieces.length = 0;
      bytes = 0;
      from = cut + 1;
    }
  });
  socket.on('close', () => {
    over = true;
    waiting?.(undefined);
  });
  return {
    drop() {
      const some = ready.length > 0 || bytes > 0;
      ready.length = 0;
      readyLength = 0;
      return some;
    },
    next: () => {
      const line = ready.shift();
      if (line !== undefined) {
        readyLength -= line.length;
        return Promise.resolve(line);
      }
      if (over) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        waiting = resolve;
      });
    },
  };
}

/** An agent that talks unasked is not listened to. */
const linesWaitingMax = 64;
const lineLengthsWaitingMax = 1024 * 1024;
