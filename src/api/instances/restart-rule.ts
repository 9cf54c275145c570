// Whether an instance that has ended is started again by itself. One rule for those who decide it and those who show it.

import { type Instance, isToBeOn } from '../resources/instance.ts';

/** The end of its guest is no reason to wait for a person. It may be held back by other things, as the fate of its host. */
export function isToRestart({ metadata, spec, status }: Instance): boolean {
  const ended =
    status.phase === 'Failed'
      ? spec.restartPolicy !== 'Never'
      : status.phase === 'Exited' && spec.restartPolicy === 'Always';
  return ended && isToBeOn(spec) && metadata.deletionRequestedAtMs === undefined && status.restarts?.exhausted !== true;
}
