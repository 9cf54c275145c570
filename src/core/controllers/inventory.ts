// inventory: what hosts may give out follows the ratios of their pools and of the fleet. What a host itself says or measures comes
// into the ledger with its own change; this is for what changes elsewhere.

import { providerChanges } from '../operations/host-providers.ts';
import { keys } from '../state/keys.ts';
import { emptyPlan } from '../state/plan.ts';
import { equalJson } from '../../base/equal-json.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Controller, keysOfKind } from './controller.ts';

export const inventory: Controller = {
  name: 'inventory',
  watches: ['pool'],
  wakes({ before, after }, snapshot) {
    const pool = after ?? before;
    if (pool?.kind !== 'pool') return [];
    const ratiosBefore = before?.kind === 'pool' ? before.spec.allocationRatios : undefined;
    const ratiosAfter = after?.kind === 'pool' ? after.spec.allocationRatios : undefined;
    return equalJson(ratiosBefore, ratiosAfter) ? [] : hostsIn(snapshot, pool.metadata.name);
  },
  keys: (snapshot) => keysOfKind(snapshot, 'host'),
  reconcile(snapshot, key, ctx) {
    const host = snapshot.get('host', key);
    if (!host) return emptyPlan;
    const changes = providerChanges(snapshot, { before: host.value, host: host.value }, ctx.policy);
    if (changes.length === 0) return emptyPlan;
    const { pool } = host.value.spec;
    const poolKey = keys.pool(pool ?? '');
    return {
      changes,
      // Still the ratios of that host and pool when this is written.
      conditions: [
        { key, ifRevision: host.revision },
        ...(pool === undefined ? [] : [{ key: poolKey, ifRevision: snapshot.get('pool', poolKey)?.revision ?? 0 }]),
      ],
    };
  },
};

function* hostsIn(snapshot: Snapshot, pool: string): Iterable<string> {
  for (const { key, value } of snapshot.list('host')) if (value.spec.pool === pool) yield key;
}
