// Not one of the numbered invariants: an instance is bound only to a host that is there, ready and not paused when that is committed, and that
// takes such instances and has not more than it may, whatever the control plane that decided it believed.

import type { Host } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { CommittedState } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

export function eligibleChecker({ state }: Facts): Checker {
  return {
    invariant: 0,
    overRestore: 'after',
    onCommit({ events }) {
      // A host that changes in the same commit cannot be judged: it may have been ready for a moment between two Plans.
      const changed = new Set(events.map(({ key }) => key));
      for (const { before, after } of events) {
        if (after?.kind !== 'instance' || after.status.host === undefined) continue;
        const same = before?.kind === 'instance' && before.metadata.id === after.metadata.id;
        const former = same ? before.status.incarnation : 0;
        const key = `hosts/${after.status.host}`;
        if (after.status.incarnation <= former || changed.has(key)) continue;
        const host = state.get('host', key);
        const fault = faultOf(host) ?? refusalOf(host, after) ?? crowdOn(host, state);
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

/** By its own reading of the rules: the scheduler's is what is under test. */
function refusalOf(host: Host | undefined, { metadata, spec: { placement } }: Instance): string | undefined {
  const { taints = [], dedicated = false, dedicatedTo } = host?.spec ?? {};
  if (dedicatedTo !== undefined && dedicatedTo !== metadata.project) return `is dedicated to project ${dedicatedTo}`;
  if (dedicated && placement.dedicated !== true) return 'is dedicated';
  if (placement.dedicated === true && !dedicated && dedicatedTo === undefined) return 'is not dedicated';
  const tolerated = new Set(placement.tolerations?.map(({ key }) => key));
  const taint = taints.find(({ key, effect }) => effect === 'NoSchedule' && !tolerated.has(key));
  return taint && `has the taint ${taint.key}`;
}

function crowdOn(host: Host | undefined, state: CommittedState): string | undefined {
  const max = host?.spec.instancesMax;
  if (max === undefined) return undefined;
  let count = 0;
  for (const { host: on, consumer } of state.list('allocation'))
    if (on === host?.metadata.name && consumer.kind !== 'volume') count += 1;
  return count > max ? `has ${count} instances now, and may have ${max}` : undefined;
}
