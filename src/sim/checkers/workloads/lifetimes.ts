// Lifetimes: an instance that is protected is never deleted, and one whose time is limited not before its time by the fastest clock of the
// control planes. At rest none is left whose time is over by the slowest.

import { expiryOf } from '../../../api/instances/lifetime.ts';
import type { Checker, Facts } from '../checker.ts';

/** A control plane may have decided, and ended before its clock was read here. */
const unseenMs = 10_000;

export function lifetimesChecker({ state, servers, intents, nowMs }: Facts): Checker {
  let fastestMs = 0;
  const clocks = (): number[] => servers().map(({ wallMs = nowMs }) => wallMs());
  return {
    invariant: 3,
    onCommit({ events }) {
      fastestMs = Math.max(fastestMs, ...clocks());
      for (const { before, after } of events) {
        if (before?.kind !== 'instance' || after?.kind !== 'instance') continue;
        const { id, name, deletionRequestedAtMs } = after.metadata;
        if (id !== before.metadata.id || deletionRequestedAtMs === undefined) continue;
        if (before.metadata.deletionRequestedAtMs !== undefined) continue;
        if (after.spec.protected === true) return `instance ${name} is protected, and is being deleted`;
        const expiryMs = expiryOf(before);
        if (expiryMs === undefined || intents.deletesAsked.has(id)) continue;
        if (expiryMs > fastestMs + unseenMs)
          return `instance ${name} is being deleted ${expiryMs - fastestMs} ms before its time is over`;
      }
      return undefined;
    },
    *unrest() {
      const slowestMs = Math.min(...clocks());
      for (const { metadata, spec } of state.list('instance'))
        if ((expiryOf({ metadata, spec }) ?? Number.POSITIVE_INFINITY) < slowestMs)
          if (metadata.deletionRequestedAtMs === undefined) yield `the time of instance ${metadata.name} is over`;
    },
  };
}
