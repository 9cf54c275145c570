// Not numbered in DESIGN §5: an instance is bound only to a host that is there, ready and not paused when that is committed, whatever
// the control plane that decided it believed (SYSTEMS S4.3).

import type { Host } from '../../api/resources/host.ts';
import type { Checker, Facts } from './checker.ts';

export function eligibleChecker({ state }: Facts): Checker {
  return {
    invariant: 0,
    onCommit({ events }) {
      /** Hosts that this commit changes: binding and change may have come in either order. */
      const before = new Map<string, Host | undefined>();
      for (const event of events) {
        if (event.before?.kind === 'host') before.set(event.before.metadata.name, event.before);
      }
      for (const { before: planned, after } of events) {
        if (after?.kind !== 'instance' || after.status.host === undefined) continue;
        const former = planned?.kind === 'instance' ? planned.status.incarnation : 0;
        if (after.status.incarnation <= former) continue;
        const name = after.status.host;
        const faults = [state.get('host', `hosts/${name}`), before.get(name)].map(faultOf);
        if (faults.every((fault) => fault !== undefined))
          return `instance ${after.metadata.name} was bound to ${name}, which ${faults[0]}`;
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
