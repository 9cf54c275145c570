// Whether an instance can move live: all obstacles of the instance and its host. The scheduler compares the targets.

import type { PlanReason } from '../../api/plans/host-plan.ts';
import type { LiveKind } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Volume } from '../../api/resources/volume.ts';
import { equalJson } from '../../base/equal-json.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { volumesThatMove } from './migration-request.ts';

/** The driver's value on its host; undefined: guests of this driver cannot move live. */
export function liveKindOf(snapshot: Snapshot, host: string | undefined, driver: string): LiveKind | undefined {
  const status = host === undefined ? undefined : snapshot.get('host', keys.host(host))?.value.status;
  return status?.drivers.find(({ name }) => name === driver)?.live;
}

/** Obstacles of a live move, in addition to those of any move. */
export function obstaclesToLive(snapshot: Snapshot, instance: Instance, driver: string): PlanReason[] {
  const { status, spec } = instance;
  const reasons: PlanReason[] = [];
  const add = (code: string, message: string) => reasons.push({ code, message });
  if (status.phase === 'Stopped' || spec.powerState !== 'running')
    add('NotRunning', 'it does not run, or is not to: move it without --live');
  const live = liveKindOf(snapshot, status.host, driver);
  if (live === undefined)
    add('LiveUnable', `guests of the driver ${driver} on ${status.host} cannot move while they run`);
  else if (live.network !== 'bridge')
    add(
      'NotBridge',
      `it is on the network ${live.network} of its host, and would lose its connections: only guests on a bridge move while they run`,
    );
  for (const { value } of volumesThatMove(snapshot, instance))
    for (const why of whyVolumeStays(value, instance))
      add('VolumeStays', `volume ${value.metadata.name} ${why}: it moves only while the instance is stopped`);
  return reasons;
}

/** A live move copies the contents of disks, and nothing else in their files. */
function whyVolumeStays({ metadata, spec, status }: Volume, { spec: { volumes = [] } }: Instance): string[] {
  return [
    ...(spec.snapshots.length > 0 || (status.volume?.snapshots.length ?? 0) > 0 ? ['has snapshots'] : []),
    ...(spec.format === 'filesystem' ? ['has a file system that its host mounts'] : []),
    ...(volumes.some(({ name, readOnly }) => name === metadata.name && readOnly) ? ['is attached read-only'] : []),
  ];
}

/** Whether any other host matches. */
export function hasLikeHost(snapshot: Snapshot, host: string | undefined, driver: string): boolean {
  const own = liveKindOf(snapshot, host, driver);
  if (own === undefined) return false;
  for (const { value } of snapshot.list('host')) {
    if (value.metadata.name === host) continue;
    const other = value.status.drivers.find(({ name }) => name === driver)?.live;
    if (other !== undefined && equalJson(other, own)) return true;
  }
  return false;
}
