// Explain: for every host, all the rules that refuse an instance, or its score by rule. The same rules as scheduling.

import type { Explanation, HostExplanation } from '../../api/explanation.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { conditionOf } from '../state/conditions.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Candidate } from './framework.ts';
import { plugins, profileByName } from './registry.ts';
import { type Request, requestOf } from './request.ts';
import { candidates, refusalBy, schedule, summarize } from './schedule.ts';

export function explain(snapshot: Snapshot, instance: Instance): Explanation {
  const request = requestOf(snapshot, instance);
  const hosts = [...candidates(snapshot)].map((candidate) => explainHost(snapshot, candidate, request, instance));
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
  return placement.placed
    ? `fits on ${placement.candidate.host.value.metadata.name}; about to be placed`
    : summarize(placement);
}

/** The room an instance holds on its own host counts as free for itself: the question is why it is (or could be) there. */
function explainHost(snapshot: Snapshot, candidate: Candidate, request: Request, instance: Instance): HostExplanation {
  const name = candidate.host.value.metadata.name;
  const current = instance.status.host === name;
  const seen = current ? withoutOwnUse(snapshot, candidate, instance) : candidate;
  const refusals = plugins.flatMap((plugin) => refusalBy(plugin, seen, request) ?? []);
  const { weights } = profileByName[request.profile];
  const scores: Record<string, number> = {};
  let score = 0;
  if (refusals.length === 0) {
    for (const plugin of plugins) {
      const weight = weights[plugin.name];
      if (!weight || !plugin.score) continue;
      scores[plugin.name] = weight * plugin.score(seen, request);
      score += scores[plugin.name] ?? 0;
    }
  }
  return {
    host: name,
    current,
    fits: refusals.length === 0,
    refusals: refusals.map(({ plugin, reason, message }) => ({ rule: plugin, reason, message })),
    ...(refusals.length === 0 ? { score, scores } : {}),
  };
}

function withoutOwnUse(snapshot: Snapshot, candidate: Candidate, instance: Instance): Candidate {
  const used = new Map(candidate.used);
  for (const { value: allocation } of snapshot.allocationsOfConsumer(instance.metadata.id)) {
    for (const [resourceClass, amount] of Object.entries(
      allocation.amounts[candidate.provider?.value.id ?? ''] ?? {},
    )) {
      used.set(resourceClass, (used.get(resourceClass) ?? 0) - amount);
    }
  }
  return { ...candidate, used };
}
