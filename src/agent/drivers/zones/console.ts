// Writes down what a guest says on its serial port: bhyve has it on a UNIX socket, and the driver appends it to the guest's console log.
// What is said while nobody is connected is lost: there is no one else to keep it. Holds no more than one piece in memory.

import { appendFile, open, rename, rm } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { createPace } from '../../../base/work/pace.ts';
import type { Prng } from '../../../base/prng.ts';

export interface ConsoleRecorder {
  /** Bytes since it was made. */
  heardBytes(): number;
  /** Gives the room of the log's first bytes back; the others stay where they are. */
  dropStart(lengthBytes: number): Promise<void>;
  /** The guest has ended: resolves when its last words are in the log. */
  finish(): Promise<void>;
  /** Lets go at once. */
  abandon(): void;
}

/** What was in the socket when the guest ended is read within this, unless the disk hangs. */
const lastWordsMs = 1000;
const pieceBytes = 64 * 1024;
/** What one guest may write in the long run: a serial line has a hundredth of it. */
const bytesPerSecond = 2 * 1024 * 1024;

export function recordConsole({
  socketPath,
  logPath,
  clock,
  prng,
  log,
}: {
  readonly socketPath: string;
  readonly logPath: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}): ConsoleRecorder {
  const over = new AbortController();
  /** What is not read stays with the hypervisor, which takes no more from the guest than it can hold. */
  const pace = createPace({ clock, perSecond: bytesPerSecond, atOnceMax: bytesPerSecond });
  let heardBytes = 0;
  let socket: Socket | undefined;
  let writing: Promise<void> = Promise.resolve();

  /** Pieces and cuts of the log follow one another. */
  const inTurn = (act: () => Promise<void>): Promise<void> => {
    const done = writing.then(act);
    writing = done.catch(() => {}); // whoever asked is told
    return done;
  };
  let lossTold = false;
  const write = async (piece: Uint8Array): Promise<void> => {
    heardBytes += piece.length;
    try {
      await inTurn(() => appendFile(logPath, piece, { mode: 0o600 }));
      lossTold = false;
    } catch (error) {
      if (!lossTold) log.warn('what a guest says is lost', { error: describeError(error) });
      lossTold = true; // once, not for each piece while the disk is full
    }
  };
  const listenOnce = async (): Promise<boolean> => {
    const connection = createConnection({ path: socketPath });
    socket = connection;
    let connected = false;
    connection.on('connect', () => {
      connected = true;
    });
    connection.on('error', (error) => log.debug('no console of a guest', { error: error.message }));
    try {
      for await (const piece of readable(connection)) {
        await write(piece);
        await pace.take(piece.length, over.signal);
      }
    } catch {
      // The line broke, or there is none yet: the listener above has told.
    } finally {
      connection.destroy();
    }
    return connected;
  };
  const listen = async (): Promise<void> => {
    for (let attempt = 0; !over.signal.aborted; attempt++) {
      if (await listenOnce()) attempt = 0;
      if (!over.signal.aborted)
        await sleep(clock, backoffMs(attempt, { delayMsMin: 20, delayMsMax: 1000 }, prng), over.signal);
    }
  };
  const listening = listen();

  return {
    heardBytes: () => heardBytes,
    dropStart: (lengthBytes) => inTurn(() => dropStart(logPath, lengthBytes)),
    async finish() {
      over.abort();
      const limit = new AbortController();
      await Promise.race([listening, sleep(clock, lastWordsMs, limit.signal)]);
      limit.abort();
      socket?.destroy();
      await writing;
    },
    abandon() {
      over.abort();
      socket?.destroy();
    },
  };
}

async function* readable(socket: Socket): AsyncIterable<Uint8Array> {
  for await (const piece of socket) if (piece instanceof Uint8Array) yield piece;
}

/**
 * A new file with a hole where the start was, in place of the old one: no tool of illumos punches holes. Nothing else writes to the log
 * meanwhile, and readers open it anew each time.
 */
async function dropStart(path: string, lengthBytes: number): Promise<void> {
  const temporary = `${path}.tmp`;
  const [from, to] = [await open(path, 'r'), await open(temporary, 'w', 0o600)];
  try {
    const { size } = await from.stat();
    await to.truncate(Math.min(lengthBytes, size));
    const buffer = new Uint8Array(pieceBytes);
    for (let at = lengthBytes; at < size; ) {
      const { bytesRead } = await from.read(buffer, 0, Math.min(pieceBytes, size - at), at);
      if (bytesRead === 0) break;
      await to.write(buffer, 0, bytesRead, at);
      at += bytesRead;
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await from.close();
    await to.close();
  }
}
