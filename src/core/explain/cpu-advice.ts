// Advice on a higher CPU allocation ratio, for instances that lack nothing but CPUs. Given only where it helps: no
// ratio makes a host large enough for an instance with more CPUs than the host has.

import type { Snapshot } from '../state/snapshot.ts';
import type { Request } from '../scheduler/request.ts';
import { type Placement, summarize } from '../scheduler/schedule.ts';

type Refused = Extract<Placement, { placed: false }>;

/** `0 of 2 hosts: 2 InsufficientCpu`, plus the advice. */
export function whyItWaits(snapshot: Snapshot, request: Request, answer: Refused): string {
  const short = answer.refusals.some(({ reason }) => reason === 'InsufficientCpu');
  const advice = short && isEnoughOnce(snapshot, request.amounts['VCPU'] ?? 0);
  return advice ? `${summarize(answer)}; ${cpuAdvice()}` : summarize(answer);
}

export function cpuAdvice(host = 'HOST'): string {
  return `"berth host set ${host} --overcommit VCPU=N" or "berth pool set POOL --cpu-ratio N" gives out more CPUs`;
}

/** Mostly decided by the first host. */
function isEnoughOnce(snapshot: Snapshot, cpus: number): boolean {
  for (const { value } of snapshot.list('provider')) if ((value.inventories['VCPU']?.maxUnit ?? 0) >= cpus) return true;
  return false;
}
