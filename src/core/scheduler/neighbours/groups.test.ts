// Counts of groups equal a recount from the records after any history of instances and hosts; trials leave nothing
// behind.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Prng, seededPrng } from '../../../base/prng.ts';
import type { InstanceStatus } from '../../../api/resources/instance.ts';
import { keyOf, keys } from '../../state/keys.ts';
import type { Cache } from '../../state/cache.ts';
import { addRecord, testCache, testHost, testInstance } from '../../testing.ts';
import { belongingOf, isMember, placeOf, type Selector } from './belonging.ts';
import { type Fleet, fleetOf } from '../fleet.ts';
import type { Count } from './groups.ts';

const selectors: readonly Selector[] = [
  { project: 'default', labels: { app: 'a' } },
  { project: 'default', labels: { app: 'b' } },
  { project: 'default', labels: { tier: 'x', app: 'a' } },
  { project: 'default', labels: {}, placementGroup: 'g' },
  { project: 'other', labels: { app: 'a' } },
  { project: 'default', labels: {} },
];
const topologyKeys = ['zone', 'rack'] as const;

function pick<T>(prng: Prng, all: readonly [T, ...T[]]): T {
  return all[prng.below(all.length)] ?? all[0];
}

function drawInstance(prng: Prng, name: string) {
  const phases = ['Pending', 'Scheduled', 'Running', 'Stopped', 'Failed', 'Exited', 'Deleting'] as const;
  const phase = pick(prng, phases);
  const status: Partial<InstanceStatus> =
    phase === 'Pending' ? { phase } : { phase, host: `h${prng.below(7)}`, incarnation: 1 };
  const away = pick(prng, ['a', 'b']);
  return testInstance(
    name,
    {
      placement: {
        ...(prng.chance(1, 3) ? { group: 'g' } : {}),
        ...(prng.chance(1, 2)
          ? { antiAffinity: [{ to: { app: away }, by: pick(prng, ['host', 'zone']), required: prng.chance(2, 3) }] }
          : {}),
      },
    },
    status,
    {
      project: prng.chance(1, 5) ? 'other' : 'default',
      labels: { app: pick(prng, ['a', 'b']), ...(prng.chance(1, 2) ? { tier: 'x' } : {}) },
    },
  );
}

function remove(cache: Cache, key: string): void {
  const revision = cache.revision + 1;
  cache.apply([{ key, value: null, revision }], revision);
}

function step(cache: Cache, prng: Prng): void {
  const name = `i${prng.below(12)}`;
  switch (prng.below(6)) {
    case 0: {
      const labels = { ...(prng.chance(3, 4) ? { zone: `z${prng.below(3)}` } : {}), rack: `r${prng.below(4)}` };
      for (const record of testHost(`h${prng.below(6)}`, { labels })) addRecord(cache, record);
      return;
    }
    case 1:
      return remove(cache, keys.host(`h${prng.below(6)}`));
    case 2:
      for (const project of ['default', 'other']) remove(cache, keys.instance(project, name));
      return;
    default:
      addRecord(cache, drawInstance(prng, name));
  }
}

/** By host, of the instances for which `counts`. */
function recount(cache: Cache, counts: (key: string) => boolean): Record<string, number> {
  const byHost: Record<string, number> = {};
  for (const { key, value } of cache.list('instance')) {
    const host = placeOf(value);
    if (host === undefined || !cache.get('host', keys.host(host)) || !counts(key)) continue;
    byHost[host] = (byHost[host] ?? 0) + 1;
  }
  return byHost;
}

function countedByHost({ bySlot }: Count, fleet: Fleet): Record<string, number> {
  return Object.fromEntries([...bySlot].map(([slot, count]) => [fleet.names[slot] ?? '?', count]));
}

function byValue(cache: Cache, byHost: Record<string, number>, topologyKey: string): Record<string, number> {
  const byDomain: Record<string, number> = {};
  for (const [host, count] of Object.entries(byHost)) {
    const value = cache.get('host', keys.host(host))?.value.metadata.labels[topologyKey];
    if (value !== undefined) byDomain[value] = (byDomain[value] ?? 0) + count;
  }
  return byDomain;
}

function countedByValue(count: Count, fleet: Fleet, topologyKey: string): Record<string, number> {
  const { values } = fleet.topologies.of(topologyKey);
  const counts = fleet.groups.byDomain(count, topologyKey);
  return Object.fromEntries([...counts].flatMap((each, domain) => (each === 0 ? [] : [[values[domain] ?? '?', each]])));
}

function expectCounts(cache: Cache): void {
  const fleet = fleetOf(cache);
  for (const selector of selectors) {
    const expected = recount(cache, (key) => {
      const instance = cache.get('instance', key)?.value;
      return instance !== undefined && isMember(selector, belongingOf(instance));
    });
    const members = fleet.groups.of(selector);
    expect(countedByHost(members, fleet)).toEqual(expected);
    expect(members.total).toBe(Object.values(expected).reduce((sum, count) => sum + count, 0));
    for (const key of topologyKeys) expect(countedByValue(members, fleet, key)).toEqual(byValue(cache, expected, key));
  }
  for (const app of ['a', 'b']) {
    const found = fleet.groups.repellersOf({ project: 'default', labels: { app } });
    for (const by of ['host', 'zone']) {
      const expected = recount(cache, (key) => {
        const instance = cache.get('instance', key)?.value;
        return (
          instance?.metadata.project === 'default' &&
          (instance.spec.placement.antiAffinity ?? []).some(
            (rule) => rule.required && rule.by === by && rule.to['app'] === app,
          )
        );
      });
      const repellers = found.find((each) => each.by === by);
      expect(repellers ? countedByHost(repellers, fleet) : {}).toEqual(expected);
      if (repellers) expect(countedByValue(repellers, fleet, 'zone')).toEqual(byValue(cache, expected, 'zone'));
    }
  }
}

describe('groups', () => {
  it('are counted as a recount says, whatever happened', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([]);
        // Some records exist before the first query, including hosts created after their instances.
        for (let i = 0; i < 10; i++) step(cache, prng);
        for (let i = 0; i < 60; i++) {
          step(cache, prng);
          if (prng.chance(1, 4)) expectCounts(cache);
        }
        expectCounts(cache);
      }),
      { numRuns: 150, examples: [[1549721670]] },
    );
  });

  it('are as they were after a trial, and in a trial also those first asked for within it', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([]);
        for (let i = 0; i < 40; i++) step(cache, prng);
        const fleet = fleetOf(cache);
        if (prng.chance(1, 2)) expectCounts(cache);
        const slot = fleet.slotOf('h1') ?? fleet.slotOf('h2');
        if (slot === undefined) return;
        const guest = belongingOf(drawInstance(prng, 'tried'));
        fleet.tentatively(() => {
          fleet.groups.try(slot, guest, 1);
          fleet.groups.try(slot, guest, 1);
          fleet.groups.try(slot, guest, -1);
          for (const selector of selectors) {
            const settled = recount(cache, (key) => {
              const instance = cache.get('instance', key)?.value;
              return instance !== undefined && isMember(selector, belongingOf(instance));
            });
            const before = settled[fleet.names[slot] ?? ''] ?? 0;
            const expected = before + (isMember(selector, guest) ? 1 : 0);
            expect(fleet.groups.of(selector).bySlot.get(slot) ?? 0).toBe(expected);
          }
        });
        expectCounts(cache);
      }),
      { numRuns: 100 },
    );
  });

  it('are as they were after a trial that takes away who is not there', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([]);
        for (let i = 0; i < 40; i++) step(cache, prng);
        const fleet = fleetOf(cache);
        fleet.tentatively(() => {
          for (let i = 0; i < 6; i++) {
            const slot = fleet.slotOf(`h${prng.below(6)}`);
            const sign = prng.chance(1, 3) ? 1 : -1;
            if (slot !== undefined) fleet.groups.try(slot, belongingOf(drawInstance(prng, 'tried')), sign);
          }
        });
        expectCounts(cache);
      }),
      { numRuns: 100 },
    );
  });

  it('know the instances they mean, on hosts or not', () => {
    const web = testInstance('web', {}, {}, { labels: { app: 'a' } });
    const cache = testCache([web, testInstance('db', {}, {}, { labels: { app: 'b' } })]);
    const selector = { project: 'default', labels: { app: 'a' } };
    expect([...fleetOf(cache).groups.instancesOf(selector)].map(({ key }) => key)).toEqual([keyOf(web)]);
  });
});
