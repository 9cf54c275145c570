// What is wanted of an instance now: one that asked for self-stop is to run only while this host has a lease. Pure.

import type { Assignment } from '../../api/agent-protocol.ts';

/** A grace would let it run past the end of the lease. */
export function wantedNow(assignment: Assignment, leaseHeld: () => boolean): Assignment {
  const on = assignment.want === 'running' || assignment.want === 'suspended';
  if (assignment.selfStop !== true || !on || leaseHeld()) return assignment;
  return { ...assignment, want: 'stopped', stopGraceMs: 0 };
}
