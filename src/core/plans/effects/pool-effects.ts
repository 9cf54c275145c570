// What a change or the deletion of a pool means: hosts with less capacity than is in use, instances whose mounts are no longer allowed. A
// host keeps the name of a deleted pool, and instances that ask for it keep their place.

import type { ChangeEffect } from '../../../api/plans/effects.ts';
import type { Host } from '../../../api/resources/host.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import { isWithin } from '../../../api/resources/mount.ts';
import type { Pool } from '../../../api/resources/pool.ts';
import { providersOf } from '../../ledger/inventory.ts';
import { capacityOf } from '../../ledger/ledger.ts';
import { boundedClaims } from '../../operations/host-claims.ts';
import type { Policy } from '../../state/context.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { effect } from './effect.ts';

interface Change {
  readonly before: Pool;
  /** Undefined: it is deleted. */
  readonly after: Pool | undefined;
}

export function poolEffects(
  snapshot: Snapshot,
  { before, after }: Change,
  policy: Pick<Policy, 'cpuAllocationRatio'>,
): ChangeEffect[] {
  const { name } = before.metadata;
  const affected: ChangeEffect[] = [];
  for (const { value } of snapshot.list('host')) {
    if (value.spec.pool !== name) continue;
    const over = overUse(snapshot, value, after?.spec, policy);
    if (over.length > 0)
      affected.push(effect(value, 'OverCapacity', `${over.join(', ')}; nothing that needs these is placed there`));
    else if (!after)
      affected.push(effect(value, 'LosesRules', 'what the pool sets for its hosts no longer applies to it'));
  }
  for (const { value } of snapshot.list('instance')) {
    if (value.spec.placement.pool !== name || value.metadata.deletionRequestedAtMs !== undefined) continue;
    const found = instanceEffect(value, before.spec, after?.spec);
    if (found) affected.push(found);
  }
  for (const { value } of snapshot.list('workload'))
    if (
      !after &&
      value.spec.template.spec.placement.pool === name &&
      value.metadata.deletionRequestedAtMs === undefined
    )
      affected.push(effect(value, 'LosesRules', 'what the pool sets no longer applies to its next copies'));
  return affected;
}

function instanceEffect(
  instance: Instance,
  before: Pool['spec'],
  after: Pool['spec'] | undefined,
): ChangeEffect | undefined {
  const allowed = (pool: Pool['spec'] | undefined, path: string): boolean =>
    pool?.hostPaths?.some((folder) => isWithin(path, folder)) === true;
  for (const { mounts = [] } of instance.spec.containers ?? [])
    for (const { hostPath } of mounts)
      if (hostPath !== undefined && allowed(before, hostPath) && !allowed(after, hostPath))
        return effect(instance, 'MountNotAllowed', `it mounts ${hostPath}, and could not be created again`);
  return after
    ? undefined
    : effect(instance, 'LosesRules', 'it keeps its place, and what the pool sets no longer applies');
}

/** `24 of 16 VCPU in use`, by class, with the rules that the pool then has. */
function overUse(
  snapshot: Snapshot,
  host: Host,
  pool: Pool['spec'] | undefined,
  { cpuAllocationRatio }: Pick<Policy, 'cpuAllocationRatio'>,
): string[] {
  if (!host.status.capacity) return [];
  const allocationRatios = { VCPU: cpuAllocationRatio, ...pool?.allocationRatios, ...host.spec.allocationRatios };
  const wanted = providersOf({ ...host.spec, allocationRatios }, boundedClaims(host.status, pool?.hostLimits));
  const { id } = host.metadata;
  return wanted.flatMap(({ name, inventories }) => {
    const used = snapshot.usedBy(name === '' ? id : `${id}-${name}`);
    return Object.entries(inventories).flatMap(([of, inventory]) => {
      const [capacity, inUse] = [capacityOf(inventory), used.get(of) ?? 0];
      return inUse > capacity ? [`${inUse} ${of} in use of ${capacity}`] : [];
    });
  });
}
