// What the state of a guest means for those who decide about it.

import type { Assignment } from '../../api/agent-protocol.ts';
import type { Guest } from '../drivers/driver.ts';

/** The guest has its memory, whether or not its processors run. */
export function isUp(guest: Guest | undefined): boolean {
  return guest?.state === 'running' || guest?.state === 'suspended';
}

export function isOver({ state }: Guest): boolean {
  return state === 'stopped' || state === 'exited' || state === 'failed';
}

/** A creation that was given up is not a failure of the guest: the guest may be finished, or cleared away. */
export function isUnfinished(guest: Guest): boolean {
  return guest.state === 'failed' && guest.reason?.code === 'Aborted';
}

/** The guest is to have its memory; a suspended guest has it, and only its processors stand still. */
export function isToBeOn(desired: Pick<Assignment, 'want'> | undefined): boolean {
  return desired?.want === 'running' || desired?.want === 'suspended';
}
