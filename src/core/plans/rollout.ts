// The plan of an update of a workload, or of its undo. Pure: the change has been decided, and this says what it means for the copies.

import { type RolloutPlan, rolloutCopiesShownMax, rolloutHostsShownMax } from '../../api/plans/rollout-plan.ts';
import type { Workload } from '../../api/resources/workload.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Copy, nameOf } from '../workloads/copy.ts';
import { boundsOf, passOf } from '../workloads/pass.ts';
import { perHostOf } from '../workloads/per-host.ts';
import { presentCopiesOf, sameTemplate } from '../workloads/template.ts';
import { someNames, workloadPlanHash } from './workload-hash.ts';

export interface Rollout {
  readonly verb: RolloutPlan['verb'];
  readonly before: Workload;
  readonly after: Workload;
  /** Of the spec, as users may see them: hidden values are in no hash either. */
  readonly changes: RolloutPlan['changes'];
}

/** Of more, the count alone is part of the hash: the hash is computed slowly. */
const hashedMax = 1_000;

export function planRollout(snapshot: Snapshot, { verb, before, after, changes }: Rollout, nowMs: number): RolloutPlan {
  const { copies, wanted, strategy } = wantedOf(snapshot, after);
  const current = copies.filter(({ over, leaving }) => !over && !leaving);
  const replaced = current.filter(({ revision }) => revision !== after.status.revision);
  const { surge, unavailable } = boundsOf(strategy, wanted);
  const { created, removed } = numberOf(copies, { before, after }, nowMs);
  const at = replaced.slice(0, hashedMax).map(({ id, host }) => ({ id, ...(host === undefined ? {} : { host }) }));
  const { name, id, project } = before.metadata;
  return {
    ...{ verb, workload: name, workloadId: id, project, changes },
    hash: workloadPlanHash({
      workload: before,
      request: { verb, changes },
      copies: { replaced: replaced.length, at, created, removed: removed.map((copy) => copy.id) },
    }),
    revision: { before: before.status.revision, after: after.status.revision },
    replicas: { before: before.spec.perHost ? before.status.wanted : before.spec.replicas, after: wanted },
    ...{ strategy: strategy.type, surge, unavailable, paused: after.spec.paused },
    ...{ replaced: replaced.length, kept: current.length - replaced.length },
    ...{ created, removed: removed.map(nameOf) },
    hosts: hostsOf(replaced).slice(0, rolloutHostsShownMax),
    copies: replaced.slice(0, rolloutCopiesShownMax).map((copy) => ({
      ...{ instance: nameOf(copy), revision: copy.revision },
      ...(copy.host === undefined ? {} : { host: copy.host }),
    })),
  };
}

/** As the controller counts. */
function wantedOf(snapshot: Snapshot, workload: Workload) {
  const { spec } = workload;
  const copies = presentCopiesOf(snapshot, workload);
  return spec.perHost
    ? { ...perHostOf(snapshot, workload, copies), strategy: { ...spec.strategy, maxSurge: 0 } }
    : { copies, wanted: spec.replicas, strategy: spec.strategy };
}

/** What another number does at once. A new template decides about the copies as well: then nothing is said. */
function numberOf(
  copies: readonly Copy[],
  { before, after }: Pick<Rollout, 'before' | 'after'>,
  nowMs: number,
): { readonly created: number; readonly removed: readonly Copy[] } {
  const { spec, status } = after;
  if (spec.perHost || spec.replicas === before.spec.replicas || !sameTemplate(before.spec.template, spec.template))
    return { created: 0, removed: [] };
  const { create, remove } = passOf({
    ...{
      copies,
      wanted: spec.replicas,
      revision: status.revision,
      strategy: spec.strategy,
      paused: spec.paused,
      nowMs,
    },
    notBeforeMs: () => undefined,
  });
  return { created: create.length, removed: remove };
}

/** Most copies first. */
function hostsOf(copies: readonly Copy[]): RolloutPlan['hosts'] {
  const counts = new Map<string | undefined, number>();
  for (const { host } of copies) counts.set(host, (counts.get(host) ?? 0) + 1);
  return [...counts]
    .map(([host, count]) => ({ ...(host === undefined ? {} : { host }), copies: count }))
    .sort((a, b) => b.copies - a.copies || ((a.host ?? '') < (b.host ?? '') ? -1 : 1));
}

/** For a refusal. */
export function rolloutText({ replaced, hosts, created, removed }: RolloutPlan): string {
  const on = hosts.flatMap(({ host }) => host ?? []);
  const parts = [
    ...(replaced > 0 ? [`${replaced} replaced${on.length > 0 ? `, on ${someNames(on)}` : ''}`] : []),
    ...(created > 0 ? [`${created} created`] : []),
    ...(removed.length > 0 ? [`${someNames(removed)} removed`] : []),
  ];
  return parts.length === 0 ? 'none' : parts.join('; ');
}
