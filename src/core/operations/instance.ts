// What users do with instances: create, replace, delete. Controllers place them and agents run them. The last spec is
// remembered so that equal specs share one object; it changes no answer.

import { ApiError } from '../../api/errors.ts';
import { type Instance, type InstanceSpec, isToBeOn } from '../../api/resources/instance.ts';
import { assertGang } from '../queue/gangs.ts';
import { chargeQuota } from '../queue/quotas.ts';
import { schemaVersion } from '../state/upgrade.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { assertAskable } from './askable.ts';
import { attachToExisting, attachToNew } from './volumes/attach.ts';
import { assertChecks } from './instances/checks.ts';
import { assertGraces } from './instances/graces.ts';
import { assertHostLoss } from './instances/host-loss.ts';
import { assertNotMigrating } from './instances/migrate.ts';
import { assertLifetime, sameLifetime } from './instances/lifetime.ts';
import { assertRun } from './jobs/runnable.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from './create.ts';
import { alreadyDone, type Decision } from './decision.ts';
import { assertNotDeleting, isDeleting, requestDeletion } from './deletion.ts';
import { assertPlacementRules } from './placement-rules.ts';
import { equalJson } from '../../base/equal-json.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from './replace.ts';
import { assertSecretsExist } from './secret-references.ts';
import { startAgain } from './start-again.ts';
import { assertTaskToTake } from './task-to-take.ts';

/** `input.name` may be empty: then a free name is derived from the image's name. */
export function createInstance(snapshot: Snapshot, input: CreateInput<InstanceSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'instance');
  if (earlier) return earlier;
  assertAskable(snapshot, input);
  assertRun(snapshot, input.spec);
  assertChecks(snapshot, input.spec);
  assertGraces(input.spec);
  assertHostLoss(input.spec, ctx.policy);
  assertLifetime(input.spec, { createdAtMs: ctx.nowMs, nowMs: ctx.nowMs });
  assertSecretsExist(snapshot, input.project, input.spec);
  if (input.spec.powerState === 'suspended')
    throw new ApiError('InvalidRequest', 'a new instance can be running or stopped; suspend it once it runs', {
      field: 'spec.powerState',
    });
  assertTaskToTake(snapshot, input.project, input.spec.placement.task);
  const name = input.name || freeName(snapshot, input.project, input.spec.image, ctx);
  const key = keys.instance(input.project, name);
  assertFree(snapshot, 'instance', key, name);
  const id = ctx.newId('inst');
  const instance: Instance = {
    kind: 'instance',
    schemaVersion,
    metadata: newMetadata(id, { ...input, name }, ctx),
    spec: likeTheLast(snapshot, input.spec),
    status: {
      phase: isToBeOn(input.spec) ? 'Pending' : 'Stopped',
      incarnation: 0,
      restartCount: 0,
      observedGeneration: 0,
      conditions: withConditions(
        [],
        [{ type: 'Scheduled', status: 'False', reason: 'Accepted', message: 'waiting in the queue' }],
        ctx.nowMs,
      ),
    },
  };
  assertGang(snapshot, instance);
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: instance },
        ...chargeQuota(snapshot, instance),
        ...attachToNew(snapshot, instance),
        ...rememberCreate(input, 'instance', { key, id }, ctx),
        // For an instance that should run, placement writes the first event: a second one would only cost.
        ...(isToBeOn(input.spec)
          ? []
          : [eventChange(instance, { reason: 'Accepted', message: 'kept stopped until it is started' }, ctx)]),
      ],
    },
    key,
    changed: true,
  };
}

const lastSpecs = new WeakMap<Snapshot, InstanceSpec>();

/** Equal specs often come in a row: sharing one object lets caches keyed by the spec work once. */
function likeTheLast(snapshot: Snapshot, spec: InstanceSpec): InstanceSpec {
  const last = lastSpecs.get(snapshot);
  if (last && equalJson(last, spec)) return last;
  lastSpecs.set(snapshot, spec);
  return spec;
}

function freeName(snapshot: Snapshot, project: string, image: string, ctx: Context): string {
  const stem = image.replaceAll('.', '-').slice(0, 50).replace(/-+$/, '');
  for (;;) {
    const name = `${stem}-${(36 ** 3 + ctx.prng.below(35 * 36 ** 3)).toString(36)}`;
    if (!snapshot.get('instance', keys.instance(project, name))) return name;
  }
}

/** The fields that can change after creation; others need a new instance. */
const changeable: ReadonlySet<string> = new Set([
  'powerState',
  'suspendTo',
  'restartPolicy',
  'restart',
  'starts',
  'priority',
  'stopGraceMs',
  'volumes',
  'checks',
  'ttlMs',
  'expiresAtMs',
  'protected',
  'onHostLoss',
]);

export function replaceInstance(snapshot: Snapshot, given: ReplaceInput<InstanceSpec>, ctx: Context): Decision {
  const key = keys.instance(given.project, given.name);
  const entry = existing(snapshot, 'instance', key, given.ifRevision);
  const { value } = entry;
  const input = { ...given, spec: withoutFewerStarts(value.spec, given.spec) };
  assertNotDeleting(value, 'instance');
  const specChanged = !equalJson(value.spec, input.spec);
  if (specChanged) assertChangeable(value.spec, input.spec);
  if (value.spec.onHostLoss !== input.spec.onHostLoss || !equalJson(value.spec.volumes, input.spec.volumes))
    assertHostLoss(input.spec, ctx.policy);
  if (!equalJson(value.spec.checks, input.spec.checks)) assertChecks(snapshot, input.spec);
  if (value.spec.stopGraceMs !== input.spec.stopGraceMs) assertGraces(input.spec);
  if (!sameLifetime(value.spec, input.spec))
    assertLifetime(input.spec, { createdAtMs: value.metadata.createdAtMs, nowMs: ctx.nowMs });
  if (input.spec.powerState === 'suspended' && value.spec.powerState !== 'suspended')
    assertSuspendable(snapshot, value);
  if (isToDisk(input.spec) && !isToDisk(value.spec)) assertSavable(snapshot, value);
  if (!equalJson(value.spec.volumes, input.spec.volumes))
    assertNotMigrating(entry, 'its volumes cannot be attached or detached');
  const sameLabels = equalJson(value.metadata.labels, input.labels);
  if (!specChanged && sameLabels) return alreadyDone(entry);
  if (!sameLabels) assertPlacementRules(snapshot, { ...input, placement: value.spec.placement });
  // Never placed: a host has nothing to stop or start.
  const unplaced =
    value.status.host === undefined && (value.status.phase === 'Pending' || value.status.phase === 'Stopped');
  const again =
    (input.spec.starts ?? 0) > (value.spec.starts ?? 0) ? startAgain(snapshot, value, input.spec, ctx) : undefined;
  const status = unplaced
    ? { ...value.status, phase: isToBeOn(input.spec) ? ('Pending' as const) : ('Stopped' as const) }
    : (again?.status ?? value.status);
  const next: Instance = {
    ...value,
    metadata: replacedMetadata(value.metadata, { labels: input.labels, specChanged }),
    spec: specChanged ? input.spec : value.spec,
    status,
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: next },
        ...(again ? [eventChange(next, again.event, ctx)] : []),
        ...(equalJson(value.spec.volumes, input.spec.volumes) ? [] : attachToExisting(snapshot, value, next, ctx)),
      ],
    },
    key,
    changed: true,
  };
}

/** A client that does not know `starts`, or sends an older value, must not trigger a start. */
function withoutFewerStarts(before: InstanceSpec, after: InstanceSpec): InstanceSpec {
  return before.starts !== undefined && (after.starts ?? 0) < before.starts
    ? { ...after, starts: before.starts }
    : after;
}

/**
 * Throws `Conflict`. A guest that is not up has no memory to keep; a requested suspension survives failures and
 * restarts.
 */
function assertSuspendable(snapshot: Snapshot, { metadata, status }: Instance): void {
  const what = `instance "${metadata.name}" cannot be suspended`;
  if (status.phase !== 'Running' && status.phase !== 'Suspended')
    throw new ApiError('Conflict', `${what}: it is ${status.phase}, and only running instances can be suspended`);
  const host = snapshot.get('host', keys.host(status.host ?? ''))?.value;
  const driver = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value.driver;
  if (host?.status.drivers.find(({ name }) => name === driver)?.suspends === true) return;
  throw new ApiError(
    'Conflict',
    `${what}: the driver ${driver ?? 'of its guest'} on host ${status.host ?? ''} does not suspend guests ("berth driver ls"); stop it instead`,
  );
}

function isToDisk({ powerState, suspendTo }: InstanceSpec): boolean {
  return powerState === 'suspended' && suspendTo === 'disk';
}

/** Throws `Conflict`: its driver writes no memory to disks, or a device of the host is part of the guest. */
function assertSavable(snapshot: Snapshot, { metadata, spec, status }: Instance): void {
  const what = `instance "${metadata.name}" cannot be suspended to disk`;
  const field = 'spec.suspendTo';
  if (spec.gpus !== undefined)
    throw new ApiError('Conflict', `${what}: it has a device of its host, whose state cannot be saved`, { field });
  const host = snapshot.get('host', keys.host(status.host ?? ''))?.value;
  const driver = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value.driver;
  if (host?.status.drivers.find(({ name }) => name === driver)?.offers?.includes('save') === true) return;
  throw new ApiError(
    'Conflict',
    `${what}: the driver ${driver ?? 'of its guest'} on host ${status.host ?? ''} does not save the memory of guests ("berth driver ls -o wide"); suspend it in memory instead`,
    { field },
  );
}

/** Throws `InvalidRequest` naming the field that cannot change. */
function assertChangeable(before: InstanceSpec, after: InstanceSpec): void {
  const was = new Map<string, unknown>(Object.entries(before));
  const is = new Map<string, unknown>(Object.entries(after));
  for (const field of new Set([...was.keys(), ...is.keys()])) {
    if (changeable.has(field) || equalJson(was.get(field), is.get(field))) continue;
    throw new ApiError('InvalidRequest', `spec.${field} of an instance cannot be changed; create a new instance`, {
      field: `spec.${field}`,
    });
  }
}

/**
 * Requests the deletion. The record goes when no host holds anything of the instance (controllers/garbage.ts).
 * Repeating it is harmless.
 */
export function deleteInstance(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision {
  const key = keys.instance(input.project, input.name);
  const entry = existing(snapshot, 'instance', key, input.ifRevision);
  const { value } = entry;
  if (isDeleting(value)) return alreadyDone(entry);
  const deleting: Instance = { ...value, status: { ...value.status, phase: 'Deleting' } };
  return requestDeletion({ ...entry, value: deleting }, 'deletion requested', ctx);
}
