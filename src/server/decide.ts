// An operation from start to end: decide on the live cache, commit, and decide anew when someone else was first.

import { backoffMs } from '../base/backoff.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Prng } from '../base/prng.ts';
import { ApiError } from '../api/errors.ts';
import type { Cache } from '../core/state/cache.ts';
import type { Context, Policy } from '../core/state/context.ts';
import type { Plan } from '../core/state/plan.ts';
import type { Snapshot } from '../core/state/snapshot.ts';
import type { Committer } from './commit.ts';

export interface Decider {
  readonly cache: Cache;
  readonly committer: Committer;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly policy: Policy;
}

export function contextOf({ clock, prng, policy }: Pick<Decider, 'clock' | 'prng' | 'policy'>): Context {
  const nowMs = Math.floor(clock.nowMs());
  return { nowMs, monotonicMs: clock.monotonicMs(), prng, policy, newId: (prefix) => newId(prefix, nowMs, prng) };
}

/** Ten tries spread over about a second; a conflict means that another control plane wrote in between, and its event is near. */
const triesMax = 10;
const retryDelay = { delayMsMin: 4, delayMsMax: 200 };

/**
 * The decision whose Plan is now durable, and at which revision. Throws what `decide` throws, and `Unavailable` after too many conflicts.
 * `attempt`, from 0 on: a decision that rests on much may rest on less when others were in its way.
 */
export async function decideAndCommit<D extends { readonly plan: Plan }>(
  decider: Decider,
  decide: (snapshot: Snapshot, ctx: Context, attempt: number) => D,
): Promise<{ decision: D; revision: number }> {
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const decision = decide(decider.cache, contextOf(decider), attempt);
    const outcome = await decider.committer.submit(decision.plan);
    if (outcome.ok) return { decision, revision: outcome.revision };
    await sleep(decider.clock, backoffMs(attempt, retryDelay, decider.prng));
  }
  throw new ApiError('Unavailable', 'others kept changing the same resources; try again');
}
