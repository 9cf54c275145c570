// Processes a queue of keys: several keys concurrently, a single key never twice at a time. An error is passed to
// `failed` and ends nothing else.

import type { Clock } from '../clock.ts';
import { createWorkQueue } from './work-queue.ts';

export interface Workers<Key> {
  add(key: Key): void;
  addAfter(key: Key, delayMs: number): void;
  /** Takes no more keys; resolves when the work in progress has ended. */
  close(): Promise<void>;
}

export interface WorkersOptions<Key> {
  readonly clock: Clock;
  /** Maximum number of keys processed at the same time. */
  readonly concurrency: number;
  readonly work: (key: Key) => Promise<void>;
  /** May add the key again. Must not throw. */
  readonly failed: (key: Key, error: unknown) => void;
}

/** Work never starts inside `add`, always in a later turn, so that the caller's own state is complete first. */
export function startWorkers<Key>(options: WorkersOptions<Key>): Workers<Key> {
  const running = new Set<Promise<void>>();
  let scheduled = false;

  const queue = createWorkQueue<Key>({ clock: options.clock, onReady: () => schedule() });

  const schedule = (): void => {
    if (scheduled) return;
    scheduled = true;
    void Promise.resolve().then(() => {
      scheduled = false;
      handOut();
    });
  };

  const handOut = (): void => {
    while (running.size < options.concurrency) {
      const key = queue.take();
      if (key === undefined) return;
      const work = perform(key).finally(() => {
        running.delete(work);
        queue.done(key);
        schedule();
      });
      running.add(work);
    }
  };

  const perform = async (key: Key): Promise<void> => {
    try {
      await options.work(key);
    } catch (error) {
      options.failed(key, error);
    }
  };

  return {
    add: queue.add,
    addAfter: queue.addAfter,
    async close() {
      queue.close();
      while (running.size > 0) await Promise.all(running);
    },
  };
}
