// Workloads: at rest each has as many copies of its newest template as are wanted, each with an ordinal of its own, and no copy is left of one
// that is gone. A copy that failed lately may be missing for a while.

import type { Instance } from '../../../api/resources/instance.ts';
import type { Workload } from '../../../api/resources/workload.ts';
import { notBeforeMs } from '../../../core/workloads/failures.ts';
import type { Checker, Facts } from '../checker.ts';

export function workloadsChecker({ state, nowMs, dead }: Facts): Checker {
  const copiesById = (): ReadonlyMap<string, readonly Instance[]> => {
    const byId = new Map<string, Instance[]>();
    for (const instance of state.list('instance')) {
      const { workload } = instance.status;
      if (!workload || instance.metadata.deletionRequestedAtMs !== undefined) continue;
      byId.set(workload.id, [...(byId.get(workload.id) ?? []), instance]);
    }
    return byId;
  };
  /** What a dead host has is never reported to be gone. */
  const leftOnDeadHost = (id: string): boolean => {
    for (const { status } of state.list('instance'))
      if (status.workload?.id === id && dead.has(status.host ?? '')) return true;
    return false;
  };
  return {
    invariant: 0,
    *unrest() {
      const byId = copiesById();
      const known = new Set<string>();
      for (const workload of state.list('workload')) {
        const { id, name, deletionRequestedAtMs } = workload.metadata;
        known.add(id);
        const copies = byId.get(id) ?? [];
        if (deletionRequestedAtMs !== undefined && leftOnDeadHost(id)) continue;
        if (deletionRequestedAtMs !== undefined) yield `workload ${name} is being removed`;
        // What refuses a copy may be full for ever.
        else if (!workload.spec.paused && !isRefused(workload)) yield* faultsOf(workload, copies, nowMs());
      }
      for (const [id, [copy]] of byId)
        if (!known.has(id)) yield `instance ${copy?.metadata.name} is left of a workload that is gone`;
    },
  };
}

function isRefused({ status }: Workload): boolean {
  return status.conditions[0]?.reason === 'QuotaExceeded';
}

function* faultsOf({ metadata: { name }, spec, status }: Workload, copies: readonly Instance[], nowMs: number) {
  const delayed = status.failures.filter(({ ordinal }) => (notBeforeMs(status.failures, ordinal) ?? 0) > nowMs).length;
  const old = copies.filter((copy) => copy.status.workload?.revision !== status.revision).length;
  // An update may wait for room that only others could give up.
  const waits = copies.some((copy) => copy.status.phase === 'Pending' || copy.status.phase === 'Failed');
  const said = status.conditions[0]?.message;
  if (old > 0 && !waits && delayed === 0) yield `workload ${name} has ${old} copies of an old template: ${said}`;
  const missing = spec.replicas - copies.length;
  if (missing > delayed || (old === 0 && missing < 0))
    yield `workload ${name} has ${copies.length} copies, and ${spec.replicas} are wanted: ${said}`;
  const ordinals = new Set(copies.map((copy) => copy.status.workload?.ordinal));
  if (ordinals.size < copies.length) yield `two copies of workload ${name} have one ordinal`;
}
