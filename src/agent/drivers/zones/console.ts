// Records what a guest writes to its serial port: bhyve offers the port on a UNIX socket, and the driver appends its data to
// the guest's console log. Output while no recorder is connected is lost. It holds at most one piece in memory.

import { appendFile, open, rename, rm } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { createPace, type Pace } from '../../../base/concurrency/pace.ts';

export interface ConsoleRecorderOptions {
  readonly socketPath: string;
  readonly logPath: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

/** The data left in the socket when the guest ended is read within this time, unless the disk hangs. */
const lastWordsMs = 1000;
const pieceBytes = 64 * 1024;
/** The long-term limit for one guest: a hundred times the speed of a serial line. */
const bytesPerSecond = 2 * 1024 * 1024;

export class ConsoleRecorder {
  readonly #options: ConsoleRecorderOptions;
  readonly #over = new AbortController();
  /** Data that is not read stays with the hypervisor, which then takes no more from the guest than its buffer holds. */
  readonly #pace: Pace;
  readonly #listening: Promise<void>;
  #heardBytes = 0;
  #socket: Socket | undefined;
  #writing: Promise<void> = Promise.resolve();
  #lossLogged = false;

  constructor(options: ConsoleRecorderOptions) {
    this.#options = options;
    this.#pace = createPace({ clock: options.clock, perSecond: bytesPerSecond, atOnceMax: bytesPerSecond });
    this.#listening = this.#listen();
  }

  /** Bytes since this recorder was created. */
  heardBytes(): number {
    return this.#heardBytes;
  }

  /** Frees the disk space of the log's first bytes; the other bytes keep their offsets. */
  dropStart(lengthBytes: number): Promise<void> {
    return this.#inTurn(() => dropStart(this.#options.logPath, lengthBytes));
  }

  /** The guest has ended: resolves when its last output is in the log. */
  async finish(): Promise<void> {
    this.#over.abort();
    const limit = new AbortController();
    await Promise.race([this.#listening, sleep(this.#options.clock, lastWordsMs, limit.signal)]);
    limit.abort();
    this.#socket?.destroy();
    await this.#writing;
  }

  /** Disconnects at once. */
  abandon(): void {
    this.#over.abort();
    this.#socket?.destroy();
  }

  async #listen(): Promise<void> {
    const { clock, prng } = this.#options;
    const { signal } = this.#over;
    for (let attempt = 0; !signal.aborted; attempt++) {
      if (await this.#listenOnce()) attempt = 0;
      if (!signal.aborted) await sleep(clock, backoffMs(attempt, { delayMsMin: 20, delayMsMax: 1000 }, prng), signal);
    }
  }

  /** Returns whether the connection was made. */
  async #listenOnce(): Promise<boolean> {
    const connection = createConnection({ path: this.#options.socketPath });
    this.#socket = connection;
    let connected = false;
    connection.on('connect', () => {
      connected = true;
    });
    connection.on('error', (error) => this.#options.log.debug('no console of a guest', { error: error.message }));
    try {
      for await (const piece of readable(connection)) {
        await this.#write(piece);
        await this.#pace.take(piece.length, this.#over.signal);
      }
    } catch {
      // The connection broke, or the socket does not exist yet: the listener above has logged it.
    } finally {
      connection.destroy();
    }
    return connected;
  }

  async #write(piece: Uint8Array): Promise<void> {
    const { logPath, log } = this.#options;
    this.#heardBytes += piece.length;
    try {
      await this.#inTurn(() => appendFile(logPath, piece, { mode: 0o600 }));
      this.#lossLogged = false;
    } catch (error) {
      if (!this.#lossLogged) log.warn('what a guest says is lost', { error: describeError(error) });
      this.#lossLogged = true; // once, not for each piece while the disk is full
    }
  }

  /** Appending to the log and dropping its start never overlap. */
  #inTurn(act: () => Promise<void>): Promise<void> {
    const done = this.#writing.then(act);
    this.#writing = done.catch(() => {}); // the caller gets the error
    return done;
  }
}

async function* readable(socket: Socket): AsyncIterable<Uint8Array> {
  for await (const piece of socket) if (piece instanceof Uint8Array) yield piece;
}

/**
 * Replaces the file by one with a hole where the start was: no tool of illumos punches holes. Nothing else writes to the log
 * meanwhile, and readers open it again for each read.
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
