// The bytes of an image's source, from http, https or a file, once each and in order. A broken or stalled download goes on
// where it was; if the server's file has changed meanwhile, `SourceChanged` says to begin anew. Never mixes two versions.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { DriverError } from '../drivers/driver.ts';

export interface SourceContext {
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly signal: AbortSignal;
  /** Nothing came for so long: the connection is given up and made again. */
  readonly stallTimeoutMs: number;
  /** Attempts in a row that bring not one byte. */
  readonly attemptsMax: number;
  readonly bytesMax: number;
  /** A plain http redirect is followed from https only when a checksum protects the content. */
  readonly checksummed: boolean;
}

/** What the server said of its file: enough to ask later whether it is still the same. */
export interface SourceVersion {
  /** A strong ETag or a Last-Modified date; absent when the download cannot be resumed. */
  readonly validator?: string;
  readonly totalBytes?: number;
}

export class SourceChanged extends Error {
  override name = 'SourceChanged';
}

/** The bytes from `offset` on. `known` is what was said when the first ones came; `onVersion` is told it before any byte. */
export async function* readHttp(
  url: string,
  from: { readonly offset: number; readonly known: SourceVersion },
  context: SourceContext,
  onVersion: (version: SourceVersion) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  let offset = from.offset;
  let known = from.known;
  let failures = 0;
  for (;;) {
    if (known.totalBytes !== undefined && offset === known.totalBytes) return;
    const stall = stallGuard(context);
    try {
      const response = await request(url, offset, known, context, stall.signal);
      const version = versionOf(response, offset);
      if (offset === 0) {
        known = version;
        await onVersion(known);
      }
      if (known.totalBytes !== undefined && known.totalBytes > context.bytesMax)
        throw tooLarge(url, known.totalBytes, context);
      for await (const chunk of response.body ?? []) {
        stall.touch();
        offset += chunk.length;
        failures = 0;
        stall.pause(); // a slow disk or unpacker is not the server's fault
        yield chunk;
        stall.touch();
      }
      if (known.totalBytes === undefined || offset === known.totalBytes) return;
      if (offset > known.totalBytes) throw new SourceChanged(`${printableUrl(url)} sent more than it had said`);
      throw new Error(`the connection ended after ${offset} of ${known.totalBytes} bytes`);
    } catch (error) {
      if (context.signal.aborted) throw new DriverError('Aborted', `fetching ${printableUrl(url)} was given up`, error);
      if (error instanceof DriverError || error instanceof SourceChanged) throw error;
      if (offset > 0 && known.validator === undefined)
        throw new SourceChanged('the server cannot resume', { cause: error });
      failures++;
      const why = stall.signal.aborted ? `nothing came for ${context.stallTimeoutMs} ms` : describeCause(error);
      if (failures >= context.attemptsMax) {
        throw new DriverError(
          'ImageUnavailable',
          `cannot fetch ${printableUrl(url)}: ${why}, ${failures} times in a row; look whether this host reaches the server`,
          error,
        );
      }
    } finally {
      stall.end();
    }
    await sleep(
      context.clock,
      backoffMs(failures, { delayMsMin: 250, delayMsMax: 10_000 }, context.prng),
      context.signal,
    );
  }
}

async function request(
  url: string,
  offset: number,
  known: SourceVersion,
  context: SourceContext,
  signal: AbortSignal,
): Promise<Response> {
  const response = await context.fetch(url, {
    signal,
    headers: {
      'accept-encoding': 'identity', // the checksum is of the file as it lies on the server
      ...(offset === 0 ? {} : { range: `bytes=${offset}-`, 'if-range': known.validator ?? '' }),
    },
  });
  const refuse = async (error: Error): Promise<never> => {
    try {
      await response.body?.cancel();
    } catch {
      // The connection is of no more use either way; the refusal is what counts.
    }
    throw error;
  };
  if (url.startsWith('https:') && response.url.startsWith('http:') && !context.checksummed)
    return refuse(
      new DriverError(
        'ImageUnavailable',
        `cannot fetch ${printableUrl(url)}: it redirects to plain http; give the image a checksum, or another source`,
      ),
    );
  const { status } = response;
  if (offset > 0 && (status === 200 || status === 416))
    return refuse(new SourceChanged('the file on the server is another one now'));
  if (status >= 500 || status === 408 || status === 429) return refuse(new Error(`the server answered ${status}`));
  if (status !== (offset === 0 ? 200 : 206))
    return refuse(
      new DriverError(
        'ImageUnavailable',
        `cannot fetch ${printableUrl(url)}: the server answered ${status}; check the image's source`,
      ),
    );
  const encoding = response.headers.get('content-encoding');
  if (encoding !== null && encoding !== 'identity')
    return refuse(
      new DriverError(
        'ImageUnavailable',
        `cannot fetch ${printableUrl(url)}: the server packs it on the way (${encoding.slice(0, 40)}) though asked not to; use another source`,
      ),
    );
  if (offset > 0 && !response.headers.get('content-range')?.startsWith(`bytes ${offset}-`))
    return refuse(new SourceChanged('the server answered another range than asked'));
  return response;
}

function versionOf(response: Response, offset: number): SourceVersion {
  const etag = response.headers.get('etag');
  const validator = etag !== null && !etag.startsWith('W/') ? etag : response.headers.get('last-modified');
  const length = Number(response.headers.get('content-length') ?? Number.NaN);
  return {
    ...(validator === null ? {} : { validator }),
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
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(1024 * 1024), 0, 1024 * 1024, offset);
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

/** Without password and query: they may hold secrets. */
export function printableUrl(url: string): string {
  if (!URL.canParse(url)) return 'the source';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** undici says "fetch failed" or "terminated" and keeps what happened as the cause. */
function describeCause(error: unknown): string {
  return error instanceof Error && error.cause instanceof Error ? describeError(error.cause) : describeError(error);
}
