// The record of a run: the store's log as it comes, and when each commit was made at the earliest. Checkers are fed from here, with a
// view of the world of guests that shows only what surely was so when a commit was made.
//
// The log is read a moment after it is written, so the guests of now are not those of then. What a checker may be shown is what has not
// changed since a time at which the commit was not made yet: that spans the commit. Two kinds are shown others: those that must know of
// a guest before any commit that tells of it, and those that must know of a commit before what it lets happen to a guest.

import { systemClock } from '../../src/base/system.ts';
import type { FakeGuest, FakeWorld } from '../../src/agent/drivers/fake/world.ts';
import type { Checker, Facts, SentReport, ServerLife } from '../../src/sim/checkers/checker.ts';
import { checkers as factories } from '../../src/sim/checkers/registry.ts';
import { restartChecker } from '../../src/sim/checkers/restart.ts';
import { toldStartChecker } from '../../src/sim/checkers/told-start.ts';
import { undisturbedChecker } from '../../src/sim/checkers/undisturbed.ts';
import { type Commit, createHistory, type History } from '../../src/sim/history.ts';
import type { Intents } from '../../src/sim/intents.ts';
import { conditionOf } from '../../src/core/state/conditions.ts';
import type { Policy } from '../../src/core/state/context.ts';
import type { AnyRecord } from '../../src/core/state/records.ts';
import { type Revision, type Store, StoreError, type WatchEvent } from '../../src/store/store.ts';
import { LateGuests, type Moment } from './late-guests.ts';

export interface Violation {
  /** Number of the invariant in docs/ARCHITECTURE.md; 0: one without a number. */
  readonly invariant: number;
  readonly message: string;
}

interface Sight {
  readonly atMs: number;
  readonly revision: Revision;
}

const lookEveryMs = 200;

/** They must know of a guest before any commit that tells of it. */
const needsGuestsFirst: ReadonlySet<unknown> = new Set([toldStartChecker]);

/** They must know of a commit before what it lets happen to a guest. */
const needsCommitsFirst: ReadonlySet<unknown> = new Set([restartChecker, undisturbedChecker]);

export class RunRecord {
  readonly history: History = createHistory();
  readonly checkers: readonly Checker[];
  readonly violations: Violation[] = [];
  readonly facts: Facts;
  readonly #world: FakeWorld;
  readonly #late: LateGuests;
  /** When they see guests: at once, when the log has been read past their changes, once they have been so for a while. */
  readonly #earlyCheckers: readonly Checker[];
  readonly #lateCheckers: readonly Checker[];
  readonly #otherCheckers: readonly Checker[];
  readonly #serverLives: ServerLife[] = [];
  readonly #guestsSinceMs = new Map<string, number>();
  readonly #listeners = new Set<(commit: Commit) => void>();
  /** When the store was known to be at which revision. */
  #sights: Sight[] = [];
  /** What is shown of guests has been so since before this. */
  #certainSinceMs = Number.POSITIVE_INFINITY;
  /** By the wall clock: the last commit was made then or later. Leases tell it, so it is about a second behind. */
  #committedFromMs = 0;
  /** The same; while all rests, the time of the last look. */
  #committedAtMs = 0;

  constructor(options: {
    readonly world: FakeWorld;
    readonly hosts: readonly string[];
    readonly intents: Intents;
    readonly policy: Policy;
  }) {
    const { world, hosts, intents, policy } = options;
    this.#world = world;
    this.#late = new LateGuests({ world, hosts, clock: systemClock });
    for (const host of hosts)
      world.onChange(host, (instanceId) => {
        this.#judgeGuest(this.#earlyCheckers, host, instanceId);
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
      serverLives: this.#serverLives,
    };
    const late: Facts = {
      ...this.facts,
      world: this.#late.world,
      // A commit was made now at the latest, so what it permits never seems to have ended before it did.
      nowMs: () => this.#late.changedAtMs ?? systemClock.nowMs(),
    };
    const made = (which: (create: unknown) => boolean, shown: Facts): readonly Checker[] =>
      factories.filter(which).map((create) => create(shown));
    this.#earlyCheckers = made((each) => needsGuestsFirst.has(each), { ...this.facts, world });
    this.#lateCheckers = made((each) => needsCommitsFirst.has(each), late);
    this.#otherCheckers = made((each) => !needsGuestsFirst.has(each) && !needsCommitsFirst.has(each), this.facts);
    this.checkers = [...this.#earlyCheckers, ...this.#lateCheckers, ...this.#otherCheckers];
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
      // Whatever the last commit was later than, so is the next.
      this.#tellLate(({ nowMs }) => nowMs < this.#committedFromMs);
      const commit = this.history.record({ ok: true, revision }, events.slice(i, end));
      i = end;
      if (commit) this.#judge(commit);
    }
    this.#tellSighted();
  }

  #judge(commit: Commit): void {
    this.#certainSinceMs =
      this.#sights.findLast((sight) => sight.revision < commit.revision)?.atMs ?? Number.NEGATIVE_INFINITY;
    for (const { after } of commit.events) this.#committedFromMs = Math.max(this.#committedFromMs, decidedAtMs(after));
    this.#committedAtMs = Math.max(this.#committedAtMs, this.#committedFromMs);
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
        this.#tellSighted();
      }
      await pause(lookEveryMs);
    }
  }

  #judgeGuests(guests: readonly { host: string; instanceId: string }[], atMs: number): void {
    this.#certainSinceMs = atMs;
    for (const { host, instanceId } of guests) this.#judgeGuest(this.#otherCheckers, host, instanceId);
  }

  #judgeGuest(checkers: readonly Checker[], host: string, instanceId: string): void {
    for (const checker of checkers) {
      const fault = checker.onGuest?.(host, instanceId);
      if (fault !== undefined) this.violate(checker.invariant, fault);
    }
  }

  /** Of what changed before a time at which the store had no more than has been read. */
  #tellSighted(): void {
    const sight = this.#sights.findLast(({ revision }) => revision <= this.revision);
    if (sight) this.#tellLate(({ monotonicMs }) => monotonicMs < sight.atMs);
  }

  #tellLate(isTime: (at: Moment) => boolean): void {
    this.#late.tell(isTime, (host, instanceId) => this.#judgeGuest(this.#lateCheckers, host, instanceId));
  }

  /** The log has been read to its end: nothing waits for more of it. */
  end(): void {
    this.#tellLate(() => true);
  }

  /** A control plane begins; what it returns is to be called at its end. */
  onServerStart(): () => void {
    const life: ServerLife = { startedMs: systemClock.nowMs() };
    this.#serverLives.push(life);
    return () => {
      life.endedMs = systemClock.nowMs();
    };
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

/**
 * By the wall clock: a commit with this record was made then or later. Of a host it is when its silence was decided: one that has just been
 * started may decide before any lease is renewed.
 */
function decidedAtMs(record: AnyRecord | null): number {
  if (record?.kind === 'leaderLease' || record?.kind === 'lease') return record.renewedAtMs;
  return record?.kind === 'host' ? (conditionOf(record.status.conditions, 'Ready')?.sinceMs ?? 0) : 0;
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
