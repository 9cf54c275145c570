// Preload: fetches the images that operators want on this host before a guest needs them, reports failures, and has the cache remove
// images that are no longer wanted. Best effort: a guest that needs an image fetches it anyway. What fails is tried again ever more rarely,
// until something else is wanted.

import { ImageSpec } from '../api/agent-protocol.ts';
import { isContainerImage } from '../api/container-image.ts';
import { matches } from '../api/parse.ts';
import type { HostImage } from '../api/resources/host.ts';
import { imageKey } from '../api/resources/image.ts';
import { DottedName } from '../api/resources/metadata.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { isRecord } from '../base/is-record.ts';
import { describeError, type Logger } from '../base/log.ts';
import { createPlaces } from '../base/places.ts';
import type { HostImageCache } from './images/create-image-cache.ts';
import type { ImageCache, ImageProgress } from './images/image-cache.ts';

export interface PreloadOptions {
  /** `GET /v1/hosts/{host}/images`, as it came. */
  readonly listImages: (signal: AbortSignal) => Promise<unknown>;
  readonly cache: ImageCache & Partial<Pick<HostImageCache, 'clean'>>;
  readonly hostName: string;
  readonly architecture: 'amd64' | 'arm64';
  readonly drivers: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

export interface Preloader {
  /** Goes on until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** What this host has, and what it could not get, for its report. */
  images(): Promise<HostImage[]>;
}

const roundMs = 60_000;
const retryMsMax = 60 * 60_000; // a server that serves a bad image is not asked for gigabytes of it every minute
const progressEveryMs = 5000;
/** Fetched from at the same time: more than images come from, so that some slow ones leave room for others. */
const serversMax = 8;
const problemLengthMax = 512;

interface Wanted {
  readonly name: string;
  readonly spec: ImageSpec;
  /** Another one after every change of the image, whatever it was: a change is worth a try. */
  readonly version: string;
}

/** How the last try for a wanted image ended. */
interface Outcome {
  readonly version: string;
  readonly key: string;
  readonly failures: number;
  readonly retryAtMs: number;
  /** Of what was fetched; absent after a failure. */
  readonly digest?: string;
  readonly problem?: string;
}

export function createPreloader(options: PreloadOptions): Preloader {
  const { cache, clock, log } = options;
  const outcomes = new Map<string, Outcome>();
  const places = createPlaces(serversMax);
  /** By server: what is still to be fetched from it, as the last round found it. */
  const due = new Map<string, Wanted[]>();
  /** Servers that something is being fetched from. */
  const working = new Map<string, Promise<void>>();

  const round = async (signal: AbortSignal): Promise<void> => {
    let listed: unknown;
    try {
      listed = await options.listImages(signal);
    } catch (error) {
      if (!signal.aborted) log.debug('cannot ask which images to preload', { error: describeError(error) });
      return;
    }
    const known = imagesIn(listed);
    const place = { hostName: options.hostName, pool: poolIn(listed) };
    const images = known.filter(({ spec }) => fits(spec, options) && isWantedOn(spec, place));
    await cache.clean?.({
      kept: [...images, ...known.filter(({ spec }) => spec.pinned === true)].map(({ spec }) => spec),
    });
    for (const name of outcomes.keys()) if (!images.some((image) => image.name === name)) outcomes.delete(name);
    for (const [server, ofServer] of byServer(images)) {
      due.set(server, [...ofServer]);
      if (!working.has(server)) working.set(server, fetchFrom(server, signal));
    }
  };

  /** One after the other from one server: a guest's own pull from it shall not compete with more. A slow server keeps no other waiting. */
  const fetchFrom = async (server: string, signal: AbortSignal): Promise<void> => {
    const leave = await places.enter(signal);
    try {
      for (;;) {
        const image = due.get(server)?.shift();
        if (image === undefined || signal.aborted) return;
        const before = outcomes.get(image.name);
        const same = before?.version === image.version ? before : undefined;
        if (same !== undefined && clock.monotonicMs() < same.retryAtMs) continue;
        await fetchOne(image, same?.failures ?? 0, signal);
      }
    } finally {
      working.delete(server);
      leave();
    }
  };

  const fetchOne = async ({ name, spec, version }: Wanted, failures: number, signal: AbortSignal): Promise<void> => {
    const key = imageKey(spec);
    try {
      const { digest } = await cache.ensure(name, spec, { signal, onProgress: progressLog(options, name) });
      outcomes.set(name, { version, key, failures: 0, retryAtMs: 0, digest });
    } catch (error) {
      if (signal.aborted) return;
      const problem = describeError(error);
      const delayMs = Math.min(retryMsMax, roundMs * 2 ** Math.min(failures, 10));
      log.warn('cannot preload an image; trying again later', { image: name, error: problem, delayMs });
      const retryAtMs = clock.monotonicMs() + delayMs;
      outcomes.set(name, {
        version,
        key,
        failures: failures + 1,
        retryAtMs,
        problem: problem.slice(0, problemLengthMax),
      });
    }
  };

  return {
    async run(signal) {
      while (!signal.aborted) {
        await round(signal);
        await sleep(clock, roundMs, signal);
      }
      await Promise.all(working.values());
    },
    async images() {
      const here = await cache.list();
      const fetched = here.map((image): HostImage => {
        const outcome = outcomes.get(image.name);
        return outcome?.digest === image.digest ? { ...image, key: outcome.key } : image;
      });
      const missing = [...outcomes].flatMap(([name, { key, problem }]): HostImage[] =>
        problem === undefined ? [] : [{ name, digest: '', sizeBytes: 0, key, problem }],
      );
      return [...fetched, ...missing];
    },
  };
}

/** In the order of their first image. */
function byServer(images: readonly Wanted[]): ReadonlyMap<string, readonly Wanted[]> {
  return Map.groupBy(images, ({ spec: { source } }) => (URL.canParse(source) ? new URL(source).host : source));
}

/** Says how far a download is, now and then. */
function progressLog({ clock, log }: PreloadOptions, image: string): (progress: ImageProgress) => void {
  let saidAtMs = clock.monotonicMs(); // one that ends sooner is not worth a word
  return ({ stage, doneBytes, totalBytes }) => {
    if (clock.monotonicMs() - saidAtMs < progressEveryMs) return;
    saidAtMs = clock.monotonicMs();
    log.info('preloading an image', { image, stage, doneBytes, totalBytes });
  };
}

function fits(spec: ImageSpec, { architecture, drivers }: PreloadOptions): boolean {
  if (spec.architecture !== architecture) return false;
  if (isContainerImage(spec)) return false; // its engine fetches it, when it is first asked for
  return spec.backend === undefined || drivers.includes(spec.backend);
}

/** Whether operators want the image on this host before anyone asks for it. */
function isWantedOn(
  { preload, prefetch }: ImageSpec,
  { hostName, pool }: { readonly hostName: string; readonly pool: string | undefined },
): boolean {
  if (preload) return true;
  return prefetch?.hosts.includes(hostName) === true || (pool !== undefined && prefetch?.pools.includes(pool) === true);
}

/** The pool that the control plane has this host in. */
function poolIn(listed: unknown): string | undefined {
  const { pool } = isRecord(listed) ? listed : {};
  return typeof pool === 'string' ? pool : undefined;
}

/** Items of another version of the control plane that make no sense here are passed over. */
function imagesIn(listed: unknown): Wanted[] {
  const { items } = isRecord(listed) ? listed : {};
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const { metadata, spec } = isRecord(item) ? item : {};
    const { name, revision } = isRecord(metadata) ? metadata : {};
    if (!matches(DottedName, name) || !matches(ImageSpec, spec)) return [];
    return [{ name, spec, version: `${imageKey(spec)}/${String(revision)}` }];
  });
}
