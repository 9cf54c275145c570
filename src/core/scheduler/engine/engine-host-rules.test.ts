// The engine's answer equals the full scan's with every rule about hosts and room, for random hosts with devices and
// cells that appear, change and disappear.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededPrng, type Prng } from '../../../base/prng.ts';
import type { HostSpec, HostStatus } from '../../../api/resources/host.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Amounts } from '../../../api/resources/metadata.ts';
import { profileNames } from '../../../api/resources/profile.ts';
import { placement } from '../../controllers/placement.ts';
import { task } from '../../controllers/tasks/task.ts';
import { overUse, release } from '../../ledger/ledger.ts';
import type { Cache } from '../../state/cache.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { AnyRecord, Provider } from '../../state/records.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testImage,
  testInstance,
  testTask,
} from '../../testing.ts';
import { fleetOf } from '../fleet.ts';
import { type Request, requestOf } from '../request.ts';
import { plainAnswer } from './test-full-scan.ts';
import { engineOf } from '../schedule.ts';

function some<T extends object>(prng: Prng, numerator: number, value: T): T | undefined {
  return prng.chance(numerator, 10) ? value : undefined;
}

/** As the list of an inventory makes it. */
const ofInventory: Partial<HostStatus> = {
  ...{ drivers: [], images: [] },
  outside: { inventory: 'metal', usage: {}, reportedAtMs: 0 },
};

/**
 * Its capacity depends on its name only: a shrunk host may be over-used without an invalid claim. Everything else is
 * random.
 */
function drawHost(prng: Prng, name: string): AnyRecord[] {
  const fixed = seededPrng(0, name);
  const cells = fixed.chance(1, 3) ? 2 : 0;
  const each = { VCPU: 2 + fixed.below(6), MEMORY_MB: 1024 * (2 + fixed.below(8)) };
  const gpus = fixed.below(4);
  const spec: Partial<HostSpec> = {
    ...some(prng, 1, { taints: [{ key: 'reserved', value: 'ci', effect: 'NoSchedule' as const }] }),
    ...some(prng, 1, { taints: [{ key: 'old', effect: 'PreferNoSchedule' as const }] }),
    ...some(prng, 2, { dedicated: true }),
    ...some(prng, 1, { dedicatedTo: 'ours' }),
    ...some(prng, 3, { instancesMax: prng.below(6) }),
    ...some(prng, 3, { pool: 'ci' }),
    ...some(prng, 2, { inventory: { MEMORY_MB: { stepSize: 1024, minUnit: 1024 } } }),
  };
  const [host, root] = testHost(name, {
    spec,
    labels: { ...some(prng, 7, { zone: `z${prng.below(3)}` }), ...some(prng, 5, { cores: String(prng.below(64)) }) },
    status: {
      ...some(prng, 1, { controlPlane: 'excluded' as const }),
      images: prng.chance(1, 2)
        ? [{ name: 'tiny', digest: 'd', sizeBytes: 1, ...some(prng, 2, { problem: 'not found' }) }]
        : [],
      ...some(prng, 2, ofInventory),
    },
    capacity: cells > 0 ? { DISK_GB: 50 } : { ...each, DISK_GB: 50 },
  });
  const traits = ['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'].filter(() => prng.chance(1, 2));
  const child = (id: string, capacity: Amounts, own: readonly string[]): Provider => ({
    ...testHost(name, { capacity, spec })[1],
    id: `${root.id}-${id}`,
    parent: root.id,
    traits: own,
  });
  return [
    host,
    { ...root, traits },
    ...Array.from({ length: gpus }, (_, i) =>
      child(`gpu${i}`, { CUSTOM_GPU_MILLI: 1000 }, [i % 2 === 0 ? 'CUSTOM_GPU_A100' : 'CUSTOM_GPU_T4']),
    ),
    ...Array.from({ length: cells }, (_, i) => child(`cell${i}`, each, [])),
  ];
}

const zones = (prng: Prng) => [`z${prng.below(3)}`, `z${prng.below(3)}`];

function drawPlacement(prng: Prng): InstanceSpec['placement'] {
  return {
    ...some(prng, 2, { hostRules: [{ key: 'zone', operator: 'In' as const, values: zones(prng) }] }),
    ...some(prng, 2, { hostRules: [{ key: 'cores', operator: 'Gt' as const, values: ['20'] }] }),
    ...some(prng, 2, { traits: { required: ['CUSTOM_A'], forbidden: ['CUSTOM_B'] } }),
    ...some(prng, 1, { traits: { anyOf: [['CUSTOM_B', 'CUSTOM_C']] } }),
    ...some(prng, 3, {
      preferences: [
        { weight: 30 - prng.below(60), key: 'zone', operator: 'In' as const, values: zones(prng) },
        { weight: 20, trait: 'CUSTOM_C' },
      ],
    }),
    ...some(prng, 3, { tolerations: [{ key: prng.chance(1, 2) ? 'reserved' : 'old' }] }),
    ...some(prng, 2, { dedicated: true }),
    ...some(prng, 2, { pool: 'ci' }),
    ...some(prng, 2, { weights: { 'guest-count': 3, preferences: 5 } }),
    profile: profileNames[prng.below(profileNames.length)] ?? 'best-fit',
  };
}

function drawSpec(prng: Prng): Partial<InstanceSpec> {
  const base = { placement: drawPlacement(prng), cpus: 1 + prng.below(3), memoryMiB: 512 * (1 + prng.below(4)) };
  switch (prng.below(6)) {
    case 0:
      return { ...base, gpus: { count: 1 + prng.below(2), ...some(prng, 3, { models: ['A100'] }) } };
    case 1:
      return { ...base, gpus: { count: 1, share: 100 * (1 + prng.below(9)) } };
    case 2:
      return { ...base, cpus: 4, memoryMiB: 2048, numaCells: 2 };
    case 3: {
      const policy = prng.chance(1, 2) ? 'isolate' : 'none';
      const query = `resources=VCPU:1,MEMORY_MB:1024&resources1=CUSTOM_GPU_MILLI:400&resources2=CUSTOM_GPU_MILLI:700&group_policy=${policy}`;
      return { placement: { ...base.placement, query } };
    }
    case 4:
      return { ...base, ports: [{ guestPort: 80, hostPort: 8000 + prng.below(2), protocol: 'tcp' }] };
    default:
      return base;
  }
}

/** Tasks that were placed on hosts of inventories, in all runs. */
let tasksOutside = 0;

function step(cache: Cache, prng: Prng, number: number, ctx: Context): void {
  switch (prng.below(8)) {
    case 0:
      for (const record of drawHost(prng, `h${prng.below(10)}`)) addRecord(cache, record);
      return;
    case 1: {
      const [allocation] = [...cache.list('allocation')].slice(prng.below(3));
      if (allocation) commitPlan(cache, { changes: release(allocation) });
      return;
    }
    case 2:
    case 3: {
      const { cpus = 1, memoryMiB = 512, placement: placed } = { placement: {}, ...drawSpec(prng) };
      const asked = testTask(`t${number}`, { cpus, memoryMiB, placement: placed, ...some(prng, 3, { image: 'tiny' }) });
      expectSameAnswer(cache, requestOf(cache, asked));
      addRecord(cache, asked);
      const key = keys.task('default', `t${number}`);
      commitPlan(cache, task.reconcile(cache, key, ctx));
      if (isOutside(cache, cache.get('task', key)?.value.status.host)) tasksOutside += 1;
      return;
    }
    default: {
      const project = prng.chance(1, 3) ? 'ours' : 'default';
      const instance = testInstance(`i${number}`, drawSpec(prng), {}, { project });
      expectSameAnswer(cache, requestOf(cache, instance));
      addRecord(cache, instance);
      const key = keys.instance(project, `i${number}`);
      commitPlan(cache, placement.reconcile(cache, key, ctx));
      expect(isOutside(cache, cache.get('instance', key)?.value.status.host)).toBe(false);
    }
  }
}

/** Asked twice: the first time a shape is scanned, the second time ranked. */
function expectSameAnswer(cache: Cache, request: Request): void {
  for (let again = 0; again < 2; again++) {
    const choice = engineOf(cache).choose(request);
    const found = choice && { host: fleetOf(cache).names[choice.slot], score: choice.score };
    expect(found).toEqual(plainAnswer(request, fleetOf(cache)));
  }
}

const isOutside = (cache: Cache, host = ''): boolean =>
  cache.get('host', keys.host(host))?.value.status.outside !== undefined;

it('the engine answers as the full scan does with all rules about hosts and room, and never beyond an inventory', () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const prng = seededPrng(seed);
      const cache = testCache([testImage()]);
      for (let i = 0; i < 6; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
      const ctx = testContext();
      for (let i = 0; i < 60; i++) step(cache, prng, i, ctx);
      expect(overUse(cache)).toEqual([]);
      for (const allocation of cache.list('allocation')) commitPlan(cache, { changes: release(allocation) });
      const fleet = fleetOf(cache);
      for (const column of fleet.columns()) expect(fleet.hosts.some((_, slot) => column.used(slot) > 0)).toBe(false);
    }),
    { numRuns: 60 },
  );
  expect(tasksOutside).toBeGreaterThan(0);
});
