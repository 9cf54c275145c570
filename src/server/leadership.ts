// Leadership of this control plane: takes over when there is no leader, renews the lease while it leads, and steps down by its own clock when
// the lease cannot be renewed. It only submits Plans; the store decides whether their conditions hold.

import type { Clock, Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { endLeadership, renewLeadership, takeLeadership } from '../core/operations/servers/leadership.ts';
import { whyClosed } from '../core/state/cluster-state.ts';
import { keys } from '../core/state/keys.ts';
import { contextOf, type Decider } from './decide.ts';

export interface LeadershipParts {
  readonly decider: Decider;
  readonly log: Logger;
  /** Name of this control plane: the same after a restart, and different from that of any other that runs. */
  readonly holder: string;
  readonly leaseMs: number;
  /** No other process can have the store open: there is no lease to wait for or to hand over. */
  readonly alone: boolean;
  /** Whether the cache follows the store now: without news, the silence of others must not count. */
  readonly follows: () => boolean;
  onLead(fence: Fence): void;
  onStepDown(): void;
}

/** The condition of the leader's Plans: the record of its term is unchanged. */
export interface Fence {
  readonly key: string;
  readonly ifRevision: number;
}

interface Reign {
  readonly term: number;
  readonly fence: Fence;
  /** When the request for the last renewal was sent. */
  renewedAtMs: number;
}

/** The reason that a control plane gives while it is not ready. */
export const notFollowed = 'the store is not followed now';

export class Leadership {
  readonly #parts: LeadershipParts;
  readonly #clock: Clock;
  #reign: Reign | undefined;
  #lastTerm: number | undefined;
  /** When this process last saw a sign of a leader, or could not have seen one. */
  #heardAtMs: number;
  #heardRevision = 0;
  /** The lease could not be renewed, and no event has arrived since. */
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

  /** The cache forgetting a Plan of this process is no sign of a leader. */
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
   * Why the store cannot be written to, or why its events do not arrive; undefined: both work. The renewals of the leader show that the store
   * works, because a store that hangs gives no error. A single control plane renews only to find out whether the store works again.
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

  /** Ends the term, so that another control plane takes over at once. */
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

  /** Another control plane leads, or may lead by now. */
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
    // The term of this process, or of the one before its restart. A second process of the same name must not be fought over the lease.
    if (leader.value.holder === holder && leader.value.term === (this.#lastTerm ?? leader.value.term)) return true;
    return this.#sinceMs(this.#heardAtMs) > leaseMs;
  }

  async #take(): Promise<void> {
    const { decider, holder, log } = this.#parts;
    const askedAtMs = this.#clock.monotonicMs();
    const { plan, term } = takeLeadership(decider.cache, holder, contextOf(decider));
    const outcome = await decider.committer.submit(plan);
    if (!outcome.ok || this.#stopped) return; // another control plane was first
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

/** Checks of the lease per lease length: the longest time without a leader is a lease and a quarter, plus the store's latency. */
const looksPerLease = 8;
/** In leases. Longer than the longest time without a leader, with half a lease until the next leader is seen. */
const deafShare = 1.5;
/** The lease is renewed after a third of its length, so that two renewals may fail. */
const renewalShare = 1 / 3;
/** The leader counts from its request, the others from the event: the leader stops before another begins. */
const ownShare = 0.8;
