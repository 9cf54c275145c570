// Bind: the Plan that assigns waiting instances to hosts and holds their room, for one or several together. It does not
// choose hosts.

import { bootOf } from '../../api/instances/firmware.ts';
import type { Instance, InstanceStatus } from '../../api/resources/instance.ts';
import { claim, claimWithVolumes } from '../ledger/ledger.ts';
import { placedStatus } from '../operations/volumes/attach.ts';
import { passGates } from '../queue/limits.ts';
import type { Request } from '../scheduler/request.ts';
import { type Placed, placedMessage } from '../scheduler/schedule.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { nextIncarnation } from '../state/incarnation.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import type { Change, Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { volumeStatusChange } from '../state/volume-change.ts';

export interface Binding {
  readonly instance: Entry<Instance>;
  readonly request: Request;
  readonly placed: Placed;
  /** Replaces the message about how the host was chosen. */
  readonly message?: string;
}

/** `gates`: of the limits that they count towards; `more`: further changes for the Plan. */
export function bind(
  snapshot: Snapshot,
  bindings: readonly Binding[],
  { gates = [], more = [] }: { readonly gates?: Iterable<string>; readonly more?: readonly Change[] },
  ctx: Context,
): Plan {
  return {
    changes: [...changesOfAll(snapshot, bindings, ctx), ...passGates(snapshot, gates), ...more],
    // S4.3: the hosts still exist, are online, on the same machine and not paused.
    conditions: Array.from(new Set(bindings.map(({ placed }) => keys.host(placed.host))), (key) => ({
      key,
      ifRevision: snapshot.get('host', key)?.revision ?? 0,
    })),
  };
}

/** Several instances on one host rewrite the same providers: each is written once. */
function changesOfAll(snapshot: Snapshot, bindings: readonly Binding[], ctx: Context): Iterable<Change> {
  const [first] = bindings;
  if (first && bindings.length === 1) return changesOf(snapshot, first, ctx);
  const changes = new Map<string, Change>();
  for (const binding of bindings)
    for (const change of changesOf(snapshot, binding, ctx)) changes.set(change.key, change);
  return changes.values();
}

function changesOf(snapshot: Snapshot, binding: Binding, ctx: Context): Change[] {
  const { instance, placed, request } = binding;
  const { host, driver, held } = placed;
  const { metadata, status } = instance.value;
  const incarnation = nextIncarnation(snapshot, instance.value);
  const message = binding.message ?? placedMessage(placed);
  const volumes = request.unplacedVolumes ?? noVolumes;
  const claimed = {
    consumer: { id: metadata.id, incarnation, project: metadata.project, name: metadata.name },
    host,
    held,
    driver,
    ports: request.ports,
  };
  return [
    instanceStatusChange(instance, {
      ...withoutFormerLife(status),
      phase: 'Scheduled',
      host,
      incarnation,
      assigned: request.assigned,
      ...bootStatus(snapshot, instance.value),
      scheduledAtMs: ctx.nowMs,
      conditions: withConditions(
        status.conditions,
        [
          { type: 'Scheduled', status: 'True', reason: 'Placed', message },
          { type: 'Running', status: 'False', reason: 'NotStarted', message: 'its host has not started it yet' },
          { type: 'Ready', status: 'False', reason: 'NotStarted', message: 'its host has not started it yet' },
        ],
        ctx.nowMs,
      ),
    }),
    ...(volumes.length === 0
      ? claim(snapshot, claimed)
      : claimWithVolumes(
          snapshot,
          claimed,
          volumes.map(({ value }) => value),
        )),
    ...volumes.map((volume) =>
      volumeStatusChange(volume, { ...volume.value.status, ...placedStatus(volume.value, host, ctx) }),
    ),
    eventChange(instance.value, { reason: 'Scheduled', message, host }, ctx),
  ];
}

/** Kept for the whole life of its guest: its image may change. */
function bootStatus(snapshot: Snapshot, { spec }: Instance): Pick<InstanceStatus, 'boot'> {
  const boot = bootOf(spec, snapshot.imageByName(spec.image)?.value.spec);
  return boot.firmware === undefined && boot.tpm === undefined ? {} : { boot };
}

const noVolumes: NonNullable<Request['unplacedVolumes']> = [];

/** Removes what the previous guest left in the status; nothing for a new instance. */
function withoutFormerLife(status: InstanceStatus): InstanceStatus {
  const { guest, report, startAgain, readyAtMs, runningAtMs, failedAtMs, nomination, diskIncarnation } = status;
  const { drainedFrom, boot } = status;
  if (
    (boot ??
      drainedFrom ??
      diskIncarnation ??
      guest ??
      report ??
      startAgain ??
      readyAtMs ??
      runningAtMs ??
      failedAtMs ??
      nomination) === undefined
  )
    return status;
  const {
    guest: _guest,
    report: _report,
    startAgain: _startAgain,
    readyAtMs: _ready,
    runningAtMs: _running,
    failedAtMs: _failed,
    nomination: _nomination,
    diskIncarnation: _disk,
    drainedFrom: _origin,
    boot: _boot,
    ...kept
  } = status;
  return kept;
}
