// What is reported of one incarnation: what its driver shows, what the ledger keeps of its failure, or what it waits for.

import type { RunStatus } from '../../api/resources/run.ts';
import type { Assignment, GuestStatus } from '../../api/agent-protocol.ts';
import { guestMessageLengthMax } from '../../api/resources/instance.ts';
import type { Guest } from '../drivers/driver.ts';
import type { GuestFailure, LedgerEntry } from '../ledger/ledger.ts';
import { deadOf } from './checks/guest-checks.ts';
import { isOver, isToBeOn, isUnfinished, isUp } from './guest-state.ts';
import { isToResize, oldestGuest, seenGuests } from './observe.ts';
import type { GuestParts } from './parts.ts';

export type ReportedStatus = GuestStatus | { readonly state: 'absent' };

/** Undefined: nothing worth a report yet. */
export function statusOf(parts: GuestParts, entry: LedgerEntry): ReportedStatus | undefined {
  const status = statusWithoutRun(parts, entry);
  if (status === undefined || status.state === 'absent') return status;
  const run = parts.runs.statusOf(entry.assignment);
  if (run === undefined) return status;
  // What failed before there was a guest, its keeper does not see.
  const never = status.state === 'failed' && run.state === 'waiting';
  return { ...status, run: never ? lostRun(status) : run };
}

function lostRun({ reason, message }: GuestStatus): RunStatus {
  return {
    state: 'ended',
    outcome: 'lost',
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: message.slice(0, runMessageLengthMax) }),
  };
}

const runMessageLengthMax = 1024;

function statusWithoutRun(parts: GuestParts, entry: LedgerEntry): ReportedStatus | undefined {
  const { ledger, notes } = parts;
  const { instanceId, incarnation } = entry.assignment;
  const guests = [...seenGuests(parts)].map((seen) => seen.guest).filter((each) => each.instanceId === instanceId);
  const damaged = guests.find((each) => each.damaged === true);
  if (damaged !== undefined) return statusOfGuest(damaged);
  if (entry.assignment.want === 'incoming') return incomingStatus(parts, entry);
  const guest = guests.find((each) => each.incarnation === incarnation);
  // While it is paused for the move, the last report stays.
  if (guest?.handedOver !== undefined && isUp(guest) && entry.assignment.migration !== undefined) return undefined;
  if (entry.failure !== undefined && !isUp(guest)) return failedStatus(guest, entry.failure, entry.assignment);
  const dead = deadOf(entry, guest);
  if (dead !== undefined && !isUp(guest)) return failedStatus(guest, dead, entry.assignment);
  const newest = ledger.newestOf(instanceId)?.assignment.incarnation === incarnation;
  const waits = newest ? notes.waitOf(instanceId) : undefined;
  if (waits) return waitingStatus(guest, entry.assignment.want, waits);
  // It is about to run, and then it is also known how long it stood still.
  if (guest !== undefined && isUp(guest) && parts.moves.standsStill(instanceId)) return undefined;
  // Reported as stopped, its room would be given away, although it runs the next moment.
  // And a guest that starts again is not as it was, and not yet what it will be.
  if (guest && isOver(guest) && notes.operations.get(instanceId)?.kind === 'start') return undefined;
  const seen = guest && oldestGuest(parts, instanceId, entry.assignment.driver);
  if (seen && isToResize(entry.assignment, seen))
    return waitingStatus(seen.guest, entry.assignment.want, 'changing its size');
  if (guest !== undefined) {
    const movedLive = parts.moves.movedLiveOf(instanceId);
    return { ...withChecks(parts, entry, guest), ...(movedLive === undefined ? {} : { movedLive }) };
  }
  const nothing = notes.settledOf(instanceId, incarnation);
  if (nothing === 'absent') return { state: 'absent' };
  return nothing === 'stopped' ? unmadeStatus(entry.assignment) : undefined;
}

/** It was stopped before there was a guest: the first one is created with the present amounts, so that a resize is done. */
function unmadeStatus({ resized }: Assignment): GuestStatus {
  return { state: 'stopped', ready: false, ports: [], phases: [], ...(resized === undefined ? {} : { resized }) };
}

/** Of a guest that moves to this host. */
function incomingStatus({ moves }: GuestParts, { assignment }: LedgerEntry): GuestStatus | undefined {
  const incoming = moves.seenOf(assignment.instanceId);
  if (incoming?.id !== assignment.migration?.id || incoming === undefined) return undefined;
  return { state: 'preparing', ready: false, ports: [], phases: [], incoming };
}

/** Where the checks of a guest say whether it is ready, its own word does not count. */
function withChecks({ checks }: GuestParts, entry: LedgerEntry, guest: Guest): GuestStatus {
  const status = statusOfGuest(guest);
  if (entry.assignment.checks === undefined || !isUp(guest)) return status;
  const dead = deadOf(entry, guest);
  if (dead !== undefined) return { ...status, ready: false, reason: dead.code, message: dead.message };
  const ready = checks.readyOf(entry, guest) ?? guest.ready;
  const failing = ready ? undefined : checks.failingOf(entry, guest);
  return { ...status, ready, ...(failing === undefined ? {} : { failing }) };
}

function statusOfGuest(guest: Guest): GuestStatus {
  const {
    instanceId: _id,
    incarnation: _incarnation,
    damaged: _damaged,
    handedOver: _handedOver,
    reason,
    progress,
    ports,
    phases,
    volumes,
    ...seen
  } = guest;
  const unfinished = isUnfinished(guest);
  return {
    ...seen,
    state: unfinished ? 'preparing' : guest.state,
    ports: [...ports],
    phases: [...phases],
    ...(volumes === undefined ? {} : { volumes: [...volumes] }),
    ...(reason && !unfinished ? { reason: reason.code, message: reason.message.slice(0, guestMessageLengthMax) } : {}),
    ...(progress === undefined ? {} : { progress: progress.slice(0, guestMessageLengthMax) }),
  };
}

/** Reported as stopped, its room would be given away, although it runs once it has its volumes. */
function waitingStatus(guest: Guest | undefined, want: Assignment['want'], progress: string): GuestStatus {
  const seen: GuestStatus = guest ? statusOfGuest(guest) : { state: 'preparing', ready: false, ports: [], phases: [] };
  const state = seen.state === 'stopped' && isToBeOn({ want }) ? 'preparing' : seen.state;
  return { ...seen, state, progress: progress.slice(0, guestMessageLengthMax) };
}

function failedStatus(
  guest: Guest | undefined,
  { code, message }: GuestFailure,
  { startAgain }: Assignment,
): GuestStatus {
  const { startedAtMs, ...seen }: Partial<GuestStatus> = guest ? statusOfGuest(guest) : {};
  return {
    ports: [],
    phases: [],
    ...seen,
    // A start that failed before anything ran is not the end of the run before it.
    ...(startedAtMs === undefined || startedAtMs === startAgain?.endedRunAtMs ? {} : { startedAtMs }),
    state: 'failed',
    ready: false,
    reason: code,
    message: message.slice(0, guestMessageLengthMax),
  };
}
