// A guest's serial console as an append-only file that QEMU writes. Offsets count from the guest's first boot and stay
// true when the start is dropped: the file keeps its length and gets a hole. Never rewrites what QEMU wrote.

import { type FSWatcher, watch } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { type Clock, sleep, type Timer } from '../../../../base/clock.ts';
import { createPace } from '../../../../base/concurrency/pace.ts';
import type { LogChunk } from '../../driver.ts';
import { type BootMarks, bootMarkScanner } from '../boot-marks.ts';
import { keptFrom } from './console-keeper.ts';
import { runTool } from '../../../host/run-tool.ts';

export interface ConsoleFollowerOptions {
  readonly path: string;
  readonly clock: Clock;
  /** Where the current boot begins. */
  readonly fromOffset: number;
  readonly marks: BootMarks;
  readonly onMarks: (marks: BootMarks) => void;
  /** It floods, and so much of it was not read for marks of its boot. */
  readonly onPassedOver: (bytes: number) => void;
  /** After every look at the file. */
  readonly onSize: (sizeBytes: number) => void;
}

export interface ConsoleFollower {
  /** Reads what is there now; resolves when that is done. */
  check(): Promise<void>;
  stop(): void;
}

const pollMs = 500; // should a change not be announced: some file systems do not tell
const pieceBytes = 64 * 1024;
/** A guest that floods its console must not keep the agent busy: so often it is looked at in the long run, and so much is read of its boot. */
const looksPace = { perSecond: 20, atOnceMax: 200 };
const readsPace = { perSecond: 512 * 1024, atOnceMax: 8 * 1024 * 1024 };
/** What is further back is passed over: by then it is not the output of a boot. */
const unreadBytesMax = 512 * 1024;

/** Watches the console until `stop`, reading until the guest is ready, and then only measuring. */
export function followConsole(options: ConsoleFollowerOptions): ConsoleFollower {
  const scanner = bootMarkScanner(options.marks);
  const looks = createPace({ clock: options.clock, ...looksPace });
  const reads = createPace({ clock: options.clock, ...readsPace });
  const over = new AbortController();
  let offset = options.fromOffset;
  let watcher: FileWatch | undefined;
  let looking: Promise<void> | undefined;
  let again = false;
  let tooMuch = false;

  const look = async (): Promise<void> => {
    do {
      again = false;
      const size = await consoleSize(options.path);
      await readSome(size);
      options.onSize(size);
      await looks.take(1, over.signal);
    } while (again && !over.signal.aborted);
  };
  const readSome = async (size: number): Promise<void> => {
    if (scanner.marks().ready || offset >= size) return;
    if (size - offset > unreadBytesMax && tooMuch) {
      options.onPassedOver(size - pieceBytes - offset);
      offset = size - pieceBytes;
    }
    const data = await readPiece(options.path, offset, Math.min(pieceBytes, size - offset));
    offset += data.length;
    if (scanner.push(data)) options.onMarks(scanner.marks());
    if (data.length > 0 && offset < size) again = true;
    const waitMs = reads.note(data.length);
    tooMuch = waitMs > 0;
    if (tooMuch) await sleep(options.clock, waitMs, over.signal);
  };
  const check = (): Promise<void> => {
    again = true;
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const checkQuietly = (): void => {
    check().catch(() => {}); // the file is being removed; the next poll tells, if there is one
  };

  const poll = (): void => {
    if (over.signal.aborted) return;
    watcher ??= watchFile(options.path, options.clock, checkQuietly);
    checkQuietly();
    timer = options.clock.setTimer(pollMs, poll, { background: true });
  };
  let timer = options.clock.setTimer(0, poll, { background: true });
  return {
    check,
    stop() {
      over.abort();
      timer.cancel();
      watcher?.close();
    },
  };
}

export interface FileWatch {
  close(): void;
}

/** The kernel reports every write: after this many of a long output, one check stands for many. */
const eventsPace = { perSecond: 250, atOnceMax: 2000 };
const deafMs = 10;

/** Calls `onChange` after each write, or after many; undefined: the kernel does not report writes. */
export function watchFile(path: string, clock: Clock, onChange: () => void): FileWatch | undefined {
  const events = createPace({ clock, ...eventsPace });
  let watcher: FSWatcher | undefined;
  let rest: Timer | undefined;
  let closed = false;
  const heard = (): void => {
    onChange();
    if (events.note(1) === 0 || closed) return;
    watcher?.close();
    rest ??= clock.setTimer(deafMs, listenAgain, { background: true });
  };
  const listenAgain = (): void => {
    rest = undefined;
    if (closed) return;
    listen();
    onChange(); // what came meanwhile
  };
  const listen = (): boolean => {
    try {
      const opened = watch(path, { persistent: false }, () => {
        if (opened === watcher && rest === undefined) heard();
      });
      watcher = opened;
      opened.on('error', () => opened.close()); // the poll goes on
      return true;
    } catch {
      return false; // not there yet, or no watches left on this host: the poll does it
    }
  };
  if (!listen()) return undefined;
  return {
    close() {
      closed = true;
      rest?.cancel();
      watcher?.close();
    },
  };
}

/** Bytes written since the first boot; 0 before there is a file. */
export async function consoleSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 0;
    throw error;
  }
}

/** `start`: where the log begins, all before it being dropped. */
export async function readConsole(
  path: string,
  range: { readonly start: number; readonly offset: number; readonly limit: number },
): Promise<LogChunk> {
  const file = await open(path, 'r').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (file === undefined) return { offset: range.offset, data: new Uint8Array(), size: 0 };
  try {
    // Somebody waits for the echo of a key: what can be known without another call is not asked for.
    const from = Math.max(range.offset, range.start);
    const limit = Math.min(range.limit, pieceBytes);
    const data = await pieceOf(file, from, limit);
    // Looks like the hole that its keeper left while no agent ran: then it says where that ends.
    const kept = data[0] === 0 ? await keptFrom(path) : 0;
    if (kept > from) return await readConsole(path, { ...range, start: kept });
    if (data.length > 0 && data.length < limit) return { offset: from, data, size: from + data.length };
    const { size } = await file.stat();
    return { offset: data.length > 0 ? from : Math.max(range.offset, Math.min(range.start, size)), data, size };
  } finally {
    file.close().catch(() => {}); // it was only read
  }
}

/** What is there, at most. */
async function pieceOf(file: FileHandle, offset: number, limit: number): Promise<Uint8Array> {
  if (limit === 0) return new Uint8Array();
  const buffer = new Uint8Array(limit);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, offset);
  return buffer.subarray(0, bytesRead);
}

/** The last bytes of a text file, for a message. */
export async function tailText(path: string, bytes: number): Promise<string> {
  const size = await consoleSize(path);
  const from = Math.max(0, size - bytes);
  return size === 0
    ? ''
    : new TextDecoder()
        .decode(await readPiece(path, from, size - from))
        .replace(/^\0+/, '')
        .trim();
}

async function readPiece(path: string, offset: number, length: number): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    return await pieceOf(file, offset, length);
  } finally {
    await file.close();
  }
}

/** Where a log of `sizeBytes` that begins at `start` should begin now: it may reach `maxBytes`, then `keptBytes` stay. */
export function trimmedStart(
  log: { readonly start: number; readonly sizeBytes: number },
  limits: { readonly maxBytes: number; readonly keptBytes: number },
): number {
  if (log.sizeBytes - log.start <= limits.maxBytes) return log.start;
  const blockBytes = 4096; // whole blocks, so that the hole frees room
  return Math.max(log.start, Math.floor((log.sizeBytes - limits.keptBytes) / blockBytes) * blockBytes);
}

/** Gives the room of the first `lengthBytes` back to the file system; the file stays as long as it is. */
export async function punchHole(
  clock: Clock,
  path: string,
  lengthBytes: number,
): Promise<{ ok: boolean; output: string }> {
  return runTool(clock, {
    program: 'fallocate',
    arguments: ['--punch-hole', '--offset', '0', '--length', String(lengthBytes), '--', path],
    timeoutMs: 10_000,
  });
}
