// Fetches the images that operators want on every host before anyone asks for them. Best effort: a guest that needs an image
// fetches it anyway, and what fails here is tried again in the next round.

import { isRecord } from '../base/is-record.ts';
import { ImageSpec } from '../api/agent-protocol.ts';
import { matches } from '../api/parse.ts';
import { DottedName } from '../api/resources/metadata.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { ImageCache } from './images/image-cache.ts';

export interface PreloadOptions {
  /** `GET /v1/hosts/{host}/images`, as it came. */
  readonly listImages: (signal: AbortSignal) => Promise<unknown>;
  readonly cache: ImageCache;
  readonly architecture: 'amd64' | 'arm64';
  readonly drivers: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

const roundMs = 60_000;

/** Goes on until `signal` aborts. Never rejects. */
export async function preloadImages(options: PreloadOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await preloadOnce(options, signal);
    await sleep(options.clock, roundMs, signal);
  }
}

async function preloadOnce(options: PreloadOptions, signal: AbortSignal): Promise<void> {
  const { cache, log } = options;
  let listed: unknown;
  try {
    listed = await options.listImages(signal);
  } catch (error) {
    if (!signal.aborted) log.debug('cannot ask which images to preload', { error: describeError(error) });
    return;
  }
  // One after the other: a guest's own pull shall not compete with more than one of these.
  for (const { name, spec } of imagesIn(listed)) {
    if (signal.aborted) return;
    if (!wanted(spec, options)) continue;
    try {
      await cache.ensure(name, spec, { signal });
    } catch (error) {
      if (!signal.aborted) {
        log.warn('cannot preload an image; trying again later', { image: name, error: describeError(error) });
      }
    }
  }
}

function wanted(spec: ImageSpec, { architecture, drivers }: PreloadOptions): boolean {
  if (!spec.preload || spec.architecture !== architecture) return false;
  return spec.backend === undefined || drivers.includes(spec.backend);
}

/** Items of another version of the control plane that make no sense here are passed over. */
function imagesIn(listed: unknown): { name: string; spec: ImageSpec }[] {
  const { items } = isRecord(listed) ? listed : {};
  if (!Array.isArray(items)) return [];
  return items.flatMap((item: unknown) => {
    const { metadata, spec } = isRecord(item) ? item : {};
    const name = isRecord(metadata) ? metadata['name'] : undefined;
    return matches(DottedName, name) && matches(ImageSpec, spec) ? [{ name, spec }] : [];
  });
}
