// Drains and restores: each ends, at its deadline at the latest, by the clocks of the control planes. One that is over has left nothing that runs on its
// host, or says of each instance why it is still there.

import type { Instance } from '../../../api/resources/instance.ts';
import type { HostPlanRecord } from '../../../core/state/records.ts';
import type { Checker, Facts } from '../checker.ts';

export function drainsChecker({ state, servers, nowMs }: Facts): Checker {
  /** A control plane whose clock went back has more time until the deadline. */
  const isOverdue = ({ deadlineAtMs }: Pick<HostPlanRecord, 'deadlineAtMs'>): boolean =>
    servers().every(({ wallMs = nowMs }) => wallMs() > (deadlineAtMs ?? 0));
  return {
    invariant: 0,
    onCommit({ events }) {
      for (const { before, after } of events) {
        if (after?.kind !== 'hostPlan' || (before?.kind === 'hostPlan' && before.phase === after.phase)) continue;
        const fault = faultOfEnd(after);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
    *unrest() {
      const running = new Map<string, Instance[]>();
      for (const instance of state.list('instance')) {
        const { host, evicted } = instance.status;
        // What a drain has stopped is replaced whatever becomes of the drain.
        if (instance.spec.powerState === 'stopped') continue;
        if (evicted && host !== undefined) running.set(host, [...(running.get(host) ?? []), instance]);
      }
      const hosts = new Set(Array.from(state.list('host'), ({ metadata }) => metadata.id));
      for (const { host, hostId, phase, deadlineAtMs } of state.list('hostRestore')) {
        if (!hosts.has(hostId)) yield `the restore of host ${host}, which is gone, is still kept`;
        if (phase === 'Restoring' && isOverdue({ deadlineAtMs })) yield `host ${host} is still being restored`;
      }
      for (const plan of state.list('hostPlan')) {
        const { host, hostId, phase } = plan;
        if (!hosts.has(hostId)) yield `the plan of host ${host}, which is gone, is still kept`;
        if (phase === 'Draining' && isOverdue(plan)) yield `host ${host} is still being drained`;
        // What a cancelled drain, or one over its deadline, has left needs no deletion any more.
        const marked = phase === 'Draining' ? [] : (running.get(host) ?? []);
        for (const { metadata } of marked)
          if (metadata.deletionRequestedAtMs === undefined)
            yield `instance ${metadata.name} on ${host} is asked to leave by no drain (${phase})`;
      }
    },
  };
}

function faultOfEnd({ host, phase, guests }: HostPlanRecord): string | undefined {
  if (phase === 'Drained' && guests.some(({ progress }) => progress !== 'done'))
    return `the drain of ${host} is over, and not all of it is done`;
  if (phase !== 'Incomplete') return undefined;
  const left = guests.filter(({ progress }) => progress !== 'done');
  const silent = left.find(
    ({ progress, message, reasons }) => progress === 'waiting' || (!message && reasons.length === 0),
  );
  if (left.length === 0) return `the drain of ${host} is incomplete, and all of it is done`;
  return silent && `the drain of ${host} is over, and does not say why ${silent.name} is still there`;
}
