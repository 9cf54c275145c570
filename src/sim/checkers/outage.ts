// Invariant 9, as hosts feel it: an outage of the control plane is not held against them. A host is called silent only when some control
// plane was there long enough to have heard it.

import { conditionOf } from '../../core/state/conditions.ts';
import type { Checker, Facts } from './checker.ts';

/** A verdict may be on its way to the store for so long after its judge has died. */
const onTheWayMsMax = 10_000;

/** Its clock may run a tenth too fast. */
const fastestClock = 1.1;

export function outageChecker({ serverLives = [], nowMs, policy }: Facts): Checker {
  const longestMs = (): number =>
    serverLives.reduce((longest, { startedMs, endedMs = nowMs() }) => {
      if (nowMs() - endedMs > onTheWayMsMax) return longest;
      return Math.max(longest, Math.min(endedMs, nowMs()) - startedMs); // a log that is read late has later lives beside it
    }, 0);
  return {
    invariant: 9,
    overRestore: 'throughout',
    onCommit({ events }) {
      for (const { before, after } of events) {
        if (before?.kind !== 'host' || after?.kind !== 'host') continue;
        const [was, is] = [before, after].map(({ status }) => conditionOf(status.conditions, 'Ready'));
        if (was?.status !== 'True' || is?.status !== 'False' || is.reason !== 'AgentSilent') continue;
        const heardMs = longestMs();
        if (heardMs < policy.offlineAfterMs / fastestClock)
          return `host ${after.metadata.name} was called silent when no control plane had been there for ${policy.offlineAfterMs / 1000} s (the longest: ${heardMs / 1000} s)`;
      }
      return undefined;
    },
  };
}
