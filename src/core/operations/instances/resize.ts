// What users do to resize an instance: show the plan, begin it by its hash. One Plan changes the spec and holds the larger of both amounts;
// the host stops the guest, changes it and starts it, and its report releases what is no longer held.

import { ApiError } from '../../../api/errors.ts';
import type { ResizeOptions, ResizePlan } from '../../../api/plans/resize-plan.ts';
import type { GuestStatus } from '../../../api/agent-protocol.ts';
import { type Instance, type InstanceStatus, isToBeOn } from '../../../api/resources/instance.ts';
import type { Amounts } from '../../../api/resources/metadata.ts';
import { claimAgain, holdsOnlyDisk } from '../../ledger/ledger.ts';
import { planResize } from '../../plans/resize.ts';
import { chargeResize } from '../../queue/quotas.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change, Plan } from '../../state/plan.ts';
import type { Allocation } from '../../state/records.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { existing, replacedMetadata } from '../replace.ts';

interface Named {
  readonly project: string;
  readonly name: string;
}

/** Throws `NotFound`, or `InvalidRequest` when nothing is asked for or the size does not exist. */
export function showResize(snapshot: Snapshot, { project, name }: Named, options: ResizeOptions): ResizePlan {
  assertAsked(snapshot, options);
  const { value } = existing(snapshot, 'instance', keys.instance(project, name));
  return planResize(snapshot, value, options).shown;
}

/** Throws `Conflict` when there is an obstacle, naming all, and when the hash is of another plan. */
export function beginResize(
  snapshot: Snapshot,
  { project, name, options, hash }: Named & { readonly options: ResizeOptions; readonly hash: string },
  ctx: Context,
): { readonly plan: Plan; readonly shown: ResizePlan } {
  assertAsked(snapshot, options);
  const entry = existing(snapshot, 'instance', keys.instance(project, name));
  const { shown, spec, target } = planResize(snapshot, entry.value, options);
  if (hash !== shown.hash)
    throw new ApiError(
      'Conflict',
      `the plan to resize instance "${name}" is no longer as it was shown; look at the plan again`,
      { field: 'apply', details: { hash: shown.hash } },
    );
  if (target === undefined)
    throw new ApiError(
      'Conflict',
      `instance "${name}" cannot be resized: ${shown.obstacles.map(({ message }) => message).join('; ')}`,
      { details: { obstacles: shown.obstacles, wouldFit: shown.wouldFit } },
    );
  const { metadata, status } = entry.value;
  const resize = { order: (status.resize?.order ?? 0) + 1, pending: true };
  const next: Instance = {
    ...entry.value,
    metadata: replacedMetadata(metadata, { labels: metadata.labels, specChanged: true }),
    spec,
    status: { ...status, assigned: shown.after, resize },
  };
  const message = `is resized${shown.restarts ? ': it is stopped, and starts again' : ''}`;
  return {
    shown,
    plan: {
      changes: [
        { key: entry.key, ifRevision: entry.revision, value: next },
        ...claimAgain(snapshot, target.allocation, heldMeanwhile(target, shown)),
        ...chargeResize(snapshot, metadata.project, shown),
        eventChange(
          next,
          { reason: 'Resizing', message, ...(status.host === undefined ? {} : { host: status.host }) },
          ctx,
        ),
      ],
    },
  };
}

function assertAsked(snapshot: Snapshot, options: ResizeOptions): void {
  if (Object.keys(options).length === 0)
    throw new ApiError('InvalidRequest', 'cpus, memoryMiB, diskGiB or size must say what is to change', {
      field: 'cpus',
    });
  const { size } = options;
  if (size !== undefined && !snapshot.get('size', keys.size(size)))
    throw new ApiError('InvalidRequest', `there is no size "${size}"; "berth size ls" shows the sizes`, {
      field: 'size',
    });
}

interface Target {
  readonly allocation: Entry<Allocation>;
  readonly providerId: string;
}

/** Until the guest has been stopped it uses what it had. A stopped one holds its disk only. */
function heldMeanwhile({ allocation, providerId }: Target, { after }: ResizePlan): Allocation['amounts'] {
  const held = allocation.value.amounts[providerId] ?? {};
  const classes = holdsOnlyDisk(allocation.value) ? ['DISK_GB'] : Object.keys({ ...held, ...after });
  const larger = classes.map((of): [string, number] => [of, Math.max(held[of] ?? 0, after[of] ?? 0)]);
  return { [providerId]: Object.fromEntries(larger.filter(([, amount]) => amount > 0)) };
}

/** After a report of its host; undefined: nothing is pending, or the host has not done it. */
export function resizeDone(
  { spec, status: { resize, assigned = {} } }: Instance,
  allocation: Entry<Allocation>,
  { state, resized = 0 }: GuestStatus,
): { readonly resize: NonNullable<InstanceStatus['resize']>; readonly released: readonly Change[] } | undefined {
  if (!resize?.pending || resized < resize.order) return undefined;
  if (state === 'stopped' && isToBeOn(spec)) return undefined; // it starts the next moment
  const done = { ...resize, pending: false };
  if (holdsOnlyDisk(allocation.value)) return { resize: done, released: [] };
  const trimmed: Record<string, Amounts> = {};
  let smaller = false;
  for (const [providerId, held] of Object.entries(allocation.value.amounts)) {
    const exact = Object.entries(held).map(([of, amount]): [string, number] => [
      of,
      Math.min(amount, assigned[of] ?? 0),
    ]);
    trimmed[providerId] = Object.fromEntries(exact.filter(([, amount]) => amount > 0));
    smaller ||= exact.some(([of, amount]) => amount < (held[of] ?? 0));
  }
  const { key, revision, value } = allocation;
  return {
    resize: done,
    released: smaller ? [{ key, ifRevision: revision, value: { ...value, amounts: trimmed } }] : [],
  };
}
