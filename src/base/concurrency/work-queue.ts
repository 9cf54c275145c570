// A queue of keys to process. A key is queued at most once and never processed twice at the same time; a key added
// during its processing is queued again afterwards, so no request is lost. It runs nothing itself: see workers.ts.

import type { Clock, Timer } from '../clock.ts';

export interface WorkQueue<Key> {
  /** Queues `key` now. Ends a delay in progress. */
  add(key: Key): void;
  /** Queues `key` after `delayMs`, unless it is queued sooner. Of two delays the shorter counts. */
  addAfter(key: Key, delayMs: number): void;
  /** The key that has waited longest, if any. It is busy until `done`. */
  take(): Key | undefined;
  /** The processing of `key` has ended. */
  done(key: Key): void;
  /** True when no key is queued or busy. Delayed keys do not count. */
  readonly idle: boolean;
  /** Drops all queued keys and accepts no more. */
  close(): void;
}

/** `onReady` is called whenever a key may have become available. */
export function createWorkQueue<Key>(options: {
  readonly clock: Clock;
  readonly onReady?: () => void;
}): WorkQueue<Key> {
  const ready = new Set<Key>(); // in insertion order
  const busy = new Set<Key>();
  const again = new Set<Key>(); // added while busy
  const delayed = new Map<Key, { readonly dueMs: number; readonly timer: Timer }>();
  let closed = false;

  const undelay = (key: Key): void => {
    delayed.get(key)?.timer.cancel();
    delayed.delete(key);
  };

  const add = (key: Key): void => {
    if (closed) return;
    undelay(key);
    if (busy.has(key)) again.add(key);
    else if (!ready.has(key)) {
      ready.add(key);
      options.onReady?.();
    }
  };

  return {
    add,
    addAfter(key, delayMs) {
      if (closed || ready.has(key) || again.has(key)) return;
      const dueMs = options.clock.monotonicMs() + delayMs;
      const before = delayed.get(key);
      if (before !== undefined && before.dueMs <= dueMs) return;
      undelay(key);
      delayed.set(key, { dueMs, timer: options.clock.setTimer(delayMs, () => add(key)) });
    },
    take() {
      for (const key of ready) {
        ready.delete(key);
        busy.add(key);
        return key;
      }
      return undefined;
    },
    done(key) {
      busy.delete(key);
      if (again.delete(key)) add(key);
    },
    get idle() {
      return ready.size === 0 && busy.size === 0;
    },
    close() {
      closed = true;
      ready.clear();
      again.clear();
      for (const { timer } of delayed.values()) timer.cancel();
      delayed.clear();
    },
  };
}
