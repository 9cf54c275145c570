// Whether an instance can move while it runs: what of it and of its host is in the way, all at once. The scheduler compares the target.

import type { PlanReason } from '../../api/plans/host-plan.ts';
import type { LiveKind } from '../../api/resources/host.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { equalJson } from '../../base/equal-json.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { volumesThatMove } from './migration-request.ts';

/** Of the driver of its host; undefined: its guests cannot move while they run. */
export function liveKindOf(snapshot: Snapshot, host: string | undefined, driver: string): LiveKind | undefined {
  const status = host === undefined ? undefined : snapshot.get('host', keys.host(host))?.value.status;
  return status?.drivers.find(({ name }) => name === driver)?.live;
}

/** Besides what is in the way of any move. */
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
  if (volumesThatMove(snapshot, instance).length > 0)
    add('HasVolume', 'it has a volume, and volumes move only while it is stopped');
  return reasons;
}

/** Whether there is any other host that is alike. */
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
