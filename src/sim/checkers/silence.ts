// Not one of the numbered invariants: silence is not death. No host can be heard while the store is down or the only server stands still or is flooded, so a
// host is not called silent when that is why its lease was not renewed.

import type { Host } from '../../api/resources/host.ts';
import type { Checker, Facts } from './checker.ts';

/** Clocks run a tenth too fast, and a lease may be long on its way: less than this share of the time agreed is no mistake of theirs. */
const shareMin = 0.5;

export function silenceChecker({ policy, nowMs, deaf }: Facts): Checker {
  const renewedMs = new Map<string, number>();
  return {
    invariant: 0,
    overRestore: 'throughout',
    onCommit({ events }) {
      for (const { after } of events) if (after?.kind === 'lease') renewedMs.set(after.host, nowMs());
      for (const { before, after } of events) {
        if (after?.kind !== 'host' || !isSilent(after) || (before?.kind === 'host' && isSilent(before))) continue;
        const { name } = after.metadata;
        const sinceMs = renewedMs.get(name) ?? Number.NEGATIVE_INFINITY;
        const deafMs = sharedMs(deaf(), { fromMs: sinceMs, toMs: nowMs() });
        const heardMs = nowMs() - sinceMs - deafMs;
        if (deafMs > 0 && heardMs < shareMin * policy.offlineAfterMs)
          return `host ${name} was called silent after ${Math.round(heardMs)} ms in which it could be heard`;
      }
      return undefined;
    },
  };
}

interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

/** How much of `period` lies in any of these, which may overlap. */
function sharedMs(periods: readonly Period[], period: Period): number {
  let sum = 0;
  let upToMs = period.fromMs;
  for (const { fromMs, toMs } of [...periods].sort((a, b) => a.fromMs - b.fromMs)) {
    const endMs = Math.min(toMs, period.toMs);
    sum += Math.max(0, endMs - Math.max(fromMs, upToMs));
    upToMs = Math.max(upToMs, endMs);
  }
  return sum;
}

function isSilent({ status }: Host): boolean {
  return status.conditions.some(
    ({ type, status: is, reason }) => type === 'Ready' && is === 'False' && reason === 'AgentSilent',
  );
}
