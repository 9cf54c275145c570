// The engine's answer to resource queries equals the full scan's, while hosts change their pools and their devices.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededPrng, type Prng } from '../../../base/prng.ts';
import { placement } from '../../controllers/placement.ts';
import { overUse, release } from '../../ledger/ledger.ts';
import { poolAggregate } from '../../ledger/pool-aggregate.ts';
import type { Cache } from '../../state/cache.ts';
import type { Context } from '../../state/context.ts';
import type { AnyRecord, Provider } from '../../state/records.ts';
import { uuidOf } from '../../state/views/placement-index.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';
import { fleetOf } from '../fleet.ts';
import { requestOf } from '../request.ts';
import { engineOf } from '../schedule.ts';
import { plainAnswer } from './test-full-scan.ts';

const rack = '11111111-2222-4333-8444-555555555555';
const ci = poolAggregate('ci');
const hostCount = 5;

/** A host with two devices. */
function drawHost(prng: Prng, name: string): AnyRecord[] {
  const spec = prng.chance(1, 2) ? { pool: 'ci' } : {};
  const [host, root] = testHost(name, { spec, capacity: { VCPU: 8, MEMORY_MB: 8192, DISK_GB: 50, CUSTOM_PORT: 4 } });
  return [host, root, drawDevice(prng, root, 'gpu0'), drawDevice(prng, root, 'gpu1')];
}

function drawDevice(prng: Prng, root: Provider, part: string): Provider {
  const units = { reserved: 0, minUnit: 1, maxUnit: 4, stepSize: 1, allocationRatio: 1 };
  return {
    ...root,
    id: `${root.id}-${part}`,
    parent: root.id,
    inventories: { CUSTOM_GPU: { total: 4, ...units }, CUSTOM_PORT: { total: 2, ...units } },
    traits: prng.chance(1, 2) ? ['CUSTOM_FAST'] : [],
    aggregates: prng.chance(1, 2) ? [rack] : [],
  };
}

const inTree = uuidOf(`${testHost('h1')[1].id}-gpu0`);
const queries = [
  'resources1=CUSTOM_GPU:1&member_of1=' + ci,
  `resources1=CUSTOM_GPU:2&member_of1=!${ci}&required1=CUSTOM_FAST`,
  `resources1=CUSTOM_GPU:1&member_of1=in:${rack},${ci}&resources2=CUSTOM_GPU:3&group_policy=isolate`,
  'resources1=CUSTOM_GPU:1&resources2=CUSTOM_PORT:1&same_subtree=1,2&group_policy=none',
  'resources1=CUSTOM_GPU:1&resources2=CUSTOM_PORT:1&same_subtree=1,2&group_policy=isolate',
  `resources1=CUSTOM_GPU:2&required2=CUSTOM_FAST&member_of2=${rack}&same_subtree=1,2&group_policy=none`,
  `resources=CUSTOM_GPU:1&in_tree=${inTree}`,
  `resources=VCPU:1&member_of=${ci}`,
];

function step(cache: Cache, prng: Prng, number: number, ctx: Context): void {
  const name = `h${prng.below(hostCount)}`;
  switch (prng.below(8)) {
    case 0:
      // Only its record, so that its pool changes and its providers do not.
      return addRecord(cache, drawHost(prng, name)[0] ?? expect.unreachable());
    case 1: {
      const root = cache.providersOfHost(name).find(({ value }) => value.parent === null);
      if (root) addRecord(cache, drawDevice(prng, root.value, `gpu${prng.below(2)}`));
      return;
    }
    case 2: {
      const [allocation] = [...cache.list('allocation')].slice(prng.below(3));
      if (allocation) commitPlan(cache, { changes: release(allocation) });
      return;
    }
    default: {
      const query = queries[prng.below(queries.length)] ?? expect.unreachable();
      const instance = testInstance(`i${number}`, { memoryMiB: 256, placement: { query } });
      const request = requestOf(cache, instance);
      for (let again = 0; again < 2; again++) {
        const choice = engineOf(cache).choose(request);
        const found = choice && { host: fleetOf(cache).names[choice.slot], score: choice.score };
        expect(found, query).toEqual(plainAnswer(request, fleetOf(cache)));
      }
      addRecord(cache, instance);
      commitPlan(cache, placement.reconcile(cache, `instances/default/i${number}`, ctx));
    }
  }
}

it('the engine answers queries as the full scan does, for any fleet and history', () => {
  const placed = new Set<string>();
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const prng = seededPrng(seed);
      const cache = testCache([testImage()]);
      for (let i = 0; i < hostCount; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
      const ctx = testContext();
      for (let i = 0; i < 40; i++) step(cache, prng, i, ctx);
      expect(overUse(cache)).toEqual([]);
      for (const { value } of cache.list('instance'))
        if (value.status.host !== undefined) placed.add(value.spec.placement.query ?? '');
    }),
    { numRuns: 60 },
  );
  expect(placed.size).toBe(queries.length);
});
