// Which steps of spares are carried out by a runner, and what a provisioner is told. Pure.

import { builtInProvisioner, type Spare } from '../../api/resources/spare.ts';
import type { SpareStep } from '../../core/operations/spares/report-spare.ts';
import { taskOf } from '../../core/operations/spares/spare-change.ts';
import { keys } from '../../core/state/keys.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { ProbedSpare, SpareWork } from './provisioner.ts';

/** Its step has begun, and needs more than decisions. */
export function isForRunner({ spec, status }: Spare): boolean {
  const { phase, attemptAtMs, nextAttemptAtMs } = status;
  if (attemptAtMs === undefined || nextAttemptAtMs !== undefined) return false;
  if (phase === 'Checking') return true;
  return (phase === 'Provisioning' || phase === 'Releasing') && spec.provisioner !== builtInProvisioner;
}

export function stepOf(key: string, { metadata, status }: Spare): SpareStep {
  return { key, id: metadata.id, phase: status.phase, attempt: status.attempt };
}

export function workOf(spare: Spare, snapshot: Snapshot): SpareWork {
  const { metadata, spec, status } = spare;
  const held = taskOf(snapshot, spare)?.value.status.assigned ?? {};
  const host = status.host ?? '';
  const record = snapshot.get('host', keys.host(host))?.value;
  const address = record?.status.outside?.ip ?? record?.metadata.labels['ip'];
  return {
    id: metadata.id,
    attempt: status.attempt,
    name: metadata.name,
    project: metadata.project,
    createdAtMs: metadata.createdAtMs,
    host: { name: host, ...(address === undefined ? {} : { address }) },
    cpus: held['VCPU'] ?? 0,
    memoryMiB: held['MEMORY_MB'] ?? 0,
    diskGiB: held['DISK_GB'] ?? 0,
    ...(spec.placement.pool === undefined ? {} : { pool: spec.placement.pool }),
    variables: spec.variables,
  };
}

export function probedOf(spare: Spare, snapshot: Snapshot): ProbedSpare {
  const { metadata, status } = spare;
  const { host } = workOf(spare, snapshot);
  const address = status.address ?? (status.instance === undefined ? host.address : undefined);
  return {
    id: metadata.id,
    name: status.name ?? host.name,
    ...(address === undefined ? {} : { address }),
    createdAtMs: metadata.createdAtMs,
  };
}
