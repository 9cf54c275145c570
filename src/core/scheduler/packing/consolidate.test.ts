import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../../base/prng.ts';
import { type Movable, type Move, type PackedFleet, type PackedHost, planMoves } from './consolidate.ts';

interface Named extends Movable {
  readonly name: string;
}

const capacity = [16, 64];
const shapes = [
  [1, 2],
  [2, 8],
  [4, 8],
  [8, 40],
];

function hostWith(instances: readonly Named[]): PackedHost<Named> {
  const free = capacity.map((all, i) => all - instances.reduce((sum, { shape }) => sum + (shapes[shape]?.[i] ?? 0), 0));
  return { free, capacity, instances };
}

function fleetOf(hosts: readonly PackedHost<Named>[], changes: Partial<PackedFleet<Named>> = {}): PackedFleet<Named> {
  const lastOpenS = shapes.map(() => 0);
  return { hosts, shapes, lastOpenS, nowS: 10_000, lifetimeS: 100, budget: 60, budgetScale: 1, ...changes };
}

function drawFleet(seed: number): PackedFleet<Named> {
  const prng = seededPrng(seed);
  const hosts = Array.from({ length: 2 + prng.below(8) }, (_, number) => {
    const instances: Named[] = [];
    for (let i = prng.below(8); i > 0; i--) {
      const shape = prng.below(shapes.length);
      const group = prng.below(3);
      const limited = prng.chance(1, 2);
      const next: Named = { name: `${number}-${i}`, shape, ...(limited ? { group, maxPerHost: 3 } : { group }) };
      const together = [...instances, next];
      if (together.filter((each) => each.group === group).length > 3) continue;
      if (hostWith(together).free.every((left) => left >= 0)) instances.push(next);
    }
    return hostWith(instances);
  });
  return fleetOf(hosts, { budget: prng.below(12) / 2 });
}

/** Makes the moves one by one, and checks the fleet after each. */
function carryOut(fleet: PackedFleet<Named>, moves: readonly Move<Named>[]): readonly Named[][] {
  const lists = fleet.hosts.map(({ instances }) => [...instances]);
  for (const { instance, from, to } of moves) {
    const at = lists[from]?.indexOf(instance) ?? -1;
    expect(at).toBeGreaterThanOrEqual(0);
    expect(lists[to]?.length).toBeGreaterThan(0);
    lists[from]?.splice(at, 1);
    lists[to]?.push(instance);
    const there = lists[to] ?? [];
    expect(Math.min(...hostWith(there).free)).toBeGreaterThanOrEqual(0);
    if (instance.maxPerHost !== undefined)
      expect(there.filter(({ group }) => group === instance.group).length).toBeLessThanOrEqual(instance.maxPerHost);
  }
  return lists;
}

describe('planned moves', () => {
  it('never go beyond room, a limit or the budget, and empty every host they come from', () => {
    let planned = 0;
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const fleet = drawFleet(seed);
        const moves = planMoves(fleet);
        planned += moves.length;
        expect(moves.length).toBeLessThanOrEqual(fleet.budget);
        const lists = carryOut(fleet, moves);
        for (const { from } of moves) expect(lists[from]).toEqual([]);
      }),
      { numRuns: 500 },
    );
    expect(planned).toBeGreaterThan(100);
  });

  const one = (name: string, shape = 0): Named => ({ name, shape });
  const halfEmpty = [hostWith([one('a', 2), one('b', 2)]), hostWith([one('c')])];

  it('empty the host with the fewest instances', () => {
    expect(planMoves(fleetOf(halfEmpty))).toEqual([{ instance: one('c'), from: 1, to: 0 }]);
  });
  it('of equal hosts empty the one with the higher name, and fill the fuller', () => {
    const hosts = [hostWith([one('a')]), hostWith([one('b', 2)]), hostWith([one('c')])];
    expect(planMoves(fleetOf(hosts, { budget: 1 }))).toEqual([{ instance: one('c'), from: 2, to: 1 }]);
  });
  it('are none while a host was needed for such instances a moment ago', () => {
    expect(planMoves(fleetOf(halfEmpty, { lastOpenS: shapes.map(() => 9_999) }))).toEqual([]);
  });
  it('are none when what they free does not pay: 50 s since, 100 s of life, 60 left of 600', () => {
    const shortly = { nowS: 50, budgetScale: 600 };
    expect(planMoves(fleetOf(halfEmpty, shortly))).toEqual([]); // 100 / (1 + 60/600) = 91 s
    expect(planMoves(fleetOf(halfEmpty, { ...shortly, budgetScale: 6 }))).toHaveLength(1); // 100 / 11 = 9 s
  });
  it('leave a host alone where something must stay', () => {
    const pinned = [halfEmpty[0], { ...hostWith([one('c')]), instances: [one('c', -1)] }].flatMap((each) => each ?? []);
    expect(planMoves(fleetOf(pinned)).every(({ from }) => from !== 1)).toBe(true);
  });
  it('are none when as many hosts are needed anyhow', () => {
    const full = [hostWith([one('a', 3), one('b', 2), one('c', 2)]), hostWith([one('d', 3)])];
    expect(planMoves(fleetOf(full))).toEqual([]);
  });
});
