// The record of a run: the store's log as it comes, and when each commit was made at the earliest. Checkers are fed from here, with a
// view of the world of guests that shows only what surely was so when a commit was made.
//
// The log is read a moment after it is written, so the guests of now are not those of then. What a checker may be shown is what has not
// changed since a time at which the commit was not made yet: that spans the commit.

import { systemClock } from '../../src/base/system.ts';
import type { FakeGuest, FakeWorld } from '../../src/agent/drivers/fake/world.ts';
import type { Checker, Facts, SentReport } from '../../src/sim/checkers/checker.ts';
import { checkers as factories } from '../../src/sim/checkers/registry.ts';
import { restartChecker } from '../../src/sim/checkers/restart.ts';
import { outageChecker } from '../../src/sim/checkers/outage.ts';
import { undisturbedChecker } from '../../src/sim/checkers/undisturbed.ts';
import { type Commit, createHistory, type History } from '../../src/sim/history.ts';
import type { Intents } from '../../src/sim/intents.ts';
import type { Policy } from '../../src/core/state/context.ts';
import { type Revision, type Store, StoreError, type WatchEvent } from '../../src/store/store.ts';

export interface Violation {
  /** Number in DESIGN §5; 0: what has none there. */
  readonly invariant: number;
  readonly message: string;
}

interface Sight {
  readonly atMs: number;
  readonly revision: Revision;
}

const lookEveryMs = 200;

/** They hold what is committed against what a guest is in that very moment; here the two are heard of over different ways. */
const needsTheMoment: ReadonlySet<unknown> = new Set([restartChecker, undisturbedChecker, outageChecker]);

export class RunRecord {
  readonly history: History = createHistory();
  readonly checkers: readonly Checker[];
  readonly violations: Violation[] = [];
  readonly facts: Facts;
  readonly #world: FakeWorld;
  readonly #guestsSinceMs = new Map<string, number>();
  readonly #listeners = new Set<(commit: Commit) => void>();
  /** When the store was known to be at which revision. */
  #sights: Sight[] = [];
  /** What is shown of guests has been so since before this. */
  #certainSinceMs = Number.POSITIVE_INFINITY;
  /** By the wall clock, as leases tell it: when the last commit was made, to about a second. */
  #committedAtMs = 0;

  constructor(options: {
    readonly world: FakeWorld;
    readonly hosts: readonly string[];
    readonly intents: Intents;
    readonly policy: Policy;
  }) {
    const { world, hosts, intents, policy } = options;
    this.#world = world;
    for (const host of hosts)
      world.onChange(host, (instanceId) => {
        const guest = world.guest(host, instanceId);
        const name = `${host} ${instanceId}`;
        const text = JSON.stringify([guest?.incarnation, guest?.running, guest?.boots]);
        if (this.#texts.get(name) === text) return;
        this.#texts.set(name, text);
        this.#guestsSinceMs.set(name, systemClock.monotonicMs());
      });
    this.facts = {
      state: this.history.state,
      world: {
        guests: (host) => world.guests(host).filter((guest) => this.#isCertain(guest)),
        guest: (host, instanceId) => {
          const guest = world.guest(host, instanceId);
          return guest && this.#isCertain(guest) ? guest : undefined;
        },
        doubleStarts: world.doubleStarts,
      },
      intents,
      nowMs: () => this.#committedAtMs,
      policy,
      excused: { host: () => false, instance: () => false },
      dead: new Set(),
      deaf: () => [],
      servers: () => [],
    };
    this.checkers = factories.filter((each) => !needsTheMoment.has(each)).map((create) => create(this.facts));
  }

  readonly #texts = new Map<string, string>();

  #isCertain({ host, instanceId }: FakeGuest): boolean {
    return (this.#guestsSinceMs.get(`${host} ${instanceId}`) ?? Number.POSITIVE_INFINITY) < this.#certainSinceMs;
  }

  /** About when the last commit was made, on the monotonic clock. */
  get committedAtMs(): number {
    return this.#committedAtMs - systemClock.nowMs() + systemClock.monotonicMs();
  }

  get revision(): Revision {
    return this.history.commits.at(-1)?.revision ?? 0;
  }

  /** Calls `listener` after each commit, until the function it returns is called. */
  onCommit(listener: (commit: Commit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onReport(sent: SentReport): void {
    for (const checker of this.checkers) checker.onReport?.(sent);
  }

  violate(invariant: number, message: string): void {
    if (this.violations.length < 100) this.violations.push({ invariant, message });
  }

  /** Takes in what the store's watch has given, whole revisions. */
  take(events: readonly WatchEvent[]): void {
    for (let i = 0; i < events.length; ) {
      const revision = events[i]?.revision ?? 0;
      let end = i;
      while (events[end]?.revision === revision) end++;
      if (revision <= this.revision) this.violate(6, `the log went back from revision ${this.revision} to ${revision}`);
      else if (revision !== this.revision + 1)
        this.violate(6, `the log has revision ${revision} after ${this.revision}`);
      const commit = this.history.record({ ok: true, revision }, events.slice(i, end));
      i = end;
      if (commit) this.#judge(commit);
    }
  }

  #judge(commit: Commit): void {
    this.#certainSinceMs =
      this.#sights.findLast((sight) => sight.revision < commit.revision)?.atMs ?? Number.NEGATIVE_INFINITY;
    for (const { after } of commit.events)
      if (after?.kind === 'leaderLease' || after?.kind === 'lease')
        this.#committedAtMs = Math.max(this.#committedAtMs, after.renewedAtMs);
    for (const checker of this.checkers) {
      const fault = checker.onCommit?.(commit);
      if (fault !== undefined) this.violate(checker.invariant, `revision ${commit.revision}: ${fault}`);
    }
    for (const listener of this.#listeners) listener(commit);
  }

  /** Follows `store` until `signal` aborts. What the store cannot say now it says later. */
  async follow(store: Store, signal: AbortSignal): Promise<void> {
    await Promise.all([this.#read(store, signal), this.#look(store, signal)]);
  }

  async #read(store: Store, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        for await (const events of store.watch('', this.revision, signal)) {
          // Agents tell us of a report before they send it, over another socket: what has arrived there is read first.
          await pause(20);
          this.take(events);
        }
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        await pause(lookEveryMs);
      }
    }
  }

  /** The store was at `revision` at `atMs` or later. */
  sight(atMs: number, revision: Revision): void {
    this.#sights = [...this.#sights.slice(-500), { atMs, revision }];
  }

  /** Notes where the store is; once the log has been read so far, guests are held against it. */
  async #look(store: Store, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const atMs = systemClock.monotonicMs();
      const guests = this.#world.guests().map(({ host, instanceId }) => ({ host, instanceId }));
      const revision = await headOf(store);
      if (revision !== undefined) {
        this.sight(atMs, revision);
        const deadlineMs = atMs + 10 * lookEveryMs;
        while (this.revision < revision && systemClock.monotonicMs() < deadlineMs) await pause(20);
        if (this.revision >= revision) this.#judgeGuests(guests, atMs);
      }
      await pause(lookEveryMs);
    }
  }

  #judgeGuests(guests: readonly { host: string; instanceId: string }[], atMs: number): void {
    this.#certainSinceMs = atMs;
    for (const { host, instanceId } of guests)
      for (const checker of this.checkers) {
        const fault = checker.onGuest?.(host, instanceId);
        if (fault !== undefined) this.violate(checker.invariant, fault);
      }
  }

  /** What is not as it must be at rest; all that is now may be shown. */
  *unrest(): Iterable<Violation> {
    this.#certainSinceMs = Number.POSITIVE_INFINITY;
    this.#committedAtMs = systemClock.nowMs();
    for (const checker of this.checkers) {
      for (const message of checker.unrest?.() ?? []) yield { invariant: checker.invariant, message };
      const overdue = checker.overdue?.();
      if (overdue !== undefined) yield { invariant: checker.invariant, message: overdue };
    }
  }
}

/** Undefined when the store does not say. */
export async function headOf(store: Store): Promise<Revision | undefined> {
  try {
    return (await store.list('cluster/', { limit: 1 })).revision;
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}

const pause = (delayMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, delayMs));
