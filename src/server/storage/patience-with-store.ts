// How long the server waits for its store: at start until it is there, at the end no longer than it answers.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { systemPrng } from '../../base/system.ts';
import { keys } from '../../core/state/keys.ts';
import { openStore } from '../../store/open.ts';
import { type Store, StoreError } from '../../store/store.ts';
import { awaitAtMost, throwIfStopped } from '../start/stoppable-start.ts';

/** A store that is not there yet is waited for: on a machine that starts, databases may come up later than we do. */
export async function openWithPatience(
  url: string,
  {
    waitMs,
    log,
    clock,
    signal,
  }: { readonly waitMs: number; readonly log: Logger; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Store> {
  const prng = systemPrng();
  const untilMs = clock.monotonicMs() + waitMs;
  for (let attempt = 0; ; attempt++) {
    try {
      return await openStore(url, { log });
    } catch (error) {
      const mayHelp = error instanceof StoreError && error.code === 'Unavailable';
      const delayMs = backoffMs(attempt, storeRetryDelay, prng);
      const leftMs = untilMs - clock.monotonicMs();
      if (!mayHelp || delayMs > leftMs) throw error;
      const givesUpIn = `${Math.ceil(leftMs / 1_000)} s`;
      log.warn('the store cannot be opened; it is tried again', { givesUpIn, error: error.message });
      await sleep(clock, delayMs, signal);
      throwIfStopped(signal);
    }
  }
}

const storeRetryDelay = { delayMsMin: 200, delayMsMax: 5_000 };

/** What a store that does not answer leaves open is as after a crash, which loses nothing. */
export async function closeWithStore(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  close: () => Promise<void>,
): Promise<void> {
  let answers = false;
  const asked = store.get(keys.cluster).then(
    () => void (answers = true),
    () => undefined, // it is away
  );
  const closing = close();
  closing.catch(() => undefined); // while the store is asked; below it is told
  await awaitAtMost(asked, { graceMs: silentStoreMsMax, clock });
  await awaitAtMost(closing, { graceMs: answers ? closeMsMax : silentStoreMsMax, clock });
}

const closeMsMax = 10_000;
const silentStoreMsMax = 1_000;
