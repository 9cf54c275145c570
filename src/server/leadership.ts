// Keeps this control plane's claim to lead: takes over when nobody leads, renews while it does, steps down by its own clock when it
// cannot. It only ever asks for Plans; whether they hold is for the store to say.

import type { Clock, Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { endLeadership, renewLeadership, takeLeadership } from '../core/operations/servers/leadership.ts';
import { whyClosed } from '../core/state/cluster-state.ts';
import { keys } from '../core/state/keys.ts';
import { contextOf, type Decider } from './decide.ts';

export interface LeadershipParts {
  readonly decider: Decider;
  readonly log: Logger;
  /** Who this is, the same after a restart; two that run at once have two names. */
  readonly holder: string;
  readonly leaseMs: number;
  /** Nobody else can have the store open: there is nothing to wait for, and nobody to tell. */
  readonly alone: boolean;
  /** Whether the cache follows the store now: who does not hear others must not count their silence. */
  readonly follows: () => boolean;
  onLead(fence: Fence): void;
  onStepDown(): void;
}

/** What a leader's Plans rest on: the record of its term. */
export interface Fence {
  readonly key: string;
  readonly ifRevision: number;
}

interface Reign {
  readonly term: number;
  readonly fence: Fence;
  /** When the lease was last renewed, before it was asked for. */
  renewedAtMs: number;
}

/** What whoever asks a control plane that is not ready is told. */
export const notFollowed = 'the store is not followed now';

export class Leadership {
  readonly #parts: LeadershipParts;
  readonly #clock: Clock;
  #reign: Reign | undefined;
  #lastTerm: number | undefined;
  /** When this process last heard that someone leads, or could not have heard it. */
  #heardAtMs: number;
  #heardRevision = 0;
  /** Its lease could not be renewed, and nothing has been heard since. */
  #unheard = false;
  #timer: Timer | undefined;
  #working: Promise<void> | undefined;
  #stopped = false;
  readonly #forget: () => void;

  constructor(parts: LeadershipParts) {
    this.#parts = parts;
    const { cache, clock } = parts.decider;
    this.#clock = clock;
    this.#heardAtMs = clock.monotonicMs();
    this.#forget = cache.onCommitted((key) => {
      if (key === keys.leader || key === keys.leaderLease) this.#noteHeard();
      if (key === keys.leader || key === keys.cluster) this.#lookSoon();
    });
  }

  /** A Plan of its own that was forgotten is no news. */
  #noteHeard(): void {
    const { cache } = this.#parts.decider;
    const { leader, leaderLease } = keys;
    const revision = Math.max(
      cache.committed('leader', leader)?.revision ?? 0,
      cache.committed('leaderLease', leaderLease)?.revision ?? 0,
    );
    if (revision === this.#heardRevision) return;
    this.#heardRevision = revision;
    this.#heardAtMs = this.#clock.monotonicMs();
    this.#unheard = false;
  }

  get leads(): boolean {
    return this.#reign !== undefined;
  }

  /**
   * Why nothing can be written to the store, or no news of it come here; undefined: neither is so. Whoever leads renews its lease, and all see it,
   * for a silent store says nothing, not even no. Who is alone has no lease to renew, and does so only to see whether the store is itself again.
   */
  get trouble(): string | undefined {
    const { alone, leaseMs, decider } = this.#parts;
    if (!alone) return this.#unheard || this.#sinceMs(this.#heardAtMs) > leaseMs * deafShare ? notFollowed : undefined;
    const { trouble } = decider.committer;
    return (
      trouble && (trouble.code === 'StoreFull' ? 'the store has no space left' : 'the store cannot be written now')
    );
  }

  start(): void {
    this.#look();
  }

  /** Lets go, so that another takes over at once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#forget();
    await this.#working;
    const reign = this.#reign;
    if (!reign) return;
    this.#stepDown('it stops');
    const { cache, committer } = this.#parts.decider;
    if (!this.#parts.alone) await committer.submit(endLeadership(cache, reign).plan).catch(() => {}); // then the lease runs out
  }

  #lookSoon(): void {
    if (!this.#stopped) queueMicrotask(() => this.#look());
  }

  #look(): void {
    if (this.#stopped) return;
    this.#timer?.cancel();
    const { leaseMs, alone, log } = this.#parts;
    if (!this.#parts.follows()) this.#heardAtMs = this.#clock.monotonicMs();
    this.#checkReign();
    if (!this.#working && (this.#reign ? this.#renewalIsDue() : this.#mayTakeOver())) {
      this.#working = (this.#reign ? this.#renew(this.#reign) : this.#take())
        .catch((error: unknown) => log.warn('cannot lead now; it is tried again', { error: describeError(error) }))
        .finally(() => {
          this.#working = undefined;
        });
    }
    const looks = alone && this.#reign ? 1 : looksPerLease;
    this.#timer = this.#clock.setTimer(leaseMs / looks, () => this.#look(), { background: true });
  }

  /** Another leads, or may lead by now. */
  #checkReign(): void {
    const reign = this.#reign;
    if (!reign) return;
    const { cache } = this.#parts.decider;
    const leader = cache.committed('leader', keys.leader);
    if (leader?.revision !== reign.fence.ifRevision) this.#stepDown(`${leader?.value.holder || 'no server'} leads now`);
    else if (whyClosed(cache) !== undefined) this.#stepDown('the store is closed');
    else if (!this.#parts.alone && this.#sinceMs(reign.renewedAtMs) > this.#parts.leaseMs * ownShare) {
      this.#unheard = true;
      this.#stepDown('its lease could not be renewed');
    }
  }

  #renewalIsDue(): boolean {
    const { alone, leaseMs, decider } = this.#parts;
    if (!this.#reign) return false;
    if (alone) return decider.committer.trouble !== undefined;
    return this.#sinceMs(this.#reign.renewedAtMs) >= leaseMs * renewalShare;
  }

  #mayTakeOver(): boolean {
    const { alone, decider, holder, leaseMs, follows } = this.#parts;
    if (!follows() || whyClosed(decider.cache) !== undefined) return false;
    const leader = decider.cache.committed('leader', keys.leader);
    if (alone || !leader || leader.value.holder === '') return true;
    // Its own term, or that of its former life; a second process of the same name is not to be chased.
    if (leader.value.holder === holder && leader.value.term === (this.#lastTerm ?? leader.value.term)) return true;
    return this.#sinceMs(this.#heardAtMs) > leaseMs;
  }

  async #take(): Promise<void> {
    const { decider, holder, log } = this.#parts;
    const askedAtMs = this.#clock.monotonicMs();
    const { plan, term } = takeLeadership(decider.cache, holder, contextOf(decider));
    const outcome = await decider.committer.submit(plan);
    if (!outcome.ok || this.#stopped) return; // another was first
    const fence = { key: keys.leader, ifRevision: outcome.revision };
    this.#lastTerm = term;
    this.#reign = { term, fence, renewedAtMs: askedAtMs };
    log.info('leads now', { holder, term });
    this.#parts.onLead(fence);
    this.#look();
  }

  async #renew(reign: Reign): Promise<void> {
    const { decider } = this.#parts;
    const askedAtMs = this.#clock.monotonicMs();
    const { plan } = renewLeadership(decider.cache, reign.fence, reign, contextOf(decider));
    const outcome = await decider.committer.submit(plan);
    if (outcome.ok) reign.renewedAtMs = askedAtMs;
    else if (outcome.key === keys.leader && this.#reign === reign) this.#stepDown('another has taken over');
  }

  #stepDown(reason: string): void {
    const { log, holder } = this.#parts;
    const term = this.#reign?.term;
    this.#reign = undefined;
    this.#heardAtMs = this.#clock.monotonicMs();
    log.info('leads no longer', { holder, term, reason });
    this.#parts.onStepDown();
  }

  #sinceMs(atMs: number): number {
    return this.#clock.monotonicMs() - atMs;
  }
}

/** How often the lease is looked at: a quarter more than its length is the longest that nobody leads, and what the store needs. */
const looksPerLease = 8;
/** Longer than the longest that nobody leads: half a lease for the next to be seen. */
const deafShare = 1.5;
/** Renewed when a third of it is gone, so that two renewals may fail. */
const renewalShare = 1 / 3;
/** The leader counts from when it asked, others from when they heard: it stops before they begin. */
const ownShare = 0.8;
