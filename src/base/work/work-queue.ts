// A queue of keys that want to be looked at. A key waits at most once and is never handed out twice at the same time; what is
// added while its key is being worked on comes again afterwards, so no wish is lost. It runs nothing itself: see workers.ts.

import type { Clock, Timer } from '../clock.ts';

export interface WorkQueue<Key> {
  /** `key` wants a look now. Ends a delay it may be in. */
  add(key: Key): void;
  /** `key` wants a look after `delayMs`, unless it gets one sooner. Of two delays the shorter counts. */
  addAfter(key: Key, delayMs: number): void;
  /** The key that has waited longest, if there is one. It is busy until `done`. */
  take(): Key | undefined;
  /** The work on `key` is over. */
  done(key: Key): void;
  /** True when no key waits or is busy. Delayed ones do not count. */
  readonly idle: boolean;
  /** Forgets all that waits and takes nothing more. */
  close(): void;
}

/** `onReady` is called whenever there may be something to take that was not there before. */
export function createWorkQueue<Key>(options: {
  readonly clock: Clock;
  readonly onReady?: () => void;
}): WorkQueue<Key> {
  const ready = new Set<Key>(); // in the order of their adding
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
