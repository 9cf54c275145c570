// A control plane announces the machine it runs on: the machine is recorded, and the host on it is marked (S5.9).

import type { Host } from '../../../api/resources/host.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { providerChanges } from '../host-providers.ts';

/**
 * `excludeHosts`: hosts on this machine take no instances. Repeated at every start; an unchanged announcement writes
 * nothing.
 */
export function announceControlPlane(
  snapshot: Snapshot,
  { machineId, excludeHosts }: { readonly machineId: string; readonly excludeHosts: boolean },
  ctx: Context,
): { readonly plan: Plan } {
  const key = keys.controlPlane(machineId);
  const entry = snapshot.get('controlPlane', key);
  const changes: Change[] = [];
  if (entry?.value.excludeHosts !== excludeHosts)
    changes.push({ key, ifRevision: entry?.revision ?? 0, value: { kind: 'controlPlane', machineId, excludeHosts } });
  for (const { key: hostKey, revision, value } of snapshot.list('host')) {
    if (value.status.machineId !== machineId) continue;
    const controlPlane = markOf({ excludeHosts });
    if (value.status.controlPlane === controlPlane) continue;
    const marked: Host = { ...value, status: { ...value.status, controlPlane } };
    changes.push(
      { key: hostKey, ifRevision: revision, value: marked },
      ...providerChanges(snapshot, { before: value, host: marked }, ctx.policy),
      eventChange(
        marked,
        {
          reason: 'ControlPlaneHost',
          message: `the control plane runs on it${excludeHosts ? ', so it takes no instances' : ''}`,
          host: value.metadata.name,
        },
        ctx,
      ),
    );
  }
  return { plan: changes.length === 0 ? emptyPlan : { changes } };
}

/** The mark of a host on this machine; undefined when no control plane ever ran there. */
export function controlPlaneOn(snapshot: Snapshot, machineId: string): Host['status']['controlPlane'] {
  const known = snapshot.get('controlPlane', keys.controlPlane(machineId));
  return known && markOf(known.value);
}

function markOf({ excludeHosts }: { readonly excludeHosts: boolean }): 'excluded' | 'shared' {
  return excludeHosts ? 'excluded' : 'shared';
}
