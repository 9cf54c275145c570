// inventory: the inventories of hosts follow the ratios and limits of their pools, the ratios of the fleet, and the other hosts on their machine. What a host states or measures
// itself enters the ledger with the host's own change; this controller handles changes elsewhere.

import { withRoomJudged } from '../../operations/hosts/host-machine.ts';
import { providerChanges } from '../../operations/host-providers.ts';
import { machinesOf } from '../../state/views/machines.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan } from '../../state/plan.ts';
import { equalJson } from '../../../base/equal-json.ts';
import type { AnyRecord } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { type Controller, keysOfKind } from '../controller.ts';

export const inventory: Controller = {
  name: 'inventory',
  watches: ['pool', 'host'],
  wakes({ before, after }, snapshot) {
    const pool = after ?? before;
    if (pool?.kind === 'host') return hostsBeside(before, after, snapshot);
    if (pool?.kind !== 'pool') return [];
    return equalJson(counted(before), counted(after)) ? [] : hostsIn(snapshot, pool.metadata.name);
  },
  keys: (snapshot) => keysOfKind(snapshot, 'host'),
  reconcile(snapshot, key, ctx) {
    const host = snapshot.get('host', key);
    if (!host) return emptyPlan;
    const judged = withRoomJudged(snapshot, host.value, ctx);
    const changes = [
      ...providerChanges(snapshot, { before: host.value, host: judged }, ctx.policy),
      ...(judged === host.value ? [] : [{ key, ifRevision: host.revision, value: judged }]),
    ];
    if (changes.length === 0) return emptyPlan;
    const { pool } = host.value.spec;
    const poolKey = keys.pool(pool ?? '');
    return {
      changes,
      // The ratios of the host and the pool must be unchanged when this is written.
      conditions: [
        ...(judged === host.value ? [{ key, ifRevision: host.revision }] : []),
        ...(pool === undefined ? [] : [{ key: poolKey, ifRevision: snapshot.get('pool', poolKey)?.revision ?? 0 }]),
      ],
    };
  },
};

/** What of a pool counts for the inventories of its hosts. */
function counted(record: AnyRecord | null): unknown {
  if (record?.kind !== 'pool') return undefined;
  const { allocationRatios, hostLimits } = record.spec;
  return { allocationRatios, hostLimits };
}

/** The other hosts on a machine whose room is divided in another way now. */
function hostsBeside(before: AnyRecord | null, after: AnyRecord | null, snapshot: Snapshot): readonly string[] {
  const was = divided(before);
  const is = divided(after);
  if (was === undefined && is === undefined) return [];
  if (equalJson(was, is)) return [];
  return [was, is].flatMap((host) => (host === undefined ? [] : machinesOf(snapshot).of(host.machineId)));
}

/** What of a host counts for the room of others on its machine. */
function divided(record: AnyRecord | null): { readonly machineId: string } | undefined {
  if (record?.kind !== 'host') return undefined;
  const { status, spec } = record;
  const { machineId, measured, capacity, diskId, registeredAtMs } = status;
  if (machineId === undefined || measured === undefined) return undefined;
  const children = status.providers?.map(({ name }) => name);
  return { machineId, ...{ measured, capacity, diskId, registeredAtMs, children, inventory: spec.inventory } };
}

function* hostsIn(snapshot: Snapshot, pool: string): Iterable<string> {
  for (const { key, value } of snapshot.list('host')) if (value.spec.pool === pool) yield key;
}
