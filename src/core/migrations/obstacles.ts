// Why an instance cannot move to another host now: all reasons at once, whatever the target is.

import { isContainerImage } from '../../api/container-image.ts';
import { driverFacts } from '../../api/driver-facts.ts';
import type { PlanReason } from '../../api/plans/host-plan.ts';
import { bootText } from '../../api/instances/firmware.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { endOf } from '../plans/owner.ts';
import { conditionOf, isReady } from '../state/conditions.ts';
import { mayRunUnseen, restored } from '../state/guest-phase.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { isMigrating } from './migration-state.ts';
import { volumesThatMove } from './migration-request.ts';

export function obstaclesToMigrate(snapshot: Snapshot, instance: Instance): PlanReason[] {
  const { metadata, status } = instance;
  const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value;
  if (status.host === undefined || allocation?.host !== status.host)
    return [{ code: 'NotPlaced', message: 'it is on no host' }];
  return [
    ...ofItsState(snapshot, instance),
    ...ofItsGuest(snapshot, instance, allocation.driver),
    ...ofItsHost(snapshot, status.host),
    ...ofItsVolumes(snapshot, instance),
  ];
}

function ofItsState(snapshot: Snapshot, instance: Instance): PlanReason[] {
  const { spec, status } = instance;
  const reasons: PlanReason[] = [];
  const end = endOf(snapshot, instance);
  if (end?.code === 'Deleting' || end?.code === 'JobAttempt') reasons.push({ code: end.code, message: end.message });
  if (isMigrating(status)) reasons.push({ code: 'Migrating', message: `it moves to ${status.migration?.to} already` });
  if (mayRunUnseen(instance))
    reasons.push({
      code: 'Unknown',
      message: 'it is not known whether its guest runs: its host must be connected first',
    });
  else if (status.phase === 'Failed' || status.phase === 'Exited')
    reasons.push({ code: 'Ended', message: `it is ${status.phase}: start it again first` });
  else if (status.phase === 'Scheduled' || status.phase === 'Starting' || status.phase === 'Pending')
    reasons.push({ code: 'Starting', message: `it is ${status.phase}: wait until it runs` });
  if (spec.powerState === 'suspended' || status.phase === 'Suspended')
    reasons.push({ code: 'Suspended', message: 'it is suspended, and a cold move loses its memory: resume it first' });
  return reasons;
}

function ofItsGuest(snapshot: Snapshot, { spec, status }: Instance, driver: string): PlanReason[] {
  const reasons: PlanReason[] = [];
  const image = snapshot.imageByName(spec.image)?.value;
  if (image === undefined)
    reasons.push({ code: 'ImageMissing', message: `its image "${spec.image}" does not exist any more` });
  else if (isContainerImage(image.spec))
    reasons.push({ code: 'Container', message: 'containers have no disk of their own to move' });
  if (driverFacts.find(({ name }) => name === driver)?.migrates !== true)
    reasons.push({ code: 'DriverCannot', message: `guests of the driver ${driver} cannot move` });
  const boot = bootText(status.boot ?? {});
  if (boot !== undefined) reasons.push({ code: 'Firmware', message: `it has ${boot}, whose state stays on its host` });
  if (spec.gpus !== undefined) reasons.push({ code: 'HostDevice', message: 'it has a device of its host' });
  if (spec.run !== undefined)
    reasons.push({ code: 'Run', message: 'it runs a program once, whose output is kept on its host' });
  return reasons;
}

function ofItsHost(snapshot: Snapshot, name: string): PlanReason[] {
  const host = snapshot.get('host', keys.host(name))?.value;
  if (host === undefined) return [{ code: 'HostRemoved', message: `its host ${name} has been removed` }];
  return isReady(host.status)
    ? []
    : [{ code: 'HostNotConnected', message: `its host ${name} is not connected, and its disk is there` }];
}

function ofItsVolumes(snapshot: Snapshot, instance: Instance): PlanReason[] {
  const reasons: PlanReason[] = [];
  for (const { value } of volumesThatMove(snapshot, instance)) {
    const { metadata, spec, status } = value;
    const kept = conditionOf(status.conditions, 'Ready')?.reason === restored;
    if (!status.made || status.phase !== 'Ready' || kept || status.observedGeneration < metadata.generation)
      reasons.push({ code: 'VolumeBusy', message: `volume ${metadata.name} is not ready, or is being changed` });
    else if (spec.snapshots.some((each) => !status.volume?.snapshots.some(({ name }) => name === each)))
      reasons.push({ code: 'VolumeBusy', message: `volume ${metadata.name} has snapshots that are not made yet` });
    for (const copy of snapshot.list('volume')) {
      const { source } = copy.value.spec;
      if (copy.value.metadata.project !== metadata.project || source?.volume !== metadata.name) continue;
      if (!copy.value.status.made)
        reasons.push({
          code: 'VolumeCopied',
          message: `volume ${copy.value.metadata.name} is being created from a snapshot of volume ${metadata.name}`,
        });
    }
  }
  return reasons;
}
