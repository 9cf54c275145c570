// Updates and drains where nothing else goes wrong with hosts and guests: a workload removes no copy that is ready when fewer than
// `replicas - maxUnavailable` would be left, and creates none above `replicas + maxSurge`.

import type { Host } from '../../../api/resources/host.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { Workload } from '../../../api/resources/workload.ts';
import { boundsOf } from '../../../core/workloads/pass.ts';
import type { Commit } from '../../history.ts';
import type { Checker, Facts } from '../checker.ts';

/** A Plan is committed within this time. */
const settledMs = 5_000;

export function updatesChecker({ state, nowMs, calmUpdates = false }: Facts): Checker {
  const copiesOf = (id: string): Instance[] =>
    [...state.list('instance')].filter(({ status }) => status.workload?.id === id);
  /** Hosts that were not Ready lately: what was decided then counts otherwise. */
  const notReadyAtMs = new Map<string, number>();
  const areHostsReady = (copies: readonly Instance[]): boolean =>
    copies.every(({ status: { host } }) => {
      if (host === undefined) return true;
      const now = state.get('host', `hosts/${host}`);
      const since = nowMs() - (notReadyAtMs.get(host) ?? Number.NEGATIVE_INFINITY);
      return now !== undefined && isReadyHost(now) && since > settledMs;
    });
  return {
    invariant: 0,
    onCommit({ events }) {
      if (!calmUpdates) return undefined;
      for (const { before, after } of events)
        for (const host of [before, after])
          if (host?.kind === 'host' && !isReadyHost(host)) notReadyAtMs.set(host.metadata.name, nowMs());
      for (const { before, after } of events) {
        if (after?.kind !== 'instance' || !after.status.workload) continue;
        const was = before?.kind === 'instance' ? before : undefined;
        const { name, id } = after.status.workload;
        const workload = state.get('workload', `workloads/${after.metadata.project}/${name}`);
        if (workload?.metadata.id !== id || workload.metadata.deletionRequestedAtMs !== undefined) continue;
        const copies = copiesOf(id);
        if (!areHostsReady(copies)) continue;
        // Of several Plans in one commit only the last state of the workload is seen, and this one was perhaps decided before that.
        const faults = [workload, ...beforeOf(events, workload)].map((each) =>
          was === undefined ? tooMany(each, copies) : tooFew(each, copies, { was, after }),
        );
        if (faults.every((fault) => fault !== undefined)) return faults[0];
      }
      return undefined;
    },
  };
}

function beforeOf(events: Commit['events'], { metadata }: Workload): Workload[] {
  return events.flatMap(({ before }) =>
    before?.kind === 'workload' && before.metadata.id === metadata.id ? [before] : [],
  );
}

function isReadyHost({ status }: Host): boolean {
  return status.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

function tooMany({ metadata, spec }: Workload, copies: readonly Instance[]): string | undefined {
  const most = spec.replicas + boundsOf(spec.strategy, spec.replicas).surge;
  const held = copies.filter(
    ({ metadata: { deletionRequestedAtMs }, status }) =>
      deletionRequestedAtMs === undefined || status.host !== undefined,
  );
  if (held.length <= most) return undefined;
  return `workload ${metadata.name} has ${held.length} copies after it created one; ${most} are allowed`;
}

function tooFew(
  { metadata, spec }: Workload,
  copies: readonly Instance[],
  { was, after }: { readonly was: Instance; readonly after: Instance },
): string | undefined {
  // Which of them has been ready for long enough, only the clock of the server says.
  if (spec.strategy.minHealthyMs > 0) return undefined;
  if (!isReady(was) || isReady(after) || after.metadata.deletionRequestedAtMs === undefined) return undefined;
  // Preempted for an instance of higher priority: no workload keeps a copy from that.
  if (after.status.conditions.some(({ reason }) => reason === 'Preempted')) return undefined;
  const least = spec.replicas - boundsOf(spec.strategy, spec.replicas).unavailable;
  const left = copies.filter(isReady).length;
  if (left >= least) return undefined;
  return `workload ${metadata.name} removed ready copy ${after.metadata.name}, and ${left} are left; ${least} are to be ready`;
}

function isReady({ metadata, status }: Instance): boolean {
  return metadata.deletionRequestedAtMs === undefined && status.phase === 'Running' && status.guest?.ready === true;
}
