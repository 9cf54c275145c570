// The plan to resize an instance on its host: what it has, what it would have, whether its host has the room, and everything that is in the
// way. Pure.

import { isContainerImage } from '../../api/container-image.ts';
import type { PlanReason } from '../../api/plans/host-plan.ts';
import type { ResizeOptions, ResizePlan } from '../../api/plans/resize-plan.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { sha256 } from '../../base/sha256.ts';
import { fit, holdsOnlyDisk } from '../ledger/ledger.ts';
import { isMigrating } from '../migrations/migration-state.ts';
import { describeFits } from '../scheduler/plugins/fit.ts';
import { type Request, requestOf } from '../scheduler/request.ts';
import { engineOf } from '../scheduler/schedule.ts';
import { isReady } from '../state/conditions.ts';
import { mayRunUnseen } from '../state/guest-phase.ts';
import { keys } from '../state/keys.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { endOf, workloadOf } from './owner.ts';

export interface PlannedResize {
  readonly shown: ResizePlan;
  readonly spec: InstanceSpec;
  /** Absent: there is an obstacle. */
  readonly target?: { readonly allocation: Entry<Allocation>; readonly providerId: string };
}

export function planResize(snapshot: Snapshot, instance: Instance, options: ResizeOptions): PlannedResize {
  const { metadata, status } = instance;
  const spec = resizedSpec(instance.spec, options);
  const request = requestOf(snapshot, { ...instance, spec });
  const before = status.assigned ?? requestOf(snapshot, instance).assigned;
  const after = request.assigned;
  const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation));
  const placed = allocation !== undefined && allocation.value.host === status.host ? allocation : undefined;
  const obstacles = placed
    ? [...ofItsState(snapshot, instance), ...ofItsGuest(snapshot, instance, placed.value), ...ofItsDisk(before, after)]
    : [{ code: 'NotPlaced', message: 'it is on no host: create it again with the other amounts' }];
  const providerId = placed && Object.keys(placed.value.amounts)[0];
  const short = placed && providerId !== undefined ? shortOf(snapshot, placed.value, providerId, after) : undefined;
  if (short !== undefined) obstacles.push({ code: 'NoRoom', message: `on its host ${status.host}: ${short}` });
  const { generation, id, name, project } = metadata;
  const agreed = { verb: 'resize', id, generation, incarnation: status.incarnation, before, after };
  const hash = sha256(canonicalJson({ ...agreed, obstacles: obstacles.map(({ code }) => code) })).slice(0, 32);
  return {
    spec,
    shown: {
      ...{ instance: name, instanceId: id, project, before, after, hash, options, obstacles },
      ...(status.host === undefined ? {} : { host: status.host }),
      restarts: status.phase === 'Running',
      wouldFit: short === undefined ? [] : othersThatFit(snapshot, request, status.host),
    },
    ...(obstacles.length === 0 && placed && providerId !== undefined
      ? { target: { allocation: placed, providerId } }
      : {}),
  };
}

/** A named size replaces all three amounts; those that are given replace its own. */
function resizedSpec(spec: InstanceSpec, { size, ...given }: ResizeOptions): InstanceSpec {
  if (size === undefined) return { ...spec, ...given };
  const { cpus: _cpus, memoryMiB: _memory, diskGiB, ...rest } = spec;
  // A disk never shrinks: a size without one keeps that of the instance.
  return { ...rest, ...(diskGiB === undefined ? {} : { diskGiB }), size, ...given };
}

function ofItsState(snapshot: Snapshot, instance: Instance): PlanReason[] {
  const { metadata, spec, status } = instance;
  const reasons: PlanReason[] = [];
  const end = endOf(snapshot, instance);
  if (end?.code === 'Deleting' || end?.code === 'JobAttempt') reasons.push({ code: end.code, message: end.message });
  const workload = workloadOf(snapshot, instance);
  if (workload)
    reasons.push({
      code: 'Workload',
      message: `it is a copy of workload ${workload.name}: change the template, "berth workload update ${workload.name}"`,
    });
  if (isMigrating(status)) reasons.push({ code: 'Migrating', message: 'it moves to another host' });
  if (status.resize?.pending)
    reasons.push({ code: 'Resizing', message: 'its host has not finished the resize before this one' });
  if (mayRunUnseen(instance)) reasons.push({ code: 'Unknown', message: 'it is not known whether its guest runs' });
  else if (status.phase === 'Failed' || status.phase === 'Exited')
    reasons.push({ code: 'Ended', message: `it is ${status.phase}: "berth start ${metadata.name}" first` });
  else if (status.phase !== 'Running' && status.phase !== 'Stopped' && status.phase !== 'Suspended')
    reasons.push({ code: 'Busy', message: `it is ${status.phase}: wait until it runs, or is stopped` });
  if (spec.powerState === 'suspended' || status.phase === 'Suspended')
    reasons.push({ code: 'Suspended', message: `a stop loses its memory: "berth resume ${metadata.name}" first` });
  return reasons;
}

function ofItsGuest(snapshot: Snapshot, { spec, status }: Instance, { driver, amounts }: Allocation): PlanReason[] {
  const reasons: PlanReason[] = [];
  const image = snapshot.imageByName(spec.image)?.value;
  const host = snapshot.get('host', keys.host(status.host ?? ''))?.value;
  const offers = host?.status.drivers.find(({ name }) => name === driver)?.offers ?? [];
  if (image && isContainerImage(image.spec))
    reasons.push({ code: 'Container', message: 'containers have no machine to resize: create the instance again' });
  else if (!offers.includes('resize'))
    reasons.push({ code: 'DriverCannot', message: `guests of the driver ${driver} on its host cannot be resized` });
  if (spec.gpus !== undefined || spec.numaCells !== undefined || spec.placement.query !== undefined)
    reasons.push({ code: 'HostDevice', message: 'it has parts of its host: GPUs, cells, or what a query names' });
  else if (Object.keys(amounts).length !== 1)
    reasons.push({ code: 'HostDevice', message: 'what it holds comes from several providers of its host' });
  if (!host || !isReady(host.status))
    reasons.push({ code: 'HostNotConnected', message: `its host ${status.host} is not connected` });
  return reasons;
}

function ofItsDisk({ DISK_GB: before = 0 }: Amounts, { DISK_GB: after = 0 }: Amounts): PlanReason[] {
  if (after >= before) return [];
  return [
    { code: 'DiskShrinks', message: `its disk has ${before} GiB, and a disk only grows; ask for ${before} or more` },
  ];
}

/** What the host lacks beside what others have; of a stopped instance only the disk counts now. */
function shortOf(snapshot: Snapshot, allocation: Allocation, providerId: string, after: Amounts): string | undefined {
  const provider = snapshot.get('provider', keys.provider(providerId))?.value;
  if (!provider) return 'it has been removed';
  const held = allocation.amounts[providerId] ?? {};
  const used = new Map(snapshot.usedBy(providerId));
  for (const [of, amount] of Object.entries(held)) used.set(of, (used.get(of) ?? 0) - amount);
  const asked = holdsOnlyDisk(allocation) ? { DISK_GB: after['DISK_GB'] ?? 0 } : after;
  const verdict = fit(provider, used, asked);
  return verdict.fits ? undefined : describeFits([verdict]);
}

const othersMax = 10;

function othersThatFit(snapshot: Snapshot, request: Request, own: string | undefined): string[] {
  const engine = engineOf(snapshot);
  const { fleet } = engine;
  const names: string[] = [];
  for (let slot = 0; slot < fleet.length && names.length < othersMax; slot++) {
    const name = fleet.names[slot];
    if (name !== undefined && name !== own && fleet.hosts[slot] && engine.fitsAt(request, slot)) names.push(name);
  }
  return names.sort();
}
