import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commitPlan, testCache, testHost } from '../testing.ts';
import type { Inventory } from '../state/records.ts';
import { capacityOf, claim, fit, overUse, release, releaseAllButDisk } from './ledger.ts';

const inventory = (changes: Partial<Inventory> = {}): Inventory => ({
  total: 10,
  reserved: 0,
  minUnit: 1,
  maxUnit: 10,
  stepSize: 1,
  allocationRatio: 1,
  ...changes,
});

describe('capacity', () => {
  const rows: [string, Partial<Inventory>, number][] = [
    ['is the total', {}, 10],
    ['is less what is reserved: 10 - 3', { reserved: 3 }, 7],
    ['is overcommitted after the reserve: (10 - 2) x 1.5', { reserved: 2, allocationRatio: 1.5 }, 12],
    ['is rounded down: 10 x 0.25', { allocationRatio: 0.25 }, 2],
    ['is never below zero', { reserved: 11 }, 0],
  ];
  for (const [name, changes, expected] of rows) it(name, () => expect(capacityOf(inventory(changes))).toBe(expected));
});

describe('fit', () => {
  const provider = (changes: Partial<Inventory>) => ({
    ...testHost('h1')[1],
    inventories: { VCPU: inventory(changes) },
  });
  const rows: [string, Partial<Inventory>, number, number, string][] = [
    ['takes the last unit', {}, 9, 1, 'fits'],
    ['refuses one more than free', {}, 9, 2, 'Insufficient'],
    ['counts use beyond capacity as nothing free', { total: 5 }, 8, 1, 'Insufficient'],
    ['refuses below the least unit', { minUnit: 4 }, 0, 3, 'BelowMinUnit'],
    ['refuses above the largest unit', { maxUnit: 4 }, 0, 5, 'AboveMaxUnit'],
    ['refuses what is no multiple of the step', { stepSize: 3 }, 0, 4, 'NotAStep'],
    ['lets through a request for nothing', { total: 0 }, 0, 0, 'fits'],
  ];
  for (const [name, changes, used, asked, expected] of rows) {
    it(name, () => {
      const verdict = fit(provider(changes), new Map([['VCPU', used]]), { VCPU: asked });
      expect(verdict.fits ? 'fits' : verdict.refusal).toBe(expected);
    });
  }
  it('says which unit is the limit', () => {
    const limitOf = (changes: Partial<Inventory>, asked: number) => {
      const verdict = fit(provider(changes), new Map(), { VCPU: asked });
      return verdict.fits ? undefined : verdict.limit;
    };
    expect(limitOf({ minUnit: 4 }, 3)).toBe(4);
    expect(limitOf({ maxUnit: 2 }, 5)).toBe(2);
    expect(limitOf({ stepSize: 3 }, 4)).toBe(3);
  });
  it('refuses a class that the provider has not', () => {
    expect(fit(provider({}), new Map(), { CUSTOM_FPGA: 1 })).toMatchObject({
      refusal: 'NoInventory',
      resourceClass: 'CUSTOM_FPGA',
    });
  });
});

describe('claims', () => {
  it('collide when two were decided on one view of a provider', () => {
    const cache = testCache(testHost('h1'));
    const [provider] = cache.providersOfHost('h1');
    if (!provider) throw new Error('no provider');
    const claimFor = (id: string) =>
      claim(cache, {
        consumer: { id, incarnation: 1, project: 'default', name: id },
        host: 'h1',
        held: { [provider.value.id]: { VCPU: 5 } },
        driver: 'fake',
      });
    const [first, second] = [claimFor('a'), claimFor('b')];
    commitPlan(cache, { changes: first });
    expect(cache.assume({ changes: second })).toEqual({ ok: false, key: provider.key });
    expect(cache.usedBy(provider.value.id).get('VCPU')).toBe(5);
  });

  it('leave the disk held when all else is given back', () => {
    const cache = testCache(testHost('h1'));
    const [provider] = cache.providersOfHost('h1');
    if (!provider) throw new Error('no provider');
    const consumer = { id: 'a', incarnation: 1, project: 'default', name: 'a' };
    const held = { [provider.value.id]: { VCPU: 5, DISK_GB: 7 } };
    commitPlan(cache, { changes: claim(cache, { consumer, host: 'h1', held, driver: 'fake' }) });
    const [allocation] = cache.allocationsOfConsumer('a');
    if (!allocation) throw new Error('no allocation');
    commitPlan(cache, { changes: releaseAllButDisk(allocation) });
    expect(Object.fromEntries(cache.usedBy(provider.value.id))).toEqual({ VCPU: 0, DISK_GB: 7 });
    const [smaller] = cache.allocationsOfConsumer('a');
    expect(smaller && releaseAllButDisk(smaller)).toEqual([]);
  });

  it('never exceed capacity, and after every release all is free again, for any history', () => {
    const step = fc.record({ claim: fc.boolean(), cpus: fc.integer({ min: 1, max: 6 }), pick: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const cache = testCache(testHost('h1'));
        const held: string[] = [];
        const entry = () => cache.providersOfHost('h1')[0] ?? expect.unreachable();
        for (const [i, { claim: claims, cpus, pick }] of steps.entries()) {
          if (claims) {
            if (!fit(entry().value, cache.usedBy(entry().value.id), { VCPU: cpus }).fits) continue;
            const consumer = { id: `c${i}`, incarnation: 1, project: 'default', name: `c${i}` };
            const amounts = { [entry().value.id]: { VCPU: cpus } };
            commitPlan(cache, { changes: claim(cache, { consumer, host: 'h1', held: amounts, driver: 'fake' }) });
            held.push(consumer.id);
          } else {
            const [id] = held.splice(pick % Math.max(1, held.length), 1);
            for (const allocation of id === undefined ? [] : cache.allocationsOfConsumer(id))
              commitPlan(cache, { changes: release(allocation) });
          }
          expect(overUse(cache)).toEqual([]);
        }
        for (const id of held)
          for (const allocation of cache.allocationsOfConsumer(id)) commitPlan(cache, { changes: release(allocation) });
        expect(cache.usedBy(entry().value.id).get('VCPU') ?? 0).toBe(0);
      }),
    );
  });
});
