// The engine's answer equals the full scan's: for random fleets, requests and histories of claims, releases and changed
// hosts.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededPrng, type Prng } from '../../../base/prng.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { profileNames } from '../../../api/resources/profile.ts';
import { placement } from '../../controllers/placement.ts';
import { overUse, release } from '../../ledger/ledger.ts';
import type { Cache } from '../../state/cache.ts';
import type { Context } from '../../state/context.ts';
import { keyOf } from '../../state/keys.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';
import { engineOf } from '../schedule.ts';
import { fleetOf } from '../fleet.ts';
import { fullScan, type HostVerdict } from './full-scan.ts';
import { type Request, requestOf } from '../request.ts';
import { plainAnswer } from './test-full-scan.ts';

function plainCounts(request: Request, cache: Cache): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { refusals } of fullScan(request, fleetOf(cache))) {
    const [first] = refusals;
    if (first) counts.set(first.reason, (counts.get(first.reason) ?? 0) + 1);
  }
  return counts;
}

/** Its capacity depends on its name only: a shrunk host may be over-used without an invalid claim. */
function drawHost(prng: Prng, name: string) {
  const size = seededPrng(0, name);
  return testHost(name, {
    ready: !prng.chance(1, 10),
    spec: { paused: prng.chance(1, 10), ...(prng.chance(1, 3) ? { pool: 'ci' } : {}) },
    labels: { zone: `z${prng.below(3)}`, ...(prng.chance(1, 2) ? { disk: 'ssd' } : {}) },
    capacity: { VCPU: 2 + size.below(8), MEMORY_MB: 1024 * (2 + size.below(16)), DISK_GB: 20 + size.below(50) },
  });
}

function drawSpec(prng: Prng): Partial<InstanceSpec> {
  return {
    cpus: 1 + prng.below(3),
    memoryMiB: 512 * (1 + prng.below(4)),
    ...(prng.chance(1, 3)
      ? { ports: [{ guestPort: 80, hostPort: 8000 + prng.below(2), protocol: 'tcp' as const }] }
      : {}),
    placement: {
      ...(prng.chance(1, 3) ? { hostLabels: { disk: 'ssd' } } : {}),
      ...(prng.chance(1, 4) ? { pool: 'ci' } : {}),
      profile: profileNames[prng.below(profileNames.length)] ?? 'distribute-load',
    },
  };
}

/** One step of a history: mostly about instances, sometimes about hosts. */
function step(cache: Cache, prng: Prng, number: number, ctx: Context): void {
  switch (prng.below(8)) {
    case 0: {
      for (const record of drawHost(prng, `h${prng.below(12)}`)) addRecord(cache, record);
      return;
    }
    case 1: {
      const [allocation] = [...cache.list('allocation')].slice(prng.below(3));
      if (allocation) commitPlan(cache, { changes: release(allocation) });
      return;
    }
    default: {
      const instance = testInstance(`i${number}`, drawSpec(prng));
      const request = requestOf(cache, instance);
      for (let again = 0; again < 2; again++) {
        // Asked twice: the first time a shape is scanned, the second time ranked.
        const choice = engineOf(cache).choose(request);
        const found = choice && { host: fleetOf(cache).names[choice.slot], score: choice.score };
        expect(found).toEqual(plainAnswer(request, fleetOf(cache)));
        if (again > 0) expect(engineOf(cache).countRefusals(request)).toEqual(plainCounts(request, cache));
      }
      addRecord(cache, instance);
      commitPlan(cache, placement.reconcile(cache, `instances/default/i${number}`, ctx));
    }
  }
}

function fits({ refusals }: HostVerdict): boolean {
  return refusals.length === 0;
}

describe('the engine', () => {
  it('answers as the full scan does, and never beyond an inventory, for any fleet and history', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([testImage()]);
        for (let i = 0; i < 4; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
        const ctx = testContext();
        for (let i = 0; i < 60; i++) step(cache, prng, i, ctx);
        expect(overUse(cache)).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  it('answers so for shapes that are mended together, in trials and after them', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([testImage()]);
        const ctx = testContext();
        const hosts = Array.from({ length: 6 }, (_, i) => `h${i}`);
        for (const name of hosts) for (const record of drawHost(prng, name)) addRecord(cache, record);
        const fleet = fleetOf(cache);
        const requests = [{}, { hostLabels: { disk: 'ssd' } }, { pool: 'ci' }].flatMap((placed) =>
          [1, 2, 4].map((cpus) => requestOf(cache, testInstance('web', { cpus, memoryMiB: 512, placement: placed }))),
        );
        const ask = () => {
          const request = requests[prng.below(requests.length)] ?? expect.unreachable();
          const choice = engineOf(cache).choose(request);
          const found = choice && { host: fleet.names[choice.slot], score: choice.score };
          expect(found).toEqual(plainAnswer(request, fleet));
          expect(choice?.fitCount ?? 0).toBe([...fullScan(request, fleet)].filter(fits).length);
        };
        const holdSome = () => {
          const slot = prng.below(fleet.length);
          const id = cache.providersOfHost(fleet.names[slot] ?? '')[0]?.value.id ?? '';
          if (prng.chance(3, 4)) fleet.hold(slot, { [id]: { VCPU: 1 } });
          else fleet.setAside(slot);
        };
        for (let i = 0; i < 80; i++) {
          if (prng.chance(1, 2)) step(cache, prng, i, ctx);
          if (prng.chance(1, 3))
            fleet.tentatively(() => {
              for (let held = prng.below(3); held >= 0; held--) holdSome();
              if (prng.chance(2, 3)) ask();
            });
          ask();
        }
      }),
      { numRuns: 60 },
    );
  });

  it('does not care in which order hosts came', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const names = Array.from({ length: 9 }, (_, i) => `h${i}`);
        const records = names.map((name, i) => drawHost(seededPrng(seed + i), name));
        const forward = testCache([testImage(), ...records.flat()]);
        const backward = testCache([testImage(), ...records.toReversed().flat()]);
        const spec = drawSpec(seededPrng(seed));
        const ask = (cache: Cache) => {
          const choice = engineOf(cache).choose(requestOf(cache, testInstance('web', spec)));
          return choice && fleetOf(cache).names[choice.slot];
        };
        expect(ask(forward)).toBe(ask(backward));
      }),
    );
  });

  it('shows everything free again when all is released', () => {
    const prng = seededPrng(7);
    const cache = testCache([testImage()]);
    for (let i = 0; i < 4; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
    const ctx = testContext();
    for (let i = 0; i < 80; i++) step(cache, prng, i, ctx);
    for (const allocation of cache.list('allocation')) commitPlan(cache, { changes: release(allocation) });
    const fleet = fleetOf(cache);
    for (const column of fleet.columns()) expect(fleet.hosts.some((_, slot) => column.used(slot) > 0)).toBe(false);
    expect(fleet.guests.every((count) => count === 0)).toBe(true);
  });

  it('breaks ties by the names of today, when a host has taken the place of another', () => {
    const cache = testCache([testImage(), ...['a', 'b', 'c'].flatMap((name) => testHost(name))]);
    const paused = (name: string, is: boolean) => addRecord(cache, testHost(name, { spec: { paused: is } })[0]);
    for (const record of testHost('d', { spec: { paused: true } })) addRecord(cache, record);
    const request = requestOf(cache, testInstance('web', { cpus: 1 }));
    const ask = () => {
      const choice = engineOf(cache).choose(request);
      return choice && fleetOf(cache).names[choice.slot];
    };
    expect([ask(), ask()]).toEqual(['a', 'a']);
    paused('d', false);
    const revision = cache.revision + 1;
    cache.apply(
      testHost('b').map((record) => ({ key: keyOf(record), value: null, revision })),
      revision,
    );
    for (const record of testHost('z')) addRecord(cache, record);
    expect(ask()).toBe('a');
    paused('a', true);
    expect(ask()).toBe('c');
  });

  it('forgets what was only tried', () => {
    const cache = testCache([testImage(), ...testHost('h1')]);
    const fleet = fleetOf(cache);
    const request = requestOf(cache, testInstance('web', { cpus: 8 }));
    const id = cache.providersOfHost('h1')[0]?.value.id ?? '';
    fleet.tentatively(() => {
      fleet.hold(0, { [id]: { VCPU: 1 } });
      expect(engineOf(cache).choose(request)).toBeNull();
    });
    expect(engineOf(cache).choose(request)).not.toBeNull();
  });
});
