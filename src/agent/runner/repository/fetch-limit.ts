// Ends one fetch at its time limit, or when its folder has grown too large: git has no limit of its own for either.

import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, sleep } from '../../../base/clock.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { CommitLimits } from './commit-limits.ts';

/** `bytesMax` is of what is fetched, and of the archive. */
export interface FetchLimits extends CommitLimits {
  readonly timeMsMax: number;
  readonly memoryBytesMax: number;
}

/** Each file is limited by the kernel; several files together are seen within this time. */
const lookMs = 500;

export class FetchLimit {
  readonly #end = new AbortController();
  readonly #stopped = new AbortController();
  readonly #watch: Promise<void>;

  constructor(
    { what, folder, limits, signal }: { what: string; folder: string; limits: FetchLimits; signal: AbortSignal },
    clock: Clock,
  ) {
    const aborted = (): void =>
      this.#end.abort(new DriverError('Aborted', `fetching ${what} was given up`, signal.reason));
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    const timer = clock.setTimer(limits.timeMsMax, () =>
      this.#end.abort(
        new DriverError(
          'RepositoryUnavailable',
          `cannot fetch ${what}: it takes longer than ${limits.timeMsMax} ms (repositoryMsMax of the agent)`,
        ),
      ),
    );
    this.#stopped.signal.addEventListener('abort', () => {
      timer.cancel();
      signal.removeEventListener('abort', aborted);
    });
    this.#watch = this.#watchSize({ what, folder, bytesMax: limits.bytesMax, clock });
  }

  /** Aborts when the fetch must end; its reason is a `DriverError`. */
  get signal(): AbortSignal {
    return this.#end.signal;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#watch;
  }

  async #watchSize({
    what,
    folder,
    bytesMax,
    clock,
  }: {
    readonly what: string;
    readonly folder: string;
    readonly bytesMax: number;
    readonly clock: Clock;
  }): Promise<void> {
    const over = AbortSignal.any([this.#end.signal, this.#stopped.signal]);
    for (;;) {
      await sleep(clock, lookMs, over);
      if (over.aborted) return;
      if ((await sizeOf(folder)) <= bytesMax) continue;
      const message = `cannot fetch ${what}: it is larger than ${bytesMax} bytes (repositoryMiBMax of the agent)`;
      this.#end.abort(new DriverError('RepositoryRefused', message));
    }
  }
}

/** What files take on the disk; what is removed meanwhile counts as nothing. Follows no link. */
async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []); // gone meanwhile
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) bytes += await sizeOf(path);
    else
      bytes += await lstat(path).then(
        ({ blocks }) => blocks * 512,
        () => 0,
      ); // gone meanwhile
  }
  return bytes;
}
