// Follows the engine's events, and wakes the runs of the containers concerned. Level-triggered: an event only says that a run
// must look again. After the connection to the engine was lost, all runs are woken as soon as it is back.

import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { labels } from './container-config.ts';
import type { Engine } from './engine.ts';

export interface EngineWatch {
  /** Calls `wake` whenever something may have changed for a guest, until the function it returns is called. */
  on(instanceId: string, wake: () => void): () => void;
  close(): void;
}

export interface EngineWatchOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

const retry = { delayMsMin: 100, delayMsMax: 5000 };

/** Connects when the first listener is added, and stays connected. */
export function watchEngine({ engine, clock, prng, log }: EngineWatchOptions): EngineWatch {
  const ears = new Map<string, Set<() => void>>();
  const closing = new AbortController();
  let watching: Promise<void> | undefined;

  const watch = async (): Promise<void> => {
    let away = false;
    for (let attempt = 0; !closing.signal.aborted; attempt++) {
      try {
        // Subscribed first, so that no change is missed between this moment and the look that follows.
        const sinceSeconds = Math.floor(clock.nowMs() / 1000) - 1;
        await engine.version();
        if (away) log.info('the container engine answers again');
        away = false;
        attempt = 0;
        for (const wakes of ears.values()) for (const wake of wakes) wake();
        for await (const { Actor } of engine.events(sinceSeconds, closing.signal)) {
          const wakes = ears.get(Actor.Attributes?.[labels.instance] ?? '');
          for (const wake of wakes ?? []) wake();
        }
      } catch (error) {
        if (!away && !closing.signal.aborted)
          log.warn('the container engine does not answer; guests run on, and it is tried again', {
            error: describeError(error),
          });
        away = true;
      }
      await sleep(clock, backoffMs(attempt, retry, prng), closing.signal);
    }
  };

  return {
    on(instanceId, wake) {
      const wakes = ears.get(instanceId) ?? new Set();
      const own = (): void => wake();
      ears.set(instanceId, wakes.add(own));
      watching ??= watch();
      return () => {
        wakes.delete(own);
        if (wakes.size === 0 && ears.get(instanceId) === wakes) ears.delete(instanceId);
      };
    },
    close: () => closing.abort(),
  };
}
