// What users do with workloads. controllers/workloads/workload.ts makes and removes the instances. Undo is a change
// back to a former template.

import { ApiError } from '../../../api/errors.ts';
import type { Workload, WorkloadSpec, WorkloadStatus } from '../../../api/resources/workload.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { historyOf, revisionOf, withoutOldRevisions } from './revisions.ts';
import { sameTemplate } from '../../workloads/template.ts';
import { assertTemplate } from './workload-template.ts';
import { withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { instancesOf } from '../../state/views/workload-copies.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { assertNotDeleting, isDeleting, requestDeletion } from '../deletion.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from '../replace.ts';

type WorkloadInput = CreateInput<WorkloadSpec>;

export function createWorkload(snapshot: Snapshot, input: WorkloadInput, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'workload');
  if (earlier) return earlier;
  assertStrategy(input.spec);
  assertTemplate(snapshot, input, ctx);
  const key = keys.workload(input.project, input.name);
  assertFree(snapshot, 'workload', key, input.name);
  const metadata = newMetadata(ctx.newId('wkl'), input, ctx);
  const status: WorkloadStatus = {
    revision: 1,
    ...{ wanted: input.spec.replicas, copies: 0, updated: 0, ready: 0, available: 0 },
    failures: [],
    conditions: withConditions(
      [],
      [{ type: 'Available', status: 'False', reason: 'Accepted', message: 'its copies are being created' }],
      ctx.nowMs,
    ),
  };
  const workload: Workload = { kind: 'workload', schemaVersion, metadata, spec: input.spec, status };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: workload },
        revisionOf(snapshot, workload, ctx),
        ...rememberCreate(input, 'workload', { key, id: metadata.id }, ctx),
        eventChange(workload, { reason: 'Accepted', message: 'accepted' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

export function replaceWorkload(snapshot: Snapshot, input: ReplaceInput<WorkloadSpec>, ctx: Context): Decision {
  const key = keys.workload(input.project, input.name);
  const entry = existing(snapshot, 'workload', key, input.ifRevision);
  const { value } = entry;
  assertNotDeleting(value, 'workload');
  const specChanged = !equalJson(value.spec, input.spec);
  if (!specChanged && equalJson(value.metadata.labels, input.labels)) return alreadyDone(entry);
  assertStrategy(input.spec);
  const metadata = replacedMetadata(value.metadata, { labels: input.labels, specChanged });
  const changed: Workload = { ...value, metadata, spec: input.spec };
  const isSame = sameTemplate(value.spec.template, input.spec.template);
  if (!isSame) assertTemplate(snapshot, input, ctx);
  const { changes } = isSame
    ? { changes: [{ key, ifRevision: entry.revision, value: changed }] }
    : newRevision(snapshot, { key, revision: entry.revision, value: changed }, {}, ctx);
  return { plan: { changes }, key, changed: true };
}

/** The template of `entry` becomes the next revision, to which all copies are updated. */
export function newRevision(
  snapshot: Snapshot,
  { key, revision, value }: { readonly key: string; readonly revision: number; readonly value: Workload },
  { reverting }: { readonly reverting?: true },
  ctx: Context,
): { readonly changes: readonly Change[]; readonly number: number } {
  const { progress: _progress, reverting: _reverting, ...status } = value.status;
  const number = status.revision + 1;
  const next: Workload = {
    ...value,
    status: { ...status, revision: number, failures: [], ...(reverting ? { reverting } : {}) },
  };
  const message = `updating to revision ${number}`;
  return {
    changes: [
      { key, ifRevision: revision, value: next },
      revisionOf(snapshot, next, ctx),
      ...withoutOldRevisions(snapshot, next),
      eventChange(next, { reason: reverting ? 'Reverting' : 'Updating', message }, ctx),
    ],
    number,
  };
}

/** The template of an earlier revision becomes the newest. `to` absent: the one before the current one. */
export function undoWorkload(
  snapshot: Snapshot,
  { key, to }: { readonly key: string; readonly to?: number },
  ctx: Context,
): Decision {
  const entry = snapshot.get('workload', key);
  if (!entry) throw new ApiError('NotFound', 'there is no such workload');
  const { metadata, status, spec } = entry.value;
  const before = historyOf(snapshot, entry.value).filter(({ number }) => number !== status.revision);
  const wanted = to === undefined ? before.at(-1) : before.find(({ number }) => number === to);
  if (wanted === undefined) {
    const wish = to === undefined ? 'earlier revision' : `earlier revision ${to}`;
    const kept = before.length === 0 ? 'none' : before.map(({ number }) => number).join(', ');
    const message = `workload "${metadata.name}" has no ${wish}; earlier revisions that it keeps: ${kept}`;
    throw new ApiError('InvalidRequest', message, { field: 'to' });
  }
  const changed: Workload = {
    ...entry.value,
    metadata: replacedMetadata(metadata, { labels: metadata.labels, specChanged: true }),
    spec: { ...spec, template: wanted.template },
  };
  return {
    plan: { changes: newRevision(snapshot, { ...entry, value: changed }, {}, ctx).changes },
    key,
    changed: true,
  };
}

/** Its instances are deleted first (controllers/workloads/workload.ts). */
export function deleteWorkload(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision {
  const key = keys.workload(input.project, input.name);
  const entry = existing(snapshot, 'workload', key, input.ifRevision);
  const { value } = entry;
  if (isDeleting(value)) return alreadyDone(entry);
  const held = instancesOf(snapshot, value.metadata.id).find((copy) => copy.value.spec.protected === true);
  if (held) throw new ApiError('Conflict', `its instance "${held.value.metadata.name}" is protected from deletion`);
  return requestDeletion(entry, 'its copies are removed, then the workload', ctx);
}

function assertStrategy({ strategy, perHost, replicas, template }: WorkloadSpec): void {
  const refuse = (field: string, message: string): never => {
    throw new ApiError('InvalidRequest', `${field}: ${message}`, { field });
  };
  const isZero = (share: number | string): boolean => share === 0 || share === '0%';
  if (strategy.type === 'RollingUpdate' && isZero(strategy.maxSurge) && isZero(strategy.maxUnavailable))
    refuse('spec.strategy.maxUnavailable', 'it and maxSurge are both 0: no copy could be updated');
  if (perHost && replicas !== 1) refuse('spec.replicas', 'with perHost the hosts say how many there are; leave it out');
  if (template.spec.gang !== undefined) refuse('spec.template.spec.gang', 'copies of a workload are no gang');
  if (template.spec.run !== undefined)
    refuse('spec.template.spec.run', 'a program that runs once is a job, not a workload');
}
