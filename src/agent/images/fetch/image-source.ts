// The bytes of an image's source, from a server or a file, once each and in order. A broken or stalled download goes on where it was;
// if the server's file has changed meanwhile, `SourceChanged` says to start over. Never mixes two versions unless a checksum tells.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { type HttpAnswer, type HttpGet, printableUrl } from './http-get.ts';

export interface SourceContext {
  readonly clock: Clock;
  readonly prng: Prng;
  readonly signal: AbortSignal;
  /** Nothing came for so long: the connection is given up and made again. */
  readonly stallTimeoutMs: number;
  /** Of the time spent waiting for the server, so long brings `slowBytesMin` at least; twice in a row less is too slow. */
  readonly slowWindowMs: number;
  readonly slowBytesMin: number;
  /** Attempts in a row that bring not one byte. */
  readonly attemptsMax: number;
  readonly bytesMax: number;
  /** The digest decides in the end, so bytes of several answers, and of several servers, may be put together. */
  readonly checksummed: boolean;
}

/** A file on some server, and how to ask for it. */
export interface RemoteFile {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly get: HttpGet;
  /** `sha256:<hex>` of the file, where the server's own index says it. */
  readonly digest?: string;
}

/** What the server said of its file: enough to ask later whether it is still the same. */
export interface SourceVersion {
  /** A strong ETag or a Last-Modified date; without one a download is resumed only where a checksum decides in the end. */
  readonly validator?: string;
  readonly totalBytes?: number;
}

export class SourceChanged extends Error {
  override name = 'SourceChanged';
}

export interface ReadFrom {
  readonly offset: number;
  /** What was said when the first bytes came. */
  readonly known: SourceVersion;
  /** The first bytes came from this server too; else only their number is known here. */
  readonly sameServer: boolean;
}

/** The bytes from `offset` on. `locate` is asked before each connection; `onVersion` is told what the server says before any byte of it. */
export async function* readHttp(
  locate: (signal: AbortSignal) => Promise<RemoteFile>,
  from: ReadFrom & { readonly source: string },
  context: SourceContext,
  onVersion: (version: SourceVersion) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const source = printableUrl(from.source);
  let { offset, known, sameServer } = from;
  let failures = 0;
  const pace = paceOf(context, source);
  for (;;) {
    if (known.totalBytes !== undefined && offset === known.totalBytes) return;
    const stall = stallGuard(context);
    let answer: HttpAnswer | undefined;
    try {
      const file = await locate(stall.signal);
      answer = await request(file, { offset, known, sameServer, source, context }, stall.signal);
      const version = versionOf(answer, offset);
      if (offset === 0 || !sameServer) {
        known = version;
        sameServer = true;
        await onVersion(known);
      }
      if (known.totalBytes !== undefined && known.totalBytes > context.bytesMax)
        throw tooLarge(from.source, known.totalBytes, context);
      pace.waits();
      for await (const chunk of answer.body) {
        offset += chunk.length;
        failures = 0;
        pace.comes(chunk.length);
        stall.pause(); // a slow disk or unpacker is not the server's fault
        yield chunk;
        stall.touch();
        pace.waits();
      }
      if (known.totalBytes === undefined || offset === known.totalBytes) return;
      if (offset > known.totalBytes) throw new SourceChanged(`${source} sent more than it had said`);
      throw new Error(`the connection ended after ${offset} of ${known.totalBytes} bytes`);
    } catch (error) {
      if (context.signal.aborted) throw new DriverError('Aborted', `fetching ${source} was given up`, error);
      if (error instanceof DriverError || error instanceof SourceChanged) throw error;
      if (offset > 0 && known.validator === undefined && !context.checksummed)
        throw new SourceChanged('the server cannot resume', { cause: error });
      failures++;
      const why = stall.signal.aborted ? `nothing came for ${context.stallTimeoutMs} ms` : describeCause(error);
      if (failures >= context.attemptsMax) {
        throw new DriverError(
          'ImageUnavailable',
          `cannot fetch ${source}: ${why}, ${failures} times in a row; look whether this host reaches the server`,
          error,
        );
      }
    } finally {
      stall.end();
      answer?.close();
    }
    await sleep(
      context.clock,
      backoffMs(failures, { delayMsMin: 250, delayMsMax: 10_000 }, context.prng),
      context.signal,
    );
  }
}

/** Throws when a server drips: each byte comes in time, and the image in a year. */
function paceOf({ clock, slowWindowMs, slowBytesMin }: SourceContext, source: string) {
  let [waitedMs, bytes, slowWindows, sinceMs] = [0, 0, 0, 0];
  return {
    waits(): void {
      sinceMs = clock.monotonicMs();
    },
    comes(length: number): void {
      waitedMs += clock.monotonicMs() - sinceMs;
      bytes += length;
      if (waitedMs < slowWindowMs) return;
      slowWindows = bytes < slowBytesMin ? slowWindows + 1 : 0;
      if (slowWindows === 2) {
        const message = `cannot fetch ${source}: only ${bytes} bytes came in the last ${Math.round(waitedMs)} ms; try again later, or give the image a mirror`;
        throw new DriverError('ImageUnavailable', message);
      }
      [waitedMs, bytes] = [0, 0];
    },
  };
}

interface Asked {
  readonly offset: number;
  readonly known: SourceVersion;
  readonly sameServer: boolean;
  readonly source: string;
  readonly context: SourceContext;
}

async function request(
  { url, headers, get }: RemoteFile,
  { offset, known, sameServer, source, context }: Asked,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const answer = await get(url, {
    signal,
    checksummed: context.checksummed,
    headers: {
      ...headers,
      'accept-encoding': 'identity', // the checksum is of the file as it lies on the server
      ...(offset === 0 ? {} : { range: `bytes=${offset}-` }),
      ...(offset > 0 && sameServer && known.validator !== undefined ? { 'if-range': known.validator } : {}),
    },
  });
  const refuse = (error: Error): never => {
    answer.close();
    throw error;
  };
  const { status } = answer;
  if (offset > 0 && (status === 200 || status === 416))
    return refuse(new SourceChanged('the file on the server is another one now, or it cannot resume'));
  if (status >= 500 || status === 408 || status === 429) return refuse(new Error(`the server answered ${status}`));
  if (status !== (offset === 0 ? 200 : 206))
    return refuse(
      new DriverError(
        'ImageUnavailable',
        `cannot fetch ${source}: the server answered ${status}; check the image's source${status === 401 || status === 403 ? ', and its credential (imageCredentials)' : ''}`,
      ),
    );
  const encoding = answer.header('content-encoding');
  if (encoding !== undefined && encoding !== 'identity')
    return refuse(
      new DriverError(
        'ImageUnavailable',
        `cannot fetch ${source}: the server packs it on the way (${encoding.slice(0, 40)}) though asked not to; use another source`,
      ),
    );
  if (offset > 0) {
    const range = answer.header('content-range') ?? '';
    if (!range.startsWith(`bytes ${offset}-`))
      return refuse(new SourceChanged('the server answered another range than asked'));
    const total = /\/(\d+)$/.exec(range)?.[1];
    if (total !== undefined && known.totalBytes !== undefined && Number(total) !== known.totalBytes)
      return refuse(new SourceChanged(`${source} has a file of another length`));
  }
  return answer;
}

function versionOf(answer: HttpAnswer, offset: number): SourceVersion {
  const etag = answer.header('etag');
  const validator = etag !== undefined && !etag.startsWith('W/') ? etag : answer.header('last-modified');
  const length = Number(answer.header('content-length') ?? Number.NaN);
  return {
    ...(validator === undefined ? {} : { validator }),
    ...(Number.isSafeInteger(length) && length >= 0 ? { totalBytes: offset + length } : {}),
  };
}

function stallGuard({ clock, signal, stallTimeoutMs }: SourceContext) {
  const controller = new AbortController();
  const abort = (): void => controller.abort();
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  let timer = clock.setTimer(stallTimeoutMs, abort);
  const pause = (): void => timer.cancel();
  return {
    signal: controller.signal,
    pause,
    touch: (): void => {
      timer.cancel();
      timer = clock.setTimer(stallTimeoutMs, abort);
    },
    end: (): void => {
      timer.cancel();
      signal.removeEventListener('abort', abort);
    },
  };
}

/** Small enough that unpacking does not wait while a piece is hashed. */
const pieceBytes = 256 * 1024;

/** The bytes of a file on this host. The caller has checked that the path may be read. */
export async function* readLocalFile(
  url: string,
  context: Pick<SourceContext, 'signal' | 'bytesMax'>,
  onVersion: (version: SourceVersion) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const path = localPathOf(url);
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch((error: unknown) => {
    throw new DriverError('ImageUnavailable', `cannot read ${path}: ${describeError(error)}`, error);
  });
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new DriverError('ImageUnavailable', `cannot read ${path}: it is not a regular file`);
    if (stat.size > context.bytesMax) throw tooLarge(url, stat.size, context);
    await onVersion({ totalBytes: stat.size });
    for (let offset = 0; ; ) {
      if (context.signal.aborted) throw new DriverError('Aborted', `reading ${path} was given up`);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(pieceBytes), 0, pieceBytes, offset);
      if (bytesRead === 0) break;
      offset += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

export function localPathOf(url: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw new DriverError('ImageUnavailable', `cannot read ${printableUrl(url)}: write it as file:///path`, error);
  }
}

export function tooLarge(url: string, bytes: number, { bytesMax }: { readonly bytesMax: number }): DriverError {
  return new DriverError(
    'ImageTooLarge',
    `cannot take ${printableUrl(url)}: its ${bytes} bytes are more than the ${bytesMax} that this host takes for one image`,
  );
}

/** Some errors only say that something failed, and keep what happened as the cause. */
function describeCause(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? describeError(error.cause) : describeError(error);
}
