// Unpacks a stream of bytes on the fly: zstd and gzip by Node, xz by the xz program. A stream that ends too early is an
// error, never a short result.

import { spawn } from 'node:child_process';
import type { Duplex, Readable, Writable } from 'node:stream';
import { constants, createGunzip, createZstdDecompress } from 'node:zlib';
import type { ImageSpec } from '../../../api/resources/image.ts';
import { drained } from '../../../base/drained.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { cutAtFrames } from './zstd-frames.ts';

type Packing = ImageSpec['decompress'];

/** 128 MiB: what `zstd -19` uses at most; larger windows (`--long=28` and up) cost memory that a stranger would choose. */
export const zstdWindowLogMax = 27;
/** What comes out at once, and may wait: with smaller pieces the way between decoder and reader costs as much as the decoding. */
const pieces = { chunkSize: 2 * 1024 * 1024, highWaterMark: 4 * 1024 * 1024 };
const xzMemoryMax = '256MiB'; // `xz -9` needs 65 MiB

/** The unpacked bytes of `packed`. Throws `DriverError` `ImageInvalid` when they are cut off or damaged. */
export async function* unpack(
  packed: AsyncIterable<Uint8Array>,
  packing: Packing,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  if (packing === 'none') {
    yield* packed;
    return;
  }
  const unpacker = unpackerOf(packing, signal);
  // Errors of the source must stay what they are, so they travel beside the unpacker, not through it.
  let sourceError: Error | undefined;
  const source = packing === 'zstd' ? cutAtFrames(packed) : packed;
  const feeding = feed(source, unpacker.input).catch((error: unknown) => {
    sourceError = error instanceof Error ? error : new Error(describeError(error));
    unpacker.stop();
  });
  try {
    for await (const chunk of unpacker.output) yield chunk;
    await unpacker.ended;
  } catch (error) {
    if (sourceError === undefined) throw damagedArchive(packing, error);
  } finally {
    unpacker.stop();
    await feeding;
  }
  if (sourceError !== undefined) throw sourceError;
}

export function damagedArchive(packing: Packing, error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  const message = `cannot unpack the image as ${packing}: ${describeError(error)}; it is cut off, damaged or not ${packing}`;
  return new DriverError('ImageInvalid', message, error);
}

export async function feed(packed: AsyncIterable<Uint8Array>, into: Writable): Promise<void> {
  for await (const chunk of packed) {
    if (into.destroyed) return; // the reader has given up; its own error counts
    if (!into.write(chunk)) await drained(into);
  }
  into.end();
}

interface Unpacker {
  readonly input: Writable;
  readonly output: Readable;
  /** Rejects when the end of the output was not the end of the archive. */
  readonly ended: Promise<void>;
  stop(): void;
}

function unpackerOf(packing: Exclude<Packing, 'none'>, signal: AbortSignal): Unpacker {
  switch (packing) {
    case 'gzip':
      return inProcess(createGunzip(pieces));
    case 'zstd':
      return inProcess(
        createZstdDecompress({ ...pieces, params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLogMax } }),
      );
    case 'xz':
      return xz(signal);
  }
}

function inProcess(stream: Duplex): Unpacker {
  return { input: stream, output: stream, ended: Promise.resolve(), stop: () => stream.destroy() };
}

function xz(signal: AbortSignal): Unpacker {
  const options = ['--decompress', '--stdout', '--quiet', '--threads=1', `--memlimit-decompress=${xzMemoryMax}`];
  const child = spawn('xz', options, { stdio: 'pipe', env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' } });
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString('latin1')).slice(0, 500);
  });
  child.stdin.on('error', () => child.stdin.destroy()); // xz has gone; how it ended says why
  const ended = new Promise<void>((resolve, reject) => {
    child.once('error', (error) => {
      reject(
        new DriverError(
          'ImageUnavailable',
          `cannot run xz (${error.message}); install it: apt-get install xz-utils`,
          error,
        ),
      );
    });
    child.once('close', (code, killed) => {
      signal.removeEventListener('abort', kill);
      if (code === 0) resolve();
      else reject(new Error(complaint.trim() || `xz ended with ${code ?? killed}`));
    });
  });
  ended.catch(() => {}); // reported where it is awaited, which is nowhere when the source failed first
  return {
    input: child.stdin,
    output: child.stdout,
    ended,
    stop: () => {
      kill();
      child.stdin.destroy();
      child.stdout.destroy();
    },
  };
}
