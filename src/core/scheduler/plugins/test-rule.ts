// For tests of rules: the verdict of one rule on small fleets.

import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { testCache, testFleet, testHost, type TestHost, testImage, testInstance } from '../../testing.ts';
import type { AnyRecord } from '../../state/records.ts';
import { fleetOf } from '../fleet.ts';
import { fullScan } from '../engine/full-scan.ts';
import { requestOf } from '../request.ts';

/** By host: the reason for which rule `plugin` refuses it, or `fits`. */
export function verdictsOn(
  plugin: string,
  hosts: Readonly<Record<string, TestHost>>,
  spec: Partial<InstanceSpec>,
  { project = 'default', records = [] }: { project?: string; records?: readonly AnyRecord[] } = {},
): Record<string, string> {
  const cache = testCache([
    testImage(),
    ...Object.entries(hosts).flatMap(([name, host]) => testHost(name, host)),
    ...records,
  ]);
  const request = requestOf(cache, testInstance('web', spec, {}, { project }));
  return Object.fromEntries(
    [...fullScan(request, fleetOf(cache))].map(({ host, refusals }) => {
      const refusal = refusals.find((each) => each.plugin === plugin);
      return [host, refusal ? `${refusal.reason}: ${refusal.message()}` : 'fits'];
    }),
  );
}

/** By host: the weighted score of the rule. */
export function pointsOn(
  plugin: string,
  hosts: Readonly<Record<string, TestHost>>,
  spec: Partial<InstanceSpec>,
): Record<string, number> {
  const cache = testFleet(hosts);
  const request = requestOf(cache, testInstance('web', spec));
  return Object.fromEntries(
    [...fullScan(request, fleetOf(cache))].map(({ host, scores }) => [host, scores[plugin] ?? 0]),
  );
}
