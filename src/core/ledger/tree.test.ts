import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Provider } from '../state/records.ts';
import { capacityOf } from './ledger.ts';
import { assign, type Demand, type Portion, type ProviderRoom, type Tree, wholeOf } from './tree.ts';

function room(id: string, totals: Amounts, options: { used?: Amounts; traits?: readonly string[] } = {}): ProviderRoom {
  const provider: Provider = {
    kind: 'provider',
    id,
    host: 'h1',
    parent: id === 'root' ? null : 'root',
    generation: 1,
    inventories: Object.fromEntries(
      Object.entries(totals).map(([resourceClass, total]) => [
        resourceClass,
        { total, reserved: 0, minUnit: 1, maxUnit: Math.max(1, total), stepSize: 1, allocationRatio: 1 },
      ]),
    ),
    traits: options.traits ?? [],
    aggregates: [],
  };
  return { provider, used: new Map(Object.entries(options.used ?? {})) };
}

const gpu = (id: string, used = 0, traits: readonly string[] = []) =>
  room(id, { GPU: 1000 }, { used: { GPU: used }, traits });
const portion = (each: number, count = 1, changes: Partial<Portion> = {}): Portion => ({
  amounts: { GPU: each },
  count,
  traitsAnyOf: [],
  ...changes,
});
const holders = (tree: Tree, demand: Demand) => {
  const answer = assign(tree, demand);
  return answer.fits ? Object.keys(answer.held).sort() : answer.shortfalls.map(({ refusal }) => refusal);
};

describe('portions', () => {
  const root = room('root', { VCPU: 8 });
  it('come from the tightest provider, so that whole ones stay whole', () => {
    expect(holders([root, gpu('g0'), gpu('g1', 600)], { amounts: {}, portions: [portion(300)] })).toEqual(['g1']);
  });
  it('come from different providers when they are copies', () => {
    expect(holders([root, gpu('g0'), gpu('g1')], { amounts: {}, portions: [portion(400, 2)] })).toEqual(['g0', 'g1']);
    expect(holders([root, gpu('g0')], { amounts: {}, portions: [portion(400, 2)] })).toEqual(['TooFew']);
  });
  it('come only from providers with the traits asked for', () => {
    const tree = [root, gpu('g0', 0, ['A']), gpu('g1', 0, ['B']), gpu('g2', 0, ['A', 'OLD'])];
    expect(holders(tree, { amounts: {}, portions: [portion(1, 1, { traitsAnyOf: ['B', 'C'] })] })).toEqual(['g1']);
    const traits = { required: ['A'], forbidden: ['OLD'] };
    expect(holders(tree, { amounts: {}, portions: [portion(1, 1, { traits })] })).toEqual(['g0']);
  });
  it('leave room for each other: the one without wishes gives way', () => {
    // In order, the first would take g0, which is tighter, and leave the second without its trait.
    const tree = [root, gpu('g0', 100, ['A']), gpu('g1')];
    const demand = { amounts: {}, portions: [portion(900), portion(900, 1, { traitsAnyOf: ['A'] })] };
    expect(holders(tree, demand)).toEqual(['g0', 'g1']);
  });
  it('share a provider unless they are to be apart', () => {
    const tree = [root, gpu('g0')];
    expect(holders(tree, { amounts: {}, portions: [portion(300), portion(300)] })).toEqual(['g0']);
    const apart = portion(300, 1, { apart: true });
    expect(holders(tree, { amounts: {}, portions: [apart, { ...apart }] })).toEqual(['TooFew']);
  });
  it('count in the whole', () => {
    expect(wholeOf({ amounts: { VCPU: 2, GPU: 1 }, portions: [portion(500, 3)] })).toEqual({ VCPU: 2, GPU: 1501 });
  });
});

describe('plain amounts', () => {
  it('come each whole from one provider: two cells of 4 do not give 6', () => {
    const cells = [room('root', { DISK_GB: 9 }), room('c0', { VCPU: 4 }), room('c1', { VCPU: 4 })];
    expect(holders(cells, { amounts: { VCPU: 4, DISK_GB: 9 }, portions: [] })).toEqual(['c0', 'root']);
    expect(holders(cells, { amounts: { VCPU: 6 }, portions: [] })).toEqual(['Insufficient']);
  });
});

/** Whether there is any assignment: every copy on every provider, tried one by one. */
function anyWay(tree: Tree, { amounts, portions }: Demand): boolean {
  const wants = [
    ...portions.flatMap((each) => Array.from({ length: each.count }, () => each)),
    ...Object.entries(amounts).map(
      ([resourceClass, amount]): Portion => ({ amounts: { [resourceClass]: amount }, count: 1, traitsAnyOf: [] }),
    ),
  ];
  const free = new Map(
    tree.flatMap(({ provider, used }) =>
      Object.entries(provider.inventories).map(([resourceClass, inventory]) => [
        `${provider.id} ${resourceClass}`,
        capacityOf(inventory) - (used.get(resourceClass) ?? 0),
      ]),
    ),
  );
  const taken: { readonly want: Portion; readonly id: string }[] = [];
  const tryFrom = (index: number): boolean => {
    const want = wants[index];
    if (!want) return true;
    for (const { provider } of tree) {
      const { id } = provider;
      if (taken.some((each) => each.id === id && (each.want === want || (each.want.apart && want.apart)))) continue;
      if (want.traitsAnyOf.length > 0 && !want.traitsAnyOf.some((trait) => provider.traits.includes(trait))) continue;
      const asked = Object.entries(want.amounts).filter(([, amount]) => amount > 0);
      if (asked.some(([resourceClass, amount]) => (free.get(`${id} ${resourceClass}`) ?? -1) < amount)) continue;
      for (const [each, amount] of asked) free.set(`${id} ${each}`, (free.get(`${id} ${each}`) ?? 0) - amount);
      taken.push({ want, id });
      if (tryFrom(index + 1)) return true;
      taken.pop();
      for (const [each, amount] of asked) free.set(`${id} ${each}`, (free.get(`${id} ${each}`) ?? 0) + amount);
    }
    return false;
  };
  return tryFrom(0);
}

describe('for any tree and demand', () => {
  const device = fc.record({
    totals: fc.dictionary(fc.constantFrom('GPU', 'VCPU', 'MEM'), fc.integer({ min: 1, max: 6 }), { minKeys: 1 }),
    usedShare: fc.integer({ min: 0, max: 3 }),
    traits: fc.subarray(['A', 'B']),
  });
  const anyPortion = fc.record({
    amounts: fc.dictionary(fc.constantFrom('GPU', 'VCPU'), fc.integer({ min: 1, max: 4 }), { minKeys: 1 }),
    count: fc.integer({ min: 1, max: 2 }),
    traitsAnyOf: fc.subarray(['A', 'B']),
    apart: fc.boolean(),
  });
  const demand = fc.record({
    amounts: fc.dictionary(fc.constantFrom('GPU', 'VCPU', 'MEM'), fc.integer({ min: 0, max: 4 })),
    portions: fc.array(anyPortion, { maxLength: 2 }),
  });

  it('what is given is all that was asked, never beyond an inventory, from providers that may; and what can be given is', () => {
    fc.assert(
      fc.property(fc.array(device, { minLength: 1, maxLength: 4 }), demand, (devices, drawn) => {
        const tree = devices.map(({ totals, usedShare, traits }, i) =>
          room(i === 0 ? 'root' : `d${i}`, totals, {
            used: Object.fromEntries(
              Object.entries(totals).map(([c, total]) => [c, Math.floor((total * usedShare) / 6)]),
            ),
            traits,
          }),
        );
        const asked: Demand = {
          amounts: drawn.amounts,
          portions: drawn.portions.map(({ apart, ...rest }) => ({
            ...rest,
            ...(apart ? { apart: true as const } : {}),
          })),
        };
        const answer = assign(tree, asked);
        expect(answer.fits).toBe(anyWay(tree, asked));
        if (!answer.fits) {
          expect(answer.shortfalls.length).toBeGreaterThan(0);
          return;
        }
        const sum: Record<string, number> = {};
        for (const [id, amounts] of Object.entries(answer.held)) {
          const giver = tree.find(({ provider }) => provider.id === id);
          for (const [resourceClass, amount] of Object.entries(amounts)) {
            if (amount === 0) continue;
            const inventory = giver?.provider.inventories[resourceClass];
            expect(inventory).toBeDefined();
            if (inventory && giver)
              expect((giver.used.get(resourceClass) ?? 0) + amount).toBeLessThanOrEqual(capacityOf(inventory));
            sum[resourceClass] = (sum[resourceClass] ?? 0) + amount;
          }
        }
        const whole = Object.fromEntries(Object.entries(wholeOf(asked)).filter(([, amount]) => amount > 0));
        expect(sum).toEqual(whole);
      }),
      { numRuns: 500 },
    );
  });
});
