// An operation from start to end: decide on the live cache, commit, and decide again after a conflict.

import { backoffMs } from '../base/backoff.ts';
import type { Buggify } from '../base/buggify.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import type { Prng } from '../base/prng.ts';
import { ApiError } from '../api/errors.ts';
import type { Cache } from '../core/state/cache.ts';
import type { Context, Policy } from '../core/state/context.ts';
import type { Plan, PlanAuthor } from '../core/state/plan.ts';
import type { Snapshot } from '../core/state/snapshot.ts';
import type { Committer } from './commit.ts';
import type { Pipelined } from './commit-turns.ts';

export interface Decider {
  readonly cache: Cache;
  readonly committer: Committer;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly policy: Policy;
  readonly buggify?: Buggify;
  /** The project in whose line the request waits for the store; default: the line of what belongs to no project. */
  readonly project?: string;
  /** The trace of the request: resources that it creates are part of it. */
  readonly traceParent?: string | undefined;
  /** The connection of the request, with pipelined requests that need not be read yet. */
  readonly from?: Pipelined | undefined;
  /** The author of the last decision, for the audit log. */
  readonly author?: () => PlanAuthor | undefined;
}

/** The same decider for writes on behalf of a project: these wait in the line of the project. */
export function forProject(project: string, decider: Decider): Decider {
  return { ...decider, project };
}

export function contextOf({
  clock,
  prng,
  policy,
  traceParent,
}: Pick<Decider, 'clock' | 'prng' | 'policy' | 'traceParent'>): Context {
  const nowMs = Math.floor(clock.nowMs());
  return {
    nowMs,
    monotonicMs: clock.monotonicMs(),
    prng,
    policy,
    traceParent,
    newId: (prefix) => newId(prefix, nowMs, prng),
  };
}

/** Ten tries spread over about a second; a conflict means that another control plane wrote in between, and its event is near. */
const triesMax = 10;
const retryDelay = { delayMsMin: 4, delayMsMax: 200 };

/** `attempt` counts from 0: after a conflict, a decision with many conditions may choose to depend on less. */
type Decide<D> = (snapshot: Snapshot, ctx: Context, attempt: number) => D;

export interface Decided<D> {
  readonly decision: D;
  readonly revision: number;
}

/**
 * Returns the decision whose Plan is durable now, and its revision. Throws what `decide` throws, once all Plans that were under way have an
 * outcome, and `Unavailable` after too many conflicts.
 */
export async function decideAndCommit<D extends { readonly plan: Plan }>(
  decider: Decider,
  decide: Decide<D>,
  firstAttempt = 0,
): Promise<Decided<D>> {
  let waited = false;
  for (let attempt = firstAttempt; attempt < triesMax; ) {
    if (attempt > 0) {
      const tried = decider.buggify?.('retry-longest') ? triesMax : attempt - 1;
      await sleep(decider.clock, backoffMs(tried, retryDelay, decider.prng));
    }
    await decider.committer.room(decider.project, { from: decider.from });
    let decision: D;
    try {
      decision = decide(decider.cache, contextOf(decider), attempt);
    } catch (error) {
      // The refusal may be due to a Plan that is not durable yet and may fail. Wait once: later Plans are not the reason.
      if (!(error instanceof ApiError) || waited || !(await decider.committer.fates())) throw error;
      waited = true;
      continue;
    }
    const outcome = await decider.committer.submit(decision.plan, decider.author?.()); // without waiting: the decision's snapshot is still current
    if (outcome.ok) return { decision, revision: outcome.revision };
    attempt += 1;
  }
  throw new ApiError('Unavailable', 'others kept changing the same resources; try again');
}

/** Decides many, one after the other, and commits them together unless other projects write too. Returns the outcome of each, or its error. */
export async function decideAllAndCommit<D extends { readonly plan: Plan }>(
  decider: Decider,
  all: readonly Decide<D>[],
): Promise<readonly (Decided<D> | { readonly error: unknown })[]> {
  const { committer } = decider;
  const done: (Decided<D> | { readonly error: unknown })[] = [];
  while (done.length < all.length) {
    const some = all.slice(done.length, done.length + committer.atOnceMax);
    await committer.room(decider.project, { plans: some.length, from: decider.from });
    done.push(...(await decideTogether(decider, some)));
  }
  return done;
}

async function decideTogether<D extends { readonly plan: Plan }>(
  decider: Decider,
  all: readonly Decide<D>[],
): Promise<readonly (Decided<D> | { readonly error: unknown })[]> {
  const { cache, committer } = decider;
  const ctx = contextOf(decider);
  const results: (Decided<D> | { error: unknown } | undefined)[] = all.map(() => undefined);
  const refused = new Set<number>();
  await new Promise<void>((resolve) => {
    let open = 1;
    const close = (): void => {
      open -= 1;
      if (open === 0) resolve();
    };
    for (const [i, decide] of all.entries()) {
      open += 1;
      try {
        const decision = decide(cache, ctx, 0);
        const author = decider.author?.();
        committer.enqueue(
          decision.plan,
          (fate) => {
            if (fate instanceof ApiError) results[i] = { error: fate };
            else if (fate.ok) results[i] = { decision, revision: fate.revision };
            close();
          },
          author,
        );
      } catch (error) {
        // The refusal may be due to a Plan that is not durable yet: decide again when that Plan has an outcome.
        if (error instanceof ApiError && committer.isBusy) refused.add(i);
        else results[i] = { error };
        close();
      }
    }
    close();
  });
  // The rest had conflicts, or may have had.
  const again = (decide: Decide<D>, i: number) =>
    decideAndCommit(decider, decide, refused.has(i) ? 0 : 1).catch((error: unknown) => ({ error }));
  return Promise.all(all.map(async (decide, i) => results[i] ?? again(decide, i)));
}
