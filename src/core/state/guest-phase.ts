// Phase and conditions of an instance, computed from its host's report on the guest. Shared by the operation that
// receives a report and the controller that applies the last report again.

import { failedWithHost, hostDown } from '../../api/instances/restart-rule.ts';
import { type GuestStatus, type Instance, type InstancePhase, isToBeOn } from '../../api/resources/instance.ts';
import { conditionOf, type NewCondition } from './conditions.ts';

/** Reason of an assumed failure: the host is silent, and its guest may still run. */
export const hostLost = 'HostLost';

/** Reason while the fate of a guest since the backup is unknown, after a restore. */
export const restored = 'Restored';
/** Its host has reported that it has no such guest: the guest may run elsewhere. */
export const notFoundAfterRestore = 'NotFoundAfterRestore';

/** Whether a copy of the guest may run where the control plane cannot see it. */
export function mayRunUnseen({ status }: Instance): boolean {
  const reason = conditionOf(status.conditions, 'Running')?.reason;
  return reason === hostLost || reason === hostDown || reason === restored || reason === notFoundAfterRestore;
}

/**
 * Whether the report leaves open that the guest runs elsewhere: it ended here, and may have been started again since
 * the backup. Only for exclusive instances.
 */
export function mayHaveMoved({ spec, status }: Instance, guest: GuestStatus): boolean {
  if (!spec.exclusive || !isToBeOn(spec) || !isOver(guest)) return false;
  const reason = conditionOf(status.conditions, 'Running')?.reason;
  return reason === restored || reason === notFoundAfterRestore;
}

/** Of an instance that failed for good with its host, which reports again: a guest that runs is yet to be stopped. */
export function conditionsAfterHostDown({ status }: Instance, guest: GuestStatus): NewCondition[] {
  const running = conditionOf(status.conditions, 'Running');
  if (running?.reason !== hostDown && running?.reason !== failedWithHost) return [];
  if (!isOver(guest)) return [{ type: 'Running', status: 'Unknown', reason: hostDown, message: running.message }];
  const message = 'it failed with its host, as its rule for that says, and has ended there';
  return [{ type: 'Running', status: 'False', reason: failedWithHost, message }];
}

/** The guest has its memory, whether or not its processors run. */
export function isUp({ state }: GuestStatus): boolean {
  return state === 'running' || state === 'suspended';
}

function isOver({ state }: GuestStatus): boolean {
  return state === 'stopped' || state === 'exited' || state === 'failed';
}

/** Exited and Failed are final for an incarnation, unless the host was only unreachable. */
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

/** The status of a guest that ended and will start again. */
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

/** The conditions shown to users. */
export function guestConditions(guest: GuestStatus): NewCondition[] {
  const why = {
    reason: guest.reason ?? reasonByState[guest.state],
    message: guest.message ?? (guest.saved === true ? savedMessage : messageByState[guest.state]),
  };
  const running: NewCondition = { type: 'Running', status: guest.state === 'running' ? 'True' : 'False', ...why };
  const ready: NewCondition =
    guest.ready && guest.state !== 'suspended'
      ? { type: 'Ready', status: 'True', reason: 'Booted', message: 'the guest reported that it has booted' }
      : {
          type: 'Ready',
          status: 'False',
          // A running guest with a reason is not booting.
          ...(guest.state === 'running' && guest.failing !== undefined
            ? { reason: reasonByCheck[guest.failing.name], message: guest.failing.message }
            : guest.state === 'running' && guest.reason === undefined
              ? { reason: 'Booting', message: 'the guest is booting' }
              : why),
        };
  return [running, ready];
}

const reasonByCheck = { startup: 'StartupCheck', readiness: 'ReadinessCheck', liveness: 'LivenessCheck' } as const;

const reasonByState = {
  preparing: 'Preparing',
  running: 'Started',
  suspended: 'Suspended',
  stopped: 'Stopped',
  exited: 'GuestShutdown',
  failed: 'Failed',
} as const;
export const savedMessage = 'its memory is in a file of its host, and nothing of it runs';

export const messageByState = {
  preparing: 'disk and seed are being created',
  running: 'the guest runs',
  suspended: 'its processors are halted, and its memory is kept',
  stopped: 'stopped on request',
  exited: 'the guest powered itself off',
  failed: 'the guest failed',
} as const;
