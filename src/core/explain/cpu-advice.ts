// How an operator can give out more CPUs, for who waits for nothing but them. Said only where it would help: no ratio makes a host's
// CPUs enough for an instance that asks for more than the host has.

import type { Snapshot } from '../state/snapshot.ts';
import type { Request } from '../scheduler/request.ts';
import { type Placement, summarize } from '../scheduler/schedule.ts';

type Refused = Extract<Placement, { placed: false }>;

/** `0 of 2 hosts: 2 InsufficientCpu`, and the advice. */
export function whyItWaits(snapshot: Snapshot, request: Request, answer: Refused): string {
  const short = answer.refusals.some(({ reason }) => reason === 'InsufficientCpu');
  const advice = short && isEnoughOnce(snapshot, request.amounts['VCPU'] ?? 0);
  return advice ? `${summarize(answer)}; ${cpuAdvice()}` : summarize(answer);
}

export function cpuAdvice(host = 'HOST'): string {
  return `"berth host set ${host} --overcommit VCPU=N" or "berth pool set POOL --cpu-ratio N" gives out more CPUs`;
}

/** Mostly told by the first. */
function isEnoughOnce(snapshot: Snapshot, cpus: number): boolean {
  for (const { value } of snapshot.list('provider')) if ((value.inventories['VCPU']?.maxUnit ?? 0) >= cpus) return true;
  return false;
}
