// What an instance is, given what its host says of its guest: phase and conditions. One place for the report that brings news and for
// the controller that takes up the last news again.

import { type GuestStatus, type Instance, type InstancePhase, isToBeOn } from '../../api/resources/instance.ts';
import { conditionOf, type NewCondition } from './conditions.ts';

/** Reason of a failure that is only assumed: the host is silent, and its guest may well run on. */
export const hostLost = 'HostLost';

/** Reason while nobody knows what became of a guest since the backup was made that the store was restored from. */
export const restored = 'Restored';
/** Its host was asked, and has no such guest: it may run elsewhere by now. */
export const notFoundAfterRestore = 'NotFoundAfterRestore';

/** Whether a copy of it may run somewhere that the control plane does not know of. */
export function mayRunUnseen({ status }: Instance): boolean {
  const reason = conditionOf(status.conditions, 'Running')?.reason;
  return reason === hostLost || reason === restored || reason === notFoundAfterRestore;
}

/**
 * Whether what its host says of its guest leaves open if it runs elsewhere: it is over here, and may have been started anew since the backup.
 * Only of what must never run twice.
 */
export function mayHaveMoved({ spec, status }: Instance, guest: GuestStatus): boolean {
  if (!spec.exclusive || !isToBeOn(spec) || !isOver(guest)) return false;
  const reason = conditionOf(status.conditions, 'Running')?.reason;
  return reason === restored || reason === notFoundAfterRestore;
}

/** It has its memory, whether or not its processors run. */
export function isUp({ state }: GuestStatus): boolean {
  return state === 'running' || state === 'suspended';
}

function isOver({ state }: GuestStatus): boolean {
  return state === 'stopped' || state === 'exited' || state === 'failed';
}

/** Exited and Failed are final for an incarnation, unless the host was only out of sight. */
export function phaseOf({ metadata, spec, status }: Instance, guest: GuestStatus): InstancePhase {
  if (metadata.deletionRequestedAtMs !== undefined) return 'Deleting';
  const outOfSight = conditionOf(status.conditions, 'Running')?.reason === hostLost;
  if (status.phase === 'Exited' || (status.phase === 'Failed' && !outOfSight)) return status.phase;
  switch (guest.state) {
    case 'preparing':
      return 'Starting';
    case 'running':
      return isToBeOn(spec) ? 'Running' : 'Stopping';
    case 'suspended':
      return isToBeOn(spec) ? 'Suspended' : 'Stopping';
    case 'stopped':
      return 'Stopped';
    case 'exited':
      return 'Exited';
    case 'failed':
      return 'Failed';
  }
}

/** A guest that ended, when it is to start again. */
export function putBehind({ reason: _reason, message, ...guest }: GuestStatus): GuestStatus {
  const why = message ?? messageByState[guest.state];
  return {
    ...guest,
    state: 'stopped',
    ready: false,
    message: `to start again after: ${why}`.slice(0, messageLengthMax),
  };
}

const messageLengthMax = 512;

/** What people are told of it. */
export function guestConditions(guest: GuestStatus): NewCondition[] {
  const why = {
    reason: guest.reason ?? reasonByState[guest.state],
    message: guest.message ?? messageByState[guest.state],
  };
  const running: NewCondition = { type: 'Running', status: guest.state === 'running' ? 'True' : 'False', ...why };
  const ready: NewCondition =
    guest.ready && guest.state !== 'suspended'
      ? { type: 'Ready', status: 'True', reason: 'Booted', message: 'the guest reported that it has booted' }
      : {
          type: 'Ready',
          status: 'False',
          // One that runs and has a reason cannot go on booting.
          ...(guest.state === 'running' && guest.reason === undefined
            ? { reason: 'Booting', message: 'the guest is booting' }
            : why),
        };
  return [running, ready];
}

const reasonByState = {
  preparing: 'Preparing',
  running: 'Started',
  suspended: 'Suspended',
  stopped: 'Stopped',
  exited: 'GuestShutdown',
  failed: 'Failed',
} as const;
export const messageByState = {
  preparing: 'disk and seed are being created',
  running: 'the guest runs',
  suspended: 'its processors are halted, and its memory is kept',
  stopped: 'stopped on request',
  exited: 'the guest powered itself off',
  failed: 'the guest failed',
} as const;
