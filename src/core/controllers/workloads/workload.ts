// workload: keeps as many instances of a workload as are wanted, and updates them to its newest template. workloads/pass.ts decides about
// the copies; here it becomes a Plan.
//
//   template changes ──▶ copies are updated ──all available──▶ stable
//                              └──no progress for long──▶ back to the last stable template, once ──▶ stalled

import type { ApiError } from '../../../api/errors.ts';
import type { Workload, WorkloadStatus } from '../../../api/resources/workload.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { deleteInstance } from '../../operations/instance.ts';
import { type MadeChanges, untilRefused } from '../../operations/instances/until-refused.ts';
import { historyOf, withoutFormerStable, withoutRevisions } from '../../operations/workloads/revisions.ts';
import { newRevision } from '../../operations/workloads/workload.ts';
import { newCopy } from '../../operations/workloads/workload-template.ts';
import { type NewCondition, withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { WorkloadRevision } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { instancesOf, uncommittedRemovals } from '../../state/views/workload-copies.ts';
import { type Copy, nameOf } from '../../workloads/copy.ts';
import { type Failures, notBeforeMs, withFailures } from '../../workloads/failures.ts';
import { perHostOf } from '../../workloads/per-host.ts';
import { type Pass, passOf } from '../../workloads/pass.ts';
import { hasStalled, progressOf } from '../../workloads/progress.ts';
import { adopted, presentCopiesOf, sameTemplate } from '../../workloads/template.ts';
import { type Controller, keysOfKind, sleepMsMax } from '../controller.ts';

/** A project at its quota is looked at again this often. */
const quotaRetryMs = 5_000;
/** Copies that become copies of the present revision in one Plan. */
const adoptedMax = 500;

export const workload: Controller = {
  name: 'workload',
  watches: ['workload', 'instance', 'host'],
  *wakes({ key, kind, before, after }, snapshot) {
    if (kind === 'workload' && after !== null) yield key;
    const instance = after ?? before;
    if (instance?.kind === 'instance' && instance.status.workload)
      yield keys.workload(instance.metadata.project, instance.status.workload.name);
    // Hosts come and go more rarely than their heartbeats are written.
    if (kind === 'host' && snapshot.count('workload') > 0)
      for (const { key: of, value } of snapshot.list('workload')) if (value.spec.perHost) yield of;
  },
  keys: (snapshot) => keysOfKind(snapshot, 'workload'),
  reconcile(snapshot, key, ctx) {
    const entry = snapshot.get('workload', key);
    if (!entry) return emptyPlan;
    return entry.value.metadata.deletionRequestedAtMs === undefined
      ? keep(snapshot, entry, ctx)
      : remove(snapshot, entry, ctx);
  },
};

function keep(snapshot: Snapshot, entry: Entry<Workload>, ctx: Context): Plan {
  const { spec, status } = entry.value;
  const found = presentCopiesOf(snapshot, entry.value);
  const { copies, wanted } = spec.perHost
    ? perHostOf(snapshot, entry.value, found)
    : { copies: found, wanted: spec.replicas };
  const strategy = spec.perHost ? { ...spec.strategy, maxSurge: 0 } : spec.strategy;
  const failures = withFailures(status.failures, copies, ctx.nowMs);
  const pass = passOf({
    ...{ copies, wanted, strategy, revision: status.revision, paused: spec.paused, nowMs: ctx.nowMs },
    notBeforeMs: (ordinal) => notBeforeMs(failures, ordinal),
  });
  if (hasStalled(entry.value, pass, wanted, ctx.nowMs)) {
    const stable = spec.strategy.autoRevert && !status.reverting ? stableOf(snapshot, entry.value) : undefined;
    if (stable) return revert(snapshot, entry, stable, ctx);
  }
  return written(snapshot, entry, { copies, pass, wanted, failures }, ctx);
}

/** The newest template that was wholly available, unless it is the present one. */
function stableOf(snapshot: Snapshot, workload: Workload): WorkloadRevision | undefined {
  const { stableRevision, revision } = workload.status;
  if (stableRevision === undefined || stableRevision === revision) return undefined;
  const stable = historyOf(snapshot, workload).find(({ number }) => number === stableRevision);
  return stable && sameTemplate(stable.template, workload.spec.template) ? undefined : stable;
}

function revert(snapshot: Snapshot, entry: Entry<Workload>, stable: WorkloadRevision, ctx: Context): Plan {
  const { value } = entry;
  const back: Workload = {
    ...value,
    metadata: { ...value.metadata, generation: value.metadata.generation + 1 },
    spec: { ...value.spec, template: stable.template },
  };
  const message = `revision ${value.status.revision} made no progress; back to the template of revision ${stable.number}`;
  const { changes } = newRevision(snapshot, { ...entry, value: back }, { reverting: true }, ctx);
  return { changes: [...changes, eventChange(value, { type: 'Warning', reason: 'UpdateFailed', message }, ctx)] };
}

interface Looked {
  readonly copies: readonly Copy[];
  readonly pass: Pass;
  readonly wanted: number;
  readonly failures: Failures;
}

function written(snapshot: Snapshot, entry: Entry<Workload>, looked: Looked, ctx: Context): Plan {
  const { value } = entry;
  const { copies, pass, wanted } = looked;
  const { changes: made, refusal } = created(snapshot, value, pass, ctx);
  const { project } = value.metadata;
  const removed = pass.remove.flatMap(
    (copy) => deleteInstance(snapshot, { project, name: nameOf(copy) }, ctx).plan.changes,
  );
  const status = statusAfter(value, looked, refusal, ctx);
  // Written also when it stays the same: two Plans that were decided on one count conflict here,
  // as when the first was committed and its answer was lost.
  const isSame = equalJson(status, value.status) && made.length + removed.length === 0;
  const changes: Change[] = isSame ? [] : [{ key: entry.key, ifRevision: entry.revision, value: { ...value, status } }];
  changes.push(...withoutFormerStable(snapshot, value, status.stableRevision));
  const removing = new Set(pass.remove);
  changes.push(
    ...adopted(
      snapshot,
      copies.filter((copy) => !removing.has(copy)),
      adoptedMax,
    ),
  );
  const news = newsOf(value.status, status, wanted);
  if (news !== undefined) changes.push(eventChange(value, news, ctx));
  const stalledInMs =
    status.progress === undefined
      ? sleepMsMax
      : status.progress.atMs + value.spec.strategy.progressDeadlineMs - ctx.nowMs;
  const againMs = Math.min(pass.againMs ?? sleepMsMax, refusal ? quotaRetryMs : sleepMsMax, sleepMsMax);
  return {
    changes: [...changes, ...made, ...removed],
    conditions: [
      ...(made.length > 0
        ? [...uncommittedRemovals(snapshot, value.metadata.id), ...uncommittedHosts(snapshot, copies)]
        : []),
      ...(pass.remove.some(({ ready }) => ready) ? uncommittedReadiness(snapshot, copies, removing) : []),
    ],
    requeueAfterMs: stalledInMs > 0 ? Math.min(againMs, stalledInMs) : againMs,
  };
}

/** A copy that leaves a host which is not Ready is not counted. If the change of the host fails, the copy counts. */
function uncommittedHosts(snapshot: Snapshot, copies: readonly Copy[]): NonNullable<Plan['conditions']> {
  const hosts = new Set(
    copies.flatMap(({ over, leaving, hostUp, host }) => ((over || leaving) && !hostUp ? (host ?? []) : [])),
  );
  return [...hosts].flatMap((host) => {
    const entry = snapshot.get('host', keys.host(host));
    return entry && entry.revision < 0 ? [{ key: entry.key, ifRevision: entry.revision }] : [];
  });
}

/** A copy whose report fails was perhaps not ready: then too few ready ones would be left. */
function uncommittedReadiness(
  snapshot: Snapshot,
  copies: readonly Copy[],
  removing: ReadonlySet<Copy>,
): NonNullable<Plan['conditions']> {
  return copies.flatMap((copy) => {
    if (!copy.ready || removing.has(copy)) return [];
    const entry = snapshot.get('instance', copy.key);
    return entry && entry.revision < 0 ? [{ key: entry.key, ifRevision: entry.revision }] : [];
  });
}

function created(snapshot: Snapshot, workload: Workload, { create }: Pass, ctx: Context): MadeChanges {
  if (create.length === 0) return { changes: [], refusal: undefined };
  const from = templateFor(snapshot, workload);
  return untilRefused(create.slice(0, atOnceMax(snapshot, workload, from)), (ordinal) =>
    newCopy(snapshot, { workload, from, ordinal }, ctx),
  );
}

/** Where a copy depends on the one before, as by a quota or a volume, each has a Plan of its own. */
function atOnceMax(
  snapshot: Snapshot,
  { metadata }: Workload,
  { template }: Pick<WorkloadRevision, 'template'>,
): number {
  const quota = snapshot.get('project', keys.project(metadata.project))?.value.spec.quota;
  return quota === undefined && template.spec.volumes === undefined ? Number.POSITIVE_INFINITY : 1;
}

/** While an update stands still, copies that fail are replaced by such as there were before it. */
function templateFor(snapshot: Snapshot, workload: Workload): Pick<WorkloadRevision, 'template' | 'number'> {
  const present = { template: workload.spec.template, number: workload.status.revision };
  return workload.spec.paused ? (stableOf(snapshot, workload) ?? present) : present;
}

function statusAfter(
  { status, spec }: Workload,
  { pass, wanted, failures }: Looked,
  refusal: ApiError | undefined,
  ctx: Context,
): WorkloadStatus {
  const { progress: _progress, reverting: _reverting, ...kept } = status;
  const { counts, old } = pass;
  const isStable = old === 0 && counts.available === wanted && counts.copies === wanted;
  const progress = isStable || spec.paused ? undefined : progressOf(status, pass, ctx.nowMs);
  const isStalled = progress !== undefined && ctx.nowMs - progress.atMs >= spec.strategy.progressDeadlineMs;
  return {
    ...kept,
    ...counts,
    wanted,
    failures: [...failures],
    // Without copies, a revision has not shown that it becomes ready.
    ...(isStable && wanted > 0 ? { stableRevision: status.revision } : {}),
    ...(progress === undefined ? {} : { progress }),
    ...(status.reverting && !isStable ? { reverting: true } : {}),
    conditions: withConditions(
      status.conditions,
      [conditionNow(pass, { wanted, isStable, isStalled, refusal })],
      ctx.nowMs,
    ),
  };
}

function conditionNow(
  { counts, old }: Pass,
  now: {
    readonly wanted: number;
    readonly isStable: boolean;
    readonly isStalled: boolean;
    readonly refusal: ApiError | undefined;
  },
): NewCondition {
  const type = 'Available';
  const { wanted, refusal } = now;
  if (now.isStable) return { type, status: 'True', reason: 'Available', message: allAvailable(wanted) };
  if (refusal)
    return { type, status: 'False', reason: refusal.code, message: `a copy cannot be created: ${refusal.message}` };
  const what =
    old > 0
      ? `${counts.updated} of ${wanted} copies updated; ${counts.available} of all ${counts.copies} available`
      : `${counts.available} of ${wanted} copies available`;
  if (now.isStalled)
    return { type, status: 'False', reason: 'Stalled', message: `no progress within the deadline: ${what}` };
  return { type, status: 'False', reason: old > 0 ? 'Updating' : 'Progressing', message: what };
}

function allAvailable(wanted: number): string {
  if (wanted === 0) return 'no copies are wanted';
  return wanted === 1 ? 'the copy is available' : `all ${wanted} copies are available`;
}

function newsOf(before: WorkloadStatus, after: WorkloadStatus, wanted: number) {
  const reason = (status: WorkloadStatus): string | undefined => status.conditions[0]?.reason;
  if (reason(before) === reason(after)) return undefined;
  const message = after.conditions[0]?.message ?? '';
  if (reason(after) === 'Available') return { reason: 'Available', message: `revision ${after.revision}: ${message}` };
  if (reason(after) === 'Progressing' || reason(after) === 'Updating') return undefined;
  return {
    type: 'Warning' as const,
    reason: reason(after) ?? '',
    message: wanted === 0 ? 'nothing is wanted' : message,
  };
}

function remove(snapshot: Snapshot, { key, revision, value }: Entry<Workload>, ctx: Context): Plan {
  const { project, id } = value.metadata;
  const instances = instancesOf(snapshot, id);
  if (instances.length > 0)
    return {
      changes: instances.flatMap(({ value: { metadata } }) =>
        metadata.deletionRequestedAtMs === undefined
          ? deleteInstance(snapshot, { project, name: metadata.name }, ctx).plan.changes
          : [],
      ),
    };
  return {
    changes: [
      { key, ifRevision: revision, value: null },
      ...withoutRevisions(snapshot, value),
      eventChange(value, { reason: 'Deleted', message: 'removed completely' }, ctx),
    ],
  };
}
