// Updates where nothing else goes wrong with hosts and guests: a workload removes no copy that is ready when fewer than
// `replicas - maxUnavailable` would be left, and creates none above `replicas + maxSurge`.

import type { Instance } from '../../../api/resources/instance.ts';
import type { Workload } from '../../../api/resources/workload.ts';
import { boundsOf } from '../../../core/workloads/pass.ts';
import type { Checker, Facts } from '../checker.ts';

export function updatesChecker({ state, calmUpdates = false }: Facts): Checker {
  const copiesOf = (id: string): Instance[] =>
    [...state.list('instance')].filter(({ status }) => status.workload?.id === id);
  const areHostsReady = (copies: readonly Instance[]): boolean =>
    copies.every(({ status }) => status.host === undefined || isReadyHost(status.host));
  const isReadyHost = (name: string): boolean => {
    const conditions = state.get('host', `hosts/${name}`)?.status.conditions ?? [];
    return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  };
  return {
    invariant: 0,
    onCommit({ events }) {
      if (!calmUpdates) return undefined;
      for (const { before, after } of events) {
        if (after?.kind !== 'instance' || !after.status.workload) continue;
        const was = before?.kind === 'instance' ? before : undefined;
        const { name, id } = after.status.workload;
        const workload = state.get('workload', `workloads/${after.metadata.project}/${name}`);
        if (workload?.metadata.id !== id || workload.metadata.deletionRequestedAtMs !== undefined) continue;
        const copies = copiesOf(id);
        if (!areHostsReady(copies)) continue;
        const fault = was === undefined ? tooMany(workload, copies) : tooFew(workload, copies, { was, after });
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
  };
}

function tooMany({ metadata, spec }: Workload, copies: readonly Instance[]): string | undefined {
  const most = spec.replicas + boundsOf(spec.strategy, spec.replicas).surge;
  if (copies.length <= most) return undefined;
  return `workload ${metadata.name} has ${copies.length} copies after it created one; ${most} are allowed`;
}

function tooFew(
  { metadata, spec }: Workload,
  copies: readonly Instance[],
  { was, after }: { readonly was: Instance; readonly after: Instance },
): string | undefined {
  if (!isReady(was) || isReady(after) || after.metadata.deletionRequestedAtMs === undefined) return undefined;
  const least = spec.replicas - boundsOf(spec.strategy, spec.replicas).unavailable;
  const left = copies.filter(isReady).length;
  if (left >= least) return undefined;
  return `workload ${metadata.name} removed ready copy ${after.metadata.name}, and ${left} are left; ${least} are to be ready`;
}

function isReady({ metadata, status }: Instance): boolean {
  return metadata.deletionRequestedAtMs === undefined && status.phase === 'Running' && status.guest?.ready === true;
}
