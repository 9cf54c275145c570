// Not one of the numbered invariants: nothing writes one host or one instance again and again, as two control planes do that cannot agree.

import type { Checker, Facts } from './checker.ts';

/** Far more than users, agents and controllers together have to say about one thing. */
const writesMax = 60;
const withinMs = 5000;

export function churnChecker({ nowMs }: Facts): Checker {
  const writtenMs = new Map<string, number[]>();
  return {
    invariant: 0,
    overRestore: 'throughout',
    onCommit({ events }) {
      for (const { key } of events) {
        if (!key.startsWith('hosts/') && !key.startsWith('instances/')) continue;
        const times = (writtenMs.get(key) ?? []).filter((atMs) => nowMs() - atMs < withinMs);
        times.push(nowMs());
        writtenMs.set(key, times);
        if (times.length > writesMax) return `${key} was written ${times.length} times within ${withinMs / 1000} s`;
      }
      return undefined;
    },
  };
}
