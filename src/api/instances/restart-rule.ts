// Whether an instance that has ended is started again by itself. One rule for those who decide it and those who show it.

import { type Instance, isToBeOn } from '../resources/instance.ts';

/** Reason of an instance that has failed permanently with its host (`onHostLoss: fail`): its guest may still run. */
export const hostDown = 'HostDown';
/** The same after its guest has ended: its owner may start it again. */
export const failedWithHost = 'FailedWithHost';

/** The end of its guest is no reason to wait for a person. It may be held back by other things, as the fate of its host. */
export function isToRestart({ metadata, spec, status }: Instance): boolean {
  const ended =
    status.phase === 'Failed'
      ? spec.restartPolicy !== 'Never' && !hasFailedWithHost(status)
      : status.phase === 'Exited' && spec.restartPolicy === 'Always';
  return ended && isToBeOn(spec) && metadata.deletionRequestedAtMs === undefined && status.restarts?.exhausted !== true;
}

/** It has failed permanently, whatever its guest does now. */
export function hasFailedWithHost({ conditions }: Instance['status']): boolean {
  const reason = conditions.find(({ type }) => type === 'Running')?.reason;
  return reason === hostDown || reason === failedWithHost;
}
