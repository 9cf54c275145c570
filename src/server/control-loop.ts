// The control loop: store events -> cache -> controllers -> commit. Keys are looked at when something near them changed, when
// they asked for it, and all of them now and then. It never asks why.

import { backoffMs } from '../base/backoff.ts';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { Controller } from '../core/controllers/controller.ts';
import type { DueLine } from '../core/queue/queue.ts';
import type { Cache, StoredEvent } from '../core/state/cache.ts';
import { decodeRecord } from '../core/state/codec.ts';
import { Compacted, type Store, type WatchEvent } from '../store/store.ts';
import { contextOf, type Decider } from './decide.ts';

interface Task {
  readonly controller: Controller;
  readonly key: string;
}

/** A full pass finds what a lost wake-up left; it costs one reconcile per key. */
const fullPassMs = 60_000;
/** Between two portions of a full pass: a million keys take some eight seconds. */
const passPauseMs = 2;
const retryDelay = { delayMsMin: 10, delayMsMax: 5_000 };
const storeRetryDelay = { delayMsMin: 100, delayMsMax: 5_000 };
/** Reconciles in one go before requests get their turn: some milliseconds. */
const tasksPerTurnMax = 256;
const listPage = 10_000;

export class ControlLoop {
  readonly #decider: Decider;
  readonly #store: Store;
  readonly #controllers: readonly Controller[];
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #stopped = new AbortController();
  readonly #due = new Map<string, Task>();
  /** Of the controllers whose keys compete. */
  readonly #lines = new Map<Controller, DueLine>();
  readonly #timers = new Map<string, Timer>();
  readonly #attempts = new Map<string, number>();
  /** Tasks whose Plan is being committed, and whether something changed near them meanwhile. */
  readonly #committing = new Map<string, { wokenMeanwhile: boolean }>();
  #turnPlanned = false;
  #watching: Promise<void> = Promise.resolve();
  /** Whether the cache follows the store now. */
  ready = false;

  constructor(parts: { decider: Decider; store: Store; controllers: readonly Controller[]; log: Logger }) {
    this.#decider = parts.decider;
    this.#store = parts.store;
    this.#controllers = parts.controllers;
    this.#log = parts.log;
    this.#clock = parts.decider.clock;
  }

  /** Resolves when the cache holds the store's state. Throws when the store cannot be read or holds what is not understood. */
  async start(): Promise<void> {
    const { cache } = this.#decider;
    await this.#load();
    for (const controller of this.#controllers) {
      const line = controller.dueLine?.(cache, this.#decider.policy);
      if (line) this.#lines.set(controller, line);
    }
    cache.onChange((change) => {
      for (const controller of this.#controllers) {
        for (const key of controller.wakes(change, cache)) this.#enqueue(controller, key);
      }
    });
    this.#fullPass();
    this.ready = true;
    this.#watching = this.#follow();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.ready = false;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    this.#due.clear();
    await this.#watching;
  }

  /** Pages may be of different revisions: the watch starts at the first one's, so that nothing in between is missed. */
  async #load(): Promise<void> {
    const entries: StoredEvent[] = [];
    let revision: number | undefined;
    let after: string | undefined;
    do {
      const page = await this.#store.list('', { limit: listPage, ...(after === undefined ? {} : { after }) });
      for (const { key, value, revision: written } of page.entries)
        entries.push({ key, value: decodeRecord(key, value), revision: written });
      revision ??= page.revision;
      after = page.entries.length === listPage ? page.entries.at(-1)?.key : undefined;
    } while (after !== undefined);
    // As they would have come as events: what was made first is listed first.
    entries.sort((a, b) => a.revision - b.revision);
    this.#decider.cache.reset(entries, revision);
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopped;
    const { cache, prng } = this.#decider;
    let compacted = false;
    for (let attempt = 0; !signal.aborted; ) {
      try {
        if (compacted) await this.#load();
        compacted = false;
        for await (const batch of this.#store.watch('', cache.revision, signal)) {
          cache.apply(newsOf(batch, cache), batch.at(-1)?.revision ?? cache.revision);
          this.ready = true;
          attempt = 0;
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#log.warn('lost the store', { error: describeError(error) });
        this.ready = error instanceof Compacted && this.ready;
        compacted ||= error instanceof Compacted;
        await sleep(this.#clock, backoffMs(attempt++, storeRetryDelay, prng), signal);
      }
    }
  }

  /** A portion at a time, so that a fleet of hundreds of thousands stops nobody. */
  #fullPass(tasks = this.#allTasks(), startedAtMs = this.#clock.monotonicMs()): void {
    let ended = false;
    for (let count = 0; count < tasksPerTurnMax && !ended; count++) {
      const next = tasks.next();
      if (next.done) ended = true;
      else this.#enqueue(next.value.controller, next.value.key);
    }
    const again = (): void => (ended ? this.#fullPass() : this.#fullPass(tasks, startedAtMs));
    const afterMs = ended ? Math.max(0, startedAtMs + fullPassMs - this.#clock.monotonicMs()) : passPauseMs;
    this.#timers.set('', this.#clock.setTimer(afterMs, again, { background: true }));
  }

  *#allTasks(): Generator<Task> {
    for (const controller of this.#controllers)
      for (const key of controller.keys(this.#decider.cache)) yield { controller, key };
  }

  #enqueue(controller: Controller, key: string): void {
    const id = `${controller.name} ${key}`;
    const committing = this.#committing.get(id);
    if (committing) {
      // A refused Plan wakes its own key when it is forgotten: it must wait its turn, not spin until the cache has caught up.
      committing.wokenMeanwhile = true;
      return;
    }
    const line = this.#lines.get(controller);
    if (line) line.add(key);
    else this.#due.set(id, { controller, key });
    if (this.#turnPlanned || this.#stopped.signal.aborted) return;
    this.#turnPlanned = true;
    queueMicrotask(() => this.#turn());
  }

  #turn(): void {
    if (this.#stopped.signal.aborted) return;
    for (let count = 0, before = -1; count > before && count < tasksPerTurnMax; ) {
      before = count;
      count = this.#workOff(count); // what came of one line may wake another
    }
    this.#turnPlanned = this.#due.size > 0 || [...this.#lines.values()].some(({ size }) => size > 0);
    if (this.#turnPlanned) this.#clock.setTimer(0, () => this.#turn());
  }

  /** Answers how many tasks the turn has had then. */
  #workOff(countBefore: number): number {
    let count = countBefore;
    for (const [id, task] of this.#due) {
      if (count === tasksPerTurnMax) break;
      count += 1;
      this.#due.delete(id);
      this.#reconcile(id, task);
    }
    for (const [controller, line] of this.#lines) {
      for (; count < tasksPerTurnMax; count++) {
        const key = line.take();
        if (key === undefined) break;
        this.#reconcile(`${controller.name} ${key}`, { controller, key });
      }
    }
    return count;
  }

  #reconcile(id: string, { controller, key }: Task): void {
    const { cache, committer } = this.#decider;
    this.#timers.get(id)?.cancel();
    this.#timers.delete(id);
    try {
      const plan = controller.reconcile(cache, key, contextOf(this.#decider));
      if (plan.requeueAfterMs !== undefined) this.#again(id, { controller, key }, plan.requeueAfterMs);
      if (plan.changes.length === 0) return void this.#attempts.delete(id);
      const committing = { wokenMeanwhile: false };
      this.#committing.set(id, committing);
      const settle = (ok: boolean): void => {
        this.#committing.delete(id);
        if (!ok) return this.#retry(id, { controller, key });
        this.#attempts.delete(id);
        if (committing.wokenMeanwhile) this.#enqueue(controller, key);
      };
      committer.submit(plan).then(
        (outcome) => settle(outcome.ok),
        () => settle(false), // the committer has logged it
      );
    } catch (error) {
      this.#log.error('controller failed', {
        controller: controller.name,
        key,
        error: describeError(error),
        cause: error,
      });
      this.#retry(id, { controller, key });
    }
  }

  #retry(id: string, task: Task): void {
    const attempt = this.#attempts.get(id) ?? 0;
    this.#attempts.set(id, attempt + 1);
    this.#again(id, task, backoffMs(attempt, retryDelay, this.#decider.prng));
  }

  #again(id: string, { controller, key }: Task, afterMs: number): void {
    if (this.#stopped.signal.aborted) return;
    this.#timers.get(id)?.cancel();
    this.#timers.set(
      id,
      this.#clock.setTimer(
        afterMs,
        () => {
          this.#timers.delete(id);
          this.#enqueue(controller, key);
        },
        { background: true },
      ),
    );
  }
}

/** What this process has written itself comes round again, and is not read again. */
function newsOf(batch: readonly WatchEvent[], cache: Cache): StoredEvent[] {
  const news: StoredEvent[] = [];
  for (const { key, value, revision } of batch)
    if (!cache.knows(key, revision)) news.push({ key, value: value && decodeRecord(key, value), revision });
  return news;
}
