// Scheduling: of all hosts that every rule lets through, the one with the best score. Pure; the caller turns it into a Plan.

import { rootProviderOf } from '../ledger/ledger.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Candidate, Plugin, Profile } from './framework.ts';
import { plugins, profileByName } from './registry.ts';
import type { Request } from './request.ts';

export interface Refusal {
  readonly host: string;
  readonly plugin: string;
  readonly reason: string;
  readonly message: string;
}

export type Placement =
  | {
      readonly placed: true;
      readonly candidate: Candidate;
      readonly driver: string;
      readonly score: number;
      readonly hostsFit: number;
      readonly hosts: number;
    }
  | { readonly placed: false; readonly hosts: number; readonly refusals: readonly Refusal[] };

export function schedule(snapshot: Snapshot, request: Request): Placement {
  const profile = profileByName[request.profile];
  const refusals: Refusal[] = [];
  let best: { candidate: Candidate; score: number } | undefined;
  let hosts = 0;
  let hostsFit = 0;
  for (const candidate of candidates(snapshot)) {
    hosts += 1;
    const refusal = firstRefusal(candidate, request);
    if (refusal) {
      refusals.push(refusal);
      continue;
    }
    hostsFit += 1;
    const score = scoreOf(candidate, request, profile);
    if (!best || isBetter({ candidate, score }, best)) best = { candidate, score };
  }
  if (!best) return { placed: false, hosts, refusals };
  return { placed: true, ...best, driver: driverFor(best.candidate, request), hosts, hostsFit };
}

export function* candidates(snapshot: Snapshot): Iterable<Candidate> {
  for (const host of snapshot.list('host')) {
    const provider = rootProviderOf(snapshot, host.value.metadata.name);
    yield { host, provider, used: snapshot.usedBy(provider?.value.id ?? '') };
  }
}

function firstRefusal(candidate: Candidate, request: Request): Refusal | undefined {
  for (const plugin of plugins) {
    const refusal = refusalBy(plugin, candidate, request);
    if (refusal) return refusal;
  }
  return undefined;
}

export function refusalBy(plugin: Plugin, candidate: Candidate, request: Request): Refusal | undefined {
  const verdict = plugin.filter?.(candidate, request);
  if (!verdict || verdict.fits) return undefined;
  return {
    host: candidate.host.value.metadata.name,
    plugin: plugin.name,
    reason: verdict.reason,
    message: verdict.message,
  };
}

export function scoreOf(candidate: Candidate, request: Request, profile: Profile): number {
  let score = 0;
  for (const plugin of plugins) {
    const weight = profile.weights[plugin.name];
    if (weight && plugin.score) score += weight * plugin.score(candidate, request);
  }
  return score;
}

/** Ties go to the first name, so that the answer does not hang on the order of hosts. */
function isBetter(a: { candidate: Candidate; score: number }, b: { candidate: Candidate; score: number }): boolean {
  if (a.score !== b.score) return a.score > b.score;
  return a.candidate.host.value.metadata.name < b.candidate.host.value.metadata.name;
}

function driverFor(candidate: Candidate, request: Request): string {
  return request.driver ?? candidate.host.value.status.drivers.find((driver) => driver.available)?.name ?? '';
}

/** `0 of 12 hosts: 7 InsufficientMemory, 5 DriverMissing`. */
export function summarize(placement: Extract<Placement, { placed: false }>): string {
  if (placement.hosts === 0) return 'no host has joined yet; "berth agent" on a machine makes it one';
  const counts = new Map<string, number>();
  for (const { reason } of placement.refusals) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const parts = [...counts]
    .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .map(([reason, count]) => `${count} ${reason}`);
  return `0 of ${placement.hosts} host${placement.hosts === 1 ? '' : 's'}: ${parts.join(', ')}`;
}
