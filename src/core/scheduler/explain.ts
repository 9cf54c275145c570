// Explain: for every host, all the rules that refuse an instance, or its score by rule. The same rules as scheduling.

import type { Explanation, HostExplanation } from '../../api/explanation.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { conditionOf } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Fleet, fleetOf } from './fleet.ts';
import { fullScan, type HostVerdict } from './full-scan.ts';
import { belongingOf, placeOf } from './groups.ts';
import { type Request, requestOf } from './request.ts';
import { schedule, summarize } from './schedule.ts';

export function explain(snapshot: Snapshot, instance: Instance): Explanation {
  const request = requestOf(snapshot, instance);
  const fleet = fleetOf(snapshot);
  const hosts = fleet.tentatively(() => {
    withoutItself(snapshot, fleet, instance);
    return [...fullScan(request, fleet)].map((verdict) => explainHost(verdict, instance));
  });
  hosts.sort(
    (a, b) =>
      Number(b.current) - Number(a.current) ||
      Number(b.fits) - Number(a.fits) ||
      (b.score ?? 0) - (a.score ?? 0) ||
      (a.host < b.host ? -1 : 1),
  );
  return {
    instance: instance.metadata.name,
    project: instance.metadata.project,
    phase: instance.status.phase,
    ...(instance.status.host === undefined ? {} : { host: instance.status.host }),
    summary: summaryOf(snapshot, instance, request),
    profile: request.profile,
    amounts: { ...request.amounts },
    hosts,
  };
}

function summaryOf(snapshot: Snapshot, instance: Instance, request: Request): string {
  const scheduled = conditionOf(instance.status.conditions, 'Scheduled');
  const running = conditionOf(instance.status.conditions, 'Running');
  if (running && (instance.status.phase === 'Failed' || instance.status.phase === 'Exited')) {
    return `${running.reason}: ${running.message}; it was ${scheduled?.message ?? 'placed'}`;
  }
  if (instance.status.host !== undefined) return scheduled?.message ?? `placed on ${instance.status.host}`;
  const placement = schedule(snapshot, request);
  return placement.placed ? `fits on ${placement.host}; about to be placed` : summarize(placement);
}

function explainHost({ host, refusals, score, scores }: HostVerdict, instance: Instance): HostExplanation {
  const fits = refusals.length === 0;
  return {
    host,
    current: instance.status.host === host,
    fits,
    refusals: refusals.map(({ plugin, reason, message }) => ({ rule: plugin, reason, message: message() })),
    ...(fits ? { score, scores } : {}),
  };
}

/** What an instance holds on its own host counts as free for itself: the question is why it is (or could be) there. */
function withoutItself(snapshot: Snapshot, fleet: Fleet, instance: Instance): void {
  for (const { value: allocation } of snapshot.allocationsOfConsumer(instance.metadata.id)) {
    const slot = fleet.slotOf(allocation.host);
    if (slot === undefined) continue;
    fleet.giveBack(slot, allocation.amounts, allocation.ports);
  }
  const place = placeOf(instance);
  const slot = place === undefined ? undefined : fleet.slotOf(place);
  if (slot !== undefined) fleet.groups.try(slot, belongingOf(instance), -1);
}
