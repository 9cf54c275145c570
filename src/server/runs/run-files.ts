// The files of runs, as routes use them: bytes arrive at absolute offsets, from one sender or from several after one another,
// and are read while they arrive.
//
// The bytes at an offset are always the same, from any sender and in any repetition. So writers need no lock: each begins at or
// before the end of the file, and two of them write the same bytes.

import { gibibyte, mebibyte } from '../../base/bytes.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { ApiError } from '../../api/errors.ts';
import type { RunFile, RunPart, RunStorage, StoredRun } from './run-storage.ts';

export interface RunLimits {
  readonly logBytesMax: number;
  readonly artifactsBytesMax: number;
  /** Of all files of a project; run-janitor.ts removes the oldest. */
  readonly projectBytesMax: number;
}

export const defaultRunLimits: RunLimits = {
  logBytesMax: 64 * mebibyte,
  artifactsBytesMax: 1024 * mebibyte,
  projectBytesMax: 64 * gibibyte,
};

export interface RunFilesParts {
  readonly storage: RunStorage;
  readonly limits: RunLimits;
  readonly clock: Clock;
}

export interface RunPiece {
  /** The position of the first of `bytes` in the file. */
  readonly offset: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** How soon a reader sees what another control plane has written to shared storage. */
const pollMs = 200;
/** How much of a log the end of the machine, not of the process, may undo; its sender has the bytes until the run has ended. */
const syncDelayMs = 1_000;
const readBytes = 256 * 1024;
/** Beyond the limit of a log: a host may have the same limit, and its log then ends with a line about it. */
const noticeBytesMax = 512;

export class RunFiles {
  readonly #parts: RunFilesParts;
  /** Those who wait for more, by file. */
  readonly #readers = new Map<string, Set<() => void>>();
  readonly #unsynced = new Map<string, RunFile>();
  #syncTimer: Timer | undefined;
  #appendedBytes = 0;

  constructor(parts: RunFilesParts) {
    this.#parts = parts;
  }

  /** How much was appended since the start of this process. */
  get appendedBytes(): number {
    return this.#appendedBytes;
  }

  get limits(): RunLimits {
    return this.#parts.limits;
  }

  size(file: RunFile): Promise<number> {
    return this.#parts.storage.size(file);
  }

  /**
   * Appends what is new of the piece and returns the size of the file. Artifacts are durable then; a log survives the end of the process.
   * Throws `Conflict` with `details.size` when bytes before the piece are missing, `PayloadTooLarge` for bytes over the limit, and
   * what `bytes` throws: bytes that arrived before that are kept.
   */
  async append(file: RunFile, { offset, bytes }: RunPiece): Promise<number> {
    const { storage } = this.#parts;
    const size = await storage.size(file);
    const room = this.#roomFor(file.part);
    if (offset > size && size > room) throw await this.#tooLarge(file); // what is missing was dropped
    if (offset > size)
      throw new ApiError('Conflict', `this file has ${size} bytes: continue there, not at ${offset}`, {
        field: 'offset',
        details: { size },
      });
    const fresh = new Fresh(bytes, {
      skip: size - offset,
      bytesMax: Math.max(0, room - size),
      onWritten: (written) => this.#appended(file, written),
    });
    const durable = file.part === 'artifacts';
    const after = await storage.write(file, { at: size, bytes: fresh.take(), durable });
    if (fresh.overflows) throw await this.#tooLarge(file);
    return after;
  }

  /** What there is from `start` on. */
  async *read(file: RunFile, start = 0): AsyncGenerator<Uint8Array, void> {
    for (let at = start; ; ) {
      const chunk = await this.#parts.storage.read(file, { start: at, bytesMax: readBytes });
      if (chunk.byteLength === 0) return;
      at += chunk.byteLength;
      yield chunk;
    }
  }

  /** Resolves when there may be more: when something was appended here, after 200 ms, or when `signal` aborts. */
  grown(file: RunFile, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const name = nameOf(file);
      const readers = this.#readers.get(name) ?? new Set();
      this.#readers.set(name, readers);
      const look = (): void => {
        readers.delete(look);
        if (readers.size === 0) this.#readers.delete(name);
        timer.cancel();
        signal.removeEventListener('abort', look);
        resolve();
      };
      const timer = this.#parts.clock.setTimer(pollMs, look, { background: true });
      readers.add(look);
      signal.addEventListener('abort', look, { once: true });
    });
  }

  remove(instanceId: string): Promise<void> {
    return this.#parts.storage.remove(instanceId);
  }

  list(): Promise<readonly StoredRun[]> {
    return this.#parts.storage.list();
  }

  /** Makes durable what was appended. */
  async stop(): Promise<void> {
    this.#syncTimer?.cancel();
    this.#syncTimer = undefined;
    await this.#sync();
  }

  /** For bytes of the sender. */
  #roomFor(part: RunPart): number {
    const { logBytesMax, artifactsBytesMax } = this.#parts.limits;
    return part === 'log' ? logBytesMax + noticeBytesMax : artifactsBytesMax;
  }

  /** A full log ends with a line that says so. Its position is known: the sender's bytes are cut there. */
  async #tooLarge(file: RunFile): Promise<ApiError> {
    const { storage, clock, limits } = this.#parts;
    const room = this.#roomFor(file.part);
    if (file.part === 'log' && (await storage.size(file)) === room) {
      const mib = Math.round(limits.logBytesMax / mebibyte);
      const time = new Date(clock.nowMs()).toISOString();
      const line = `\n${time} stderr F berth: the log has reached its limit of ${mib} MiB; the rest is dropped\n`;
      await storage.write(file, { at: room, bytes: once(Buffer.from(line)), durable: true });
      this.#appended(file, line.length);
    }
    const size = await storage.size(file);
    const what = file.part === 'log' ? 'a log' : 'an archive of artifacts';
    return new ApiError('PayloadTooLarge', `${what} may have ${room} bytes; the rest is dropped`, {
      field: file.part,
      details: { size },
    });
  }

  #appended(file: RunFile, bytes: number): void {
    this.#appendedBytes += bytes;
    for (const look of [...(this.#readers.get(nameOf(file)) ?? [])]) look();
    if (file.part !== 'log') return;
    this.#unsynced.set(nameOf(file), file);
    this.#syncTimer ??= this.#parts.clock.setTimer(
      syncDelayMs,
      () => {
        this.#syncTimer = undefined;
        void this.#sync();
      },
      { background: true },
    );
  }

  async #sync(): Promise<void> {
    const files = [...this.#unsynced.values()];
    this.#unsynced.clear();
    // A log that cannot be made durable is none that was promised to be; the next append to it tells what is wrong.
    await Promise.allSettled(files.map((file) => this.#parts.storage.sync(file)));
  }
}

interface FreshOptions {
  /** How much of it is known. */
  readonly skip: number;
  readonly bytesMax: number;
  readonly onWritten: (bytes: number) => void;
}

/** What is new of a piece, and has room. */
class Fresh {
  readonly #bytes: AsyncIterable<Uint8Array>;
  readonly #onWritten: (bytes: number) => void;
  #skip: number;
  #room: number;
  overflows = false;

  constructor(bytes: AsyncIterable<Uint8Array>, { skip, bytesMax, onWritten }: FreshOptions) {
    this.#bytes = bytes;
    this.#skip = skip;
    this.#room = bytesMax;
    this.#onWritten = onWritten;
  }

  async *take(): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of this.#bytes) {
      const fresh = chunk.subarray(this.#skip);
      this.#skip -= chunk.byteLength - fresh.byteLength;
      const fits = fresh.subarray(0, this.#room);
      this.#room -= fits.byteLength;
      if (fits.byteLength > 0) {
        yield fits; // it is written when the next is asked for
        this.#onWritten(fits.byteLength);
      }
      if (fits.byteLength === fresh.byteLength) continue;
      this.overflows = true;
      return;
    }
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  yield await Promise.resolve(bytes);
}

function nameOf({ instanceId, part }: RunFile): string {
  return `${instanceId}/${part}`;
}
