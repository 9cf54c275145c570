// Not numbered in DESIGN §5: an instance is bound only to a host that is there, ready and not paused when that is committed, whatever
// the control plane that decided it believed (SYSTEMS S4.3).

import type { Host } from '../../api/resources/host.ts';
import type { Checker, Facts } from './checker.ts';

export function eligibleChecker({ state }: Facts): Checker {
  return {
    invariant: 0,
    onCommit({ events }) {
      // A host that changes in the same commit cannot be judged: it may have been ready for a moment between two Plans.
      const changed = new Set(events.map(({ key }) => key));
      for (const { before, after } of events) {
        if (after?.kind !== 'instance' || after.status.host === undefined) continue;
        const former = before?.kind === 'instance' ? before.status.incarnation : 0;
        const key = `hosts/${after.status.host}`;
        if (after.status.incarnation <= former || changed.has(key)) continue;
        const fault = faultOf(state.get('host', key));
        if (fault !== undefined)
          return `instance ${after.metadata.name} was bound to ${after.status.host}, which ${fault}`;
      }
      return undefined;
    },
  };
}

function faultOf(host: Host | undefined): string | undefined {
  if (!host) return 'is not there';
  if (host.spec.paused) return 'is paused';
  return host.status.conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
    ? undefined
    : 'is not ready';
}
