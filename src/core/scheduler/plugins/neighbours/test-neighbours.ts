// For tests of neighbour rules: a small fleet with instances, and the verdict of one rule on each host.

import type { InstanceSpec } from '../../../../api/resources/instance.ts';
import type { Group } from '../../../../api/resources/group.ts';
import type { Instance } from '../../../../api/resources/instance.ts';
import type { Cache } from '../../../state/cache.ts';
import { addRecord, testCache, testHost, testImage, testInstance } from '../../../testing.ts';
import { fleetOf } from '../../fleet.ts';
import { fullScan } from '../../engine/full-scan.ts';
import { requestOf } from '../../request.ts';

type Placement = InstanceSpec['placement'];

/** Hosts by name with their labels. */
export function fleetWith(
  hosts: Readonly<Record<string, Record<string, string>>>,
  groups: readonly Group[] = [],
): Cache {
  const cache = testCache([testImage(), ...groups]);
  for (const [name, labels] of Object.entries(hosts))
    for (const record of testHost(name, { labels })) addRecord(cache, record);
  return cache;
}

export function member(name: string, labels: Record<string, string>, placement: Placement = {}): Instance {
  return testInstance(name, { cpus: 1, placement }, {}, { labels });
}

/** Places it on the host. */
export function put(cache: Cache, instance: Instance, host: string): void {
  addRecord(cache, { ...instance, status: { ...instance.status, phase: 'Running', host, incarnation: 1 } });
}

/** By host: the reason of the rule's refusal, or `fits`. */
export function said(cache: Cache, rule: string, instance: Instance): Record<string, string> {
  return Object.fromEntries(
    [...fullScan(requestOf(cache, instance), fleetOf(cache))].map(({ host, refusals }) => [
      host,
      refusals.find(({ plugin }) => plugin === rule)?.reason ?? 'fits',
    ]),
  );
}

/** The message about a host. */
export function told(cache: Cache, rule: string, instance: Instance, host: string): string | undefined {
  for (const verdict of fullScan(requestOf(cache, instance), fleetOf(cache))) {
    if (verdict.host === host) return verdict.refusals.find(({ plugin }) => plugin === rule)?.message();
  }
  return undefined;
}

/** By host: the rule's score, 0 to 100, unweighted. */
export function scored(cache: Cache, rule: string, instance: Instance): Record<string, number> {
  const request = requestOf(cache, instance);
  return Object.fromEntries(
    [...fullScan(request, fleetOf(cache))].map(({ host, scores }) => [
      host,
      (scores[rule] ?? 0) / (request.weights[rule] ?? 1),
    ]),
  );
}
