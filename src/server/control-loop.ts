// The control loop: store events -> cache -> controllers -> commit. A key is reconciled when a related record changed, when its last Plan
// asked for it, and in a periodic full pass. The reason is never passed on. The cache always follows the store; controllers run while this
// control plane leads, and their Plans have the leader's term as a condition.

import { backoffMs } from '../base/backoff.ts';
import { type Buggify, neverBuggify } from '../base/buggify.ts';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { Controller } from '../core/controllers/controller.ts';
import type { DueLine } from '../core/queue/due-lines.ts';
import type { Cache, StoredEvent } from '../core/state/cache.ts';
import { decodeRecord } from '../core/state/codec.ts';
import type { RecordKind } from '../core/state/records.ts';
import { Compacted, type Store, type WatchEvent } from '../store/store.ts';
import { contextOf, type Decider } from './decide.ts';
import type { Fence } from './leadership.ts';
import type { Reconciled } from './metrics/activity.ts';
import { readState } from './storage/read-state.ts';

/** A running controller, with its keys. */
interface Station {
  readonly controller: Controller;
  /** For a controller whose keys compete for resources. */
  line: DueLine | undefined;
  readonly timers: Map<string, Timer>;
  readonly attempts: Map<string, number>;
  /** Keys whose Plan is being committed, and whether they were woken meanwhile. */
  readonly committing: Map<string, { wokenMeanwhile: boolean }>;
}

interface Task {
  readonly station: Station;
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
const smallPage = 7;
const lateMsMax = 500;

export class ControlLoop {
  readonly #decider: Decider;
  readonly #store: Store;
  readonly #stations: readonly Station[];
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #buggify: Buggify;
  readonly #reconciled: (controller: string, result: Reconciled) => void;
  readonly #stopped = new AbortController();
  /** For the controllers without an order of their own. */
  readonly #due = new Map<string, Task>();
  #passTimer: Timer | undefined;
  #turnPlanned = false;
  #watching: Promise<void> = Promise.resolve();
  /** Set while this control plane leads. */
  #fence: Fence | undefined;
  /**
   * The newest revision that the store is known to have. A decision on an older view is mostly refused, and a refusal wakes other keys at once:
   * controllers pause until the cache has caught up.
   */
  #target = Number.POSITIVE_INFINITY;
  #caughtUp = Promise.withResolvers<void>();
  /** Whether the cache follows the store now. */
  ready = false;

  constructor(parts: {
    decider: Decider;
    store: Store;
    controllers: readonly Controller[];
    log: Logger;
    /** Called after each reconcile of a key, for the metrics. */
    reconciled?: (controller: string, result: Reconciled) => void;
  }) {
    this.#reconciled = parts.reconciled ?? (() => {});
    this.#decider = parts.decider;
    this.#store = parts.store;
    this.#stations = parts.controllers.map((controller) => ({
      controller,
      line: undefined,
      timers: new Map<string, Timer>(),
      attempts: new Map<string, number>(),
      committing: new Map<string, { wokenMeanwhile: boolean }>(),
    }));
    this.#log = parts.log;
    this.#clock = parts.decider.clock;
    this.#buggify = parts.decider.buggify ?? neverBuggify;
  }

  /** Resolves when the cache holds the store's state at one revision. Throws when the store cannot be read, or has records of an unknown form. */
  async start(): Promise<void> {
    const { cache } = this.#decider;
    await this.#loadFirst();
    const watchers = new Map<RecordKind, Station[]>();
    for (const station of this.#stations) {
      const { controller } = station;
      for (const kind of controller.watches) watchers.set(kind, [...(watchers.get(kind) ?? []), station]);
    }
    cache.onChange((change) => {
      if (!this.#fence) return;
      for (const station of watchers.get(change.kind) ?? [])
        for (const key of station.controller.wakes(change, cache)) this.#enqueue(station, key);
    });
    this.#watching = this.#follow();
    await this.#caughtUp.promise;
  }

  /** Starts the controllers with a full pass; `fence` is a condition of each of their Plans. */
  lead(fence: Fence): void {
    if (this.#stopped.signal.aborted) return;
    const { cache, policy } = this.#decider;
    this.#fence = fence;
    // Without a leader, heartbeats may have been lost: the silence of every host counts from now.
    cache.silence.forgiveAll();
    for (const station of this.#stations) station.line = station.controller.dueLine?.(cache, policy);
    this.#fullPass();
  }

  /** Pauses the controllers. Plans that they have submitted may still be committed, if this control plane led until then. */
  stepDown(): void {
    this.#fence = undefined;
    this.#passTimer?.cancel();
    for (const { timers, attempts, committing } of this.#stations) {
      for (const timer of timers.values()) timer.cancel();
      timers.clear();
      attempts.clear();
      committing.clear();
    }
    this.#due.clear();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.ready = false;
    this.stepDown();
    this.#caughtUp.resolve();
    await this.#watching;
  }

  /** Reads the store again when it was compacted during the read. Other errors are thrown to the caller. */
  async #loadFirst(): Promise<void> {
    const { signal } = this.#stopped;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return await this.#load();
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Compacted)) throw error;
        this.#log.warn('reading the store again: it was compacted meanwhile', { error: describeError(error) });
        await sleep(this.#clock, backoffMs(attempt, storeRetryDelay, this.#decider.prng), signal);
      }
    }
  }

  async #load(): Promise<void> {
    const { signal } = this.#stopped;
    const options = { signal, ...(this.#buggify('load-small-page') ? { limit: smallPage } : {}) };
    const listing = this.#decider.cache.beginReset();
    const { changes, revision } = await readState(this.#store, listing.take, options);
    listing.end(changes, revision);
    this.#target = revision;
    this.#lookIfCaughtUp();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopped;
    const { cache, prng } = this.#decider;
    let compacted = false;
    let lost = false;
    for (let attempt = 0; !signal.aborted; ) {
      try {
        if (compacted) await this.#load();
        else if (lost) this.#target = (await this.#store.list('', { limit: 1 })).revision;
        compacted = false;
        lost = false;
        this.#lookIfCaughtUp();
        for await (const batch of this.#store.watch('', cache.revision, signal)) {
          cache.apply(newsOf(batch, cache), batch.at(-1)?.revision ?? cache.revision);
          this.#lookIfCaughtUp();
          attempt = 0;
          if (this.#buggify('store-read-anew')) throw new Compacted(cache.revision);
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#log.warn('lost the store', { error: describeError(error) });
        this.ready = false;
        if (error instanceof Compacted) compacted = true;
        else cache.silence.noteDeaf();
        lost = true;
        this.#target = Number.POSITIVE_INFINITY;
        await sleep(this.#clock, backoffMs(attempt++, storeRetryDelay, prng), signal);
      }
    }
  }

  /** Called when the cache holds everything that was in the store when its connection was restored. */
  #lookIfCaughtUp(): void {
    const { cache } = this.#decider;
    if (cache.revision < this.#target || this.#stopped.signal.aborted) return;
    if (this.#target > 0) cache.silence.noteHeard();
    this.#target = 0;
    this.ready = true;
    this.#caughtUp.resolve();
    if (this.#wanted()) this.#planTurn();
  }

  /** In portions: a pass over hundreds of thousands of keys must not delay requests. */
  #fullPass(tasks = this.#allTasks(), startedAtMs = this.#clock.monotonicMs()): void {
    let ended = false;
    for (let count = 0; count < tasksPerTurnMax && !ended; count++) {
      const next = tasks.next();
      if (next.done) ended = true;
      else this.#enqueue(next.value.station, next.value.key);
    }
    const again = (): void => (ended ? this.#fullPass() : this.#fullPass(tasks, startedAtMs));
    const everyMs = this.#buggify('full-pass-early') ? fullPassMs / 20 : fullPassMs;
    const afterMs = ended ? Math.max(0, startedAtMs + everyMs - this.#clock.monotonicMs()) : passPauseMs;
    this.#passTimer = this.#clock.setTimer(afterMs, again, { background: true });
  }

  *#allTasks(): Generator<Task> {
    for (const station of this.#stations)
      for (const key of station.controller.keys(this.#decider.cache)) yield { station, key };
  }

  #enqueue(station: Station, key: string): void {
    if (!this.#fence) return;
    const committing = station.committing.get(key);
    if (committing) {
      // A refused Plan wakes its own key when the cache forgets it: the key waits for its turn, or it would spin until the cache has caught up.
      committing.wokenMeanwhile = true;
      return;
    }
    // A refused key waits for its next attempt, whatever wakes it: mostly the wake-up is an effect of the refusal.
    if (station.attempts.has(key) && station.timers.has(key)) return;
    if (station.line) station.line.add(key);
    else this.#due.set(`${station.controller.name} ${key}`, { station, key });
    this.#planTurn();
  }

  #wanted(): boolean {
    return this.#due.size > 0 || this.#stations.some(({ line }) => line !== undefined && line.size > 0);
  }

  #planTurn(): void {
    if (this.#turnPlanned || !this.#fence || this.#target > 0) return;
    this.#turnPlanned = true;
    if (this.#buggify('reconcile-late')) this.#clock.setTimer(this.#decider.prng.below(lateMsMax), () => this.#turn());
    else queueMicrotask(() => this.#turn());
  }

  #turn(): void {
    this.#turnPlanned = false;
    if (!this.#fence || this.#target > 0) return;
    for (let count = 0, before = -1; count > before && count < tasksPerTurnMax; ) {
      before = count;
      count = this.#workOff(count); // the results of one queue may wake keys of another
    }
    this.#turnPlanned = this.#wanted();
    if (this.#turnPlanned) this.#clock.setTimer(0, () => this.#turn());
  }

  /** Returns the number of tasks done in this turn, `count` included. */
  #workOff(countBefore: number): number {
    let count = countBefore;
    for (const [id, { station, key }] of this.#due) {
      if (count === tasksPerTurnMax) break;
      count += 1;
      this.#due.delete(id);
      this.#reconcile(station, key);
    }
    for (const station of this.#stations) {
      if (!station.line) continue;
      for (; count < tasksPerTurnMax; count++) {
        const key = station.line.take();
        if (key === undefined) break;
        this.#reconcile(station, key);
      }
    }
    return count;
  }

  #reconcile(station: Station, key: string): void {
    const fence = this.#fence;
    if (!fence) return;
    const { cache, committer } = this.#decider;
    const { controller, timers, attempts } = station;
    timers.get(key)?.cancel();
    timers.delete(key);
    try {
      const plan = controller.reconcile(cache, key, contextOf(this.#decider));
      this.#reconciled(controller.name, plan.changes.length === 0 ? 'nothing' : 'plan');
      if (plan.requeueAfterMs !== undefined) this.#again(station, key, plan.requeueAfterMs);
      if (plan.changes.length === 0) return void attempts.delete(key);
      const committing = { wokenMeanwhile: false };
      station.committing.set(key, committing);
      const settle = (ok: boolean): void => {
        if (station.committing.get(key) !== committing) return; // of an earlier term
        station.committing.delete(key);
        if (!ok) return this.#retry(station, key);
        attempts.delete(key);
        if (committing.wokenMeanwhile || this.#buggify('reconcile-again')) this.#enqueue(station, key);
      };
      committer.submit({ ...plan, conditions: [...(plan.conditions ?? []), fence] }).then(
        (outcome) => settle(outcome.ok),
        () => settle(false), // the committer has logged it
      );
    } catch (error) {
      station.committing.delete(key);
      this.#reconciled(controller.name, 'error');
      this.#log.error('controller failed', {
        controller: controller.name,
        key,
        error: describeError(error),
        cause: error,
      });
      this.#retry(station, key);
    }
  }

  #retry(station: Station, key: string): void {
    const attempt = station.attempts.get(key) ?? 0;
    station.attempts.set(key, attempt + 1);
    const longest = this.#buggify('retry-longest');
    this.#again(station, key, longest ? retryDelay.delayMsMax : backoffMs(attempt, retryDelay, this.#decider.prng));
  }

  #again(station: Station, key: string, afterMs: number): void {
    if (!this.#fence) return;
    const { timers } = station;
    timers.get(key)?.cancel();
    timers.set(
      key,
      this.#clock.setTimer(
        afterMs,
        () => {
          timers.delete(key);
          this.#enqueue(station, key);
        },
        { background: true },
      ),
    );
  }
}

/** Events of this process's own commits are not decoded again. */
function newsOf(batch: readonly WatchEvent[], cache: Cache): StoredEvent[] {
  const news: StoredEvent[] = [];
  let own = 0;
  for (const { key, value, revision } of batch) {
    if (revision === own) continue;
    if (cache.isOwn(revision)) own = revision;
    else if (!cache.knows(key, revision)) news.push({ key, value: value && decodeRecord(key, value), revision });
  }
  return news;
}
