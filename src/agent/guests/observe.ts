// What there is of an instance on this host, in the terms of plan.ts. It reads the drivers' lists of guests and changes nothing.

import type { AssignedVolume } from '../../api/agent-protocol.ts';
import { isToStartAgain } from '../../api/resources/instance.ts';
import type { Driver, Guest } from '../drivers/driver.ts';
import type { Assignment } from '../../api/agent-protocol.ts';
import type { LedgerEntry } from '../ledger/ledger.ts';
import { isUnfinished, isUp } from './guest-state.ts';
import { deadOf } from './checks/guest-checks.ts';
import type { Observed } from './plan.ts';

/** The drivers of this host. A driver counts only once it is `ready`: before, its guests cannot be seen. */
export interface Drivers {
  readonly drivers: readonly Driver[];
  readonly ready: (driver: Driver) => boolean;
}

export interface Seen {
  readonly driver: Driver;
  readonly guest: Guest;
}

export function observed(entry: LedgerEntry, seen: Seen | undefined, given: string | undefined): Observed | undefined {
  if (seen?.guest.damaged === true) return { incarnation: seen.guest.incarnation, state: 'failed', damaged: true };
  const { incarnation } = entry.assignment;
  const ofEntry = seen === undefined || seen.guest.incarnation === incarnation;
  const { handedOver } = seen?.guest ?? {};
  if (seen !== undefined && handedOver !== undefined && ofEntry && isUp(seen.guest))
    return {
      incarnation,
      state: seen.guest.state,
      handedOver: isMoveOver(entry.assignment, handedOver) ? 'over' : 'under-way',
    };
  const otherSize = seen !== undefined && isToResize(entry.assignment, seen);
  const otherVolumes = seen !== undefined && hasOtherVolumes(seen.guest, entry.assignment.volumes ?? [], given);
  if (entry.failure !== undefined && ofEntry && !isUp(seen?.guest))
    return { incarnation, state: 'failed', otherVolumes };
  if (seen === undefined) return undefined;
  if (deadOf(entry, seen.guest) !== undefined)
    return isUp(seen.guest)
      ? { incarnation, state: seen.guest.state, dead: true }
      : { incarnation, state: 'failed', otherVolumes };
  const again = ofEntry && isToStartAgain(seen.guest, entry.assignment.startAgain);
  const state = again ? 'stopped' : isUnfinished(seen.guest) ? 'preparing' : seen.guest.state;
  const saved = seen.guest.saved === true;
  return { incarnation: seen.guest.incarnation, state, otherVolumes, otherSize, ...(saved ? { saved } : {}) };
}

/** An assignment older than the order to send the guest says nothing about the end of the move. */
function isMoveOver({ migration, revision }: Assignment, handedOver: NonNullable<Guest['handedOver']>): boolean {
  return migration?.id !== handedOver.id && revision > handedOver.revision;
}

/** A driver that cannot resize its guests leaves them as they are. */
export function isToResize({ incarnation, resized = 0 }: Assignment, { driver, guest }: Seen): boolean {
  return driver.resize !== undefined && guest.incarnation === incarnation && resized > (guest.resized ?? 0);
}

/** The oldest guest of this instance: it goes first. Of one incarnation under two drivers, the one under the assigned driver. */
export function oldestGuest(drivers: Drivers, instanceId: string, assignedDriver: string): Seen | undefined {
  let oldest: Seen | undefined;
  for (const { driver, guest } of seenGuests(drivers)) {
    if (guest.instanceId !== instanceId) continue;
    const older = oldest === undefined || guest.incarnation < oldest.guest.incarnation;
    const better = guest.incarnation === oldest?.guest.incarnation && driver.name === assignedDriver;
    if (older || better) oldest = { driver, guest };
  }
  return oldest;
}

export function* seenGuests({ drivers, ready }: Drivers): Iterable<Seen> {
  for (const driver of drivers) {
    if (!ready(driver)) continue;
    for (const guest of driver.guests()) yield { driver, guest };
  }
}

/** False while a driver that may hold a guest of one of these entries has not found its guests again. */
export function allInSight({ drivers, ready }: Drivers, entries: readonly LedgerEntry[]): boolean {
  return entries.every(({ assignment }) => {
    const driver = drivers.find(({ name }) => name === assignment.driver);
    return driver === undefined || ready(driver);
  });
}

/** True also when this agent has not given the guest its volumes since its start: then the driver makes sure of them. */
export function hasOtherVolumes(guest: Guest, wanted: readonly AssignedVolume[], given: string | undefined): boolean {
  const has = guest.volumes ?? [];
  if (wanted.length === 0) return has.length > 0;
  return (
    has.length !== wanted.length ||
    !wanted.every(({ volumeId }) => has.includes(volumeId)) ||
    given !== textOfVolumes(wanted)
  );
}

/** Equal for equal volumes that are attached in the same way. */
export function textOfVolumes(volumes: readonly AssignedVolume[]): string {
  return JSON.stringify(volumes.map(({ volumeId, readOnly }) => [volumeId, readOnly]));
}
