// Unpacks zstd by its own program, straight into the file, and hashes what is written while more comes: twice as fast as through this process.
// The program is given bytes of whole zstd frames only, and no name of a file; its output, memory and time are bounded. Without it: unpack.ts.
//
//   packed ─► cutAtFrames ─► prlimit ─► zstd ─► the file ─► read back ─► sha256        (the last two follow the one before)

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, constants, type FileHandle, readFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { mebibyte } from '../../../base/bytes.ts';
import { assert } from '../../../base/assert.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { toolEnvironment } from '../../host/run-tool.ts';
import {
  beginImage,
  type ImageFileLimits,
  lastAllowedByte,
  refuseTooMuch,
  refuseWhatWillBeTooMuch,
  type WrittenImage,
} from './image-file.ts';
import { damagedArchive, feed, zstdWindowLogMax } from './unpack.ts';
import { cutAtFrames } from './zstd-frames.ts';

/** Whether it can be run here. */
export async function hasZstd(): Promise<boolean> {
  for (const program of ['zstd', 'prlimit']) if (!(await isInstalled(program))) return false;
  return true;
}

async function isInstalled(program: string): Promise<boolean> {
  for (const folder of (toolEnvironment['PATH'] ?? '').split(':')) {
    try {
      await access(join(folder, program), constants.X_OK);
      return true;
    } catch {
      // not in this one
    }
  }
  return false;
}

/** The window and what is around it: four times what it was seen to take. */
const memoryBytesMax = 1024 * mebibyte;
/** Hashed at once: meanwhile the program gets nothing, and what it has been given lasts for some 0.3 ms. */
const pieceBytes = mebibyte / 4;
/** Before the end of the file is looked at again; and while much of it is there to be read. */
const lookMs = 4;
const lookEveryBytes = 16 * pieceBytes;
/** The disk begins with what is written while more comes, so that the end of it has not all to wait for. */
const flushEveryBytes = 64 * mebibyte;

interface ZstdCall {
  readonly path: string;
  readonly packed: AsyncIterable<Uint8Array>;
  readonly limits: ImageFileLimits;
  readonly onWritten: (bytes: number) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** As `writeImage(path, unpack(packed, 'zstd'))`. */
export async function writeByZstd(call: ZstdCall): Promise<WrittenImage> {
  const file = await beginImage(call.path);
  try {
    // The size of the source is known with its first bytes, and then what the program may write.
    const source = call.packed[Symbol.asyncIterator]();
    const first = await source.next();
    return await unpackInto(file, { ...call, packed: startingWith(first, source) });
  } finally {
    await file.close();
  }
}

async function* startingWith(
  first: IteratorResult<Uint8Array>,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function unpackInto(file: FileHandle, call: ZstdCall): Promise<WrittenImage> {
  const { limits, signal } = call;
  const words = ['--decompress', '--stdout', '--sparse', '--quiet', `--memory=${2 ** (zstdWindowLogMax - 20)}MiB`];
  // One byte more than may be: then it is told from a file that is just as long.
  const bytesMax = lastAllowedByte(limits);
  const jail = [`--fsize=${bytesMax + 1}`, `--as=${memoryBytesMax}`, '--core=0', '--', 'zstd'];
  const child = spawn('prlimit', [...jail, ...words], {
    stdio: ['pipe', file.fd, 'pipe'],
    env: { ...toolEnvironment },
  });
  const { stdin, stderr } = child;
  assert(stdin !== null && stderr !== null, 'both are pipes');
  let complaint = '';
  stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString('latin1')).slice(0, 500);
  });
  stdin.on('error', () => stdin.destroy()); // it has gone; how it ended says why
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  if (signal.aborted) kill();
  const over = new AbortController();
  const ended = once(child, 'close').then(
    ([code, killed]: readonly unknown[]): Ended => ({ code, killed }),
    (error: unknown): Ended => ({ code: null, killed: describeError(error) }),
  );
  void ended.then(() => over.abort());
  // Errors of the source must stay what they are.
  let sourceError: Error | undefined;
  const feeding = feed(
    cutAtFrames(call.packed, (bytes) => refuseWhatWillBeTooMuch(bytes, limits)),
    stdin,
  ).catch((error: unknown) => {
    sourceError = error instanceof Error ? error : new Error(describeError(error));
    kill();
  });
  const follower = follow(file, call, over.signal);
  try {
    const hashed = follower.toEnd();
    hashed.catch(kill); // told below
    const end = await ended;
    stdin.destroy();
    await feeding;
    if (sourceError !== undefined) throw sourceError;
    if (signal.aborted) throw new DriverError('Aborted', 'unpacking the image was given up');
    if (end.code !== 0) throw await hashed.then(() => failure(end, complaint, { ...limits, bytesMax }));
    const [written] = await Promise.all([hashed, file.sync()]);
    return written;
  } catch (error) {
    throw sourceError ?? error;
  } finally {
    kill();
    signal.removeEventListener('abort', kill);
    await feeding;
    await follower.toEnd().catch(() => {}); // nothing may use the file any more when it is closed
  }
}

interface Ended {
  readonly code: unknown;
  readonly killed: unknown;
}

/** `limits`: those that the program had. */
function failure({ code, killed }: Ended, complaint: string, limits: ImageFileLimits): Error {
  const said = complaint.trim();
  if (/No space left|Disk quota exceeded/i.test(said)) return Object.assign(new Error(said), { code: 'ENOSPC' });
  if (killed === 'SIGXFSZ' || /File too large/i.test(said)) {
    refuseTooMuch(limits.bytesMax + 1, limits);
  }
  return damagedArchive('zstd', new Error(said || `zstd ended with ${String(code ?? killed)}`));
}

/** Where the program is in the file, which is ahead of its end in a hole: it makes a hole of a gibibyte before it says so. */
async function positionOf({ fd }: FileHandle): Promise<number> {
  const text = await readFile(`/proc/self/fdinfo/${fd}`, 'latin1').catch(() => ''); // not on Linux: the end of the file is all there is
  return Number(/^pos:\s*(\d+)/.exec(text)?.[1] ?? 0);
}

/** Reads what another writes, from its beginning to where it ends when `over` aborts. */
function follow(file: FileHandle, { limits, onWritten, clock }: ZstdCall, over: AbortSignal) {
  const run = async (): Promise<WrittenImage> => {
    const hash = createHash('sha256');
    const piece = Buffer.allocUnsafe(pieceBytes);
    let size = 0;
    let flushedBytes = 0;
    let flushing: Promise<void> | undefined;
    try {
      for (;;) {
        const last = over.aborted; // before the look: nothing is written after it
        const position = await positionOf(file); // before the end: then what is beyond that is a hole
        const { size: there } = await file.stat();
        refuseTooMuch(position > there ? position + 1 : there, limits);
        while (size < there) {
          // While this reads, the program may write far more.
          if (size % lookEveryBytes === 0) refuseTooMuch((await file.stat()).size, limits);
          const { bytesRead } = await file.read(piece, 0, Math.min(pieceBytes, there - size), size);
          if (bytesRead === 0) break;
          hash.update(piece.subarray(0, bytesRead));
          size += bytesRead;
          onWritten(size);
        }
        if (last && size >= there) return { digest: `sha256:${hash.digest('hex')}`, sizeBytes: size };
        if (flushing === undefined && size - flushedBytes >= flushEveryBytes) {
          flushedBytes = size;
          flushing = file.datasync().finally(() => {
            flushing = undefined;
          });
          flushing.catch(() => {}); // the sync at the end tells
        }
        if (!over.aborted) await sleep(clock, lookMs, over);
      }
    } finally {
      await flushing?.catch(() => {});
    }
  };
  let running: Promise<WrittenImage> | undefined;
  return { toEnd: (): Promise<WrittenImage> => (running ??= run()) };
}
