// What a host gives for the groups of a resource query, `same_subtree` and aggregates among them, is what the search of
// allocation candidates finds in the same tree of providers.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { CandidateProvider } from './candidate-question.ts';
import { findCandidates } from './candidates/search.ts';
import { testGroup, testIndex, type TestProvider, testQuestion } from './candidates/testing.ts';
import { poolAggregate } from './pool-aggregate.ts';
import { assign, type Demand, type Portion, type Tree } from './tree.ts';

function treeOf(providers: readonly TestProvider[]): Tree {
  return testIndex(providers).tree('host').map(roomOf);
}

function roomOf({ id, parent, generation, inventories, used, traits, aggregates }: CandidateProvider): Tree[number] {
  return {
    provider: { kind: 'provider', id, host: 'h1', parent, generation, inventories, traits, aggregates },
    used,
  };
}

function portion(group: string, amounts: Amounts, changes: Partial<Portion> = {}): Portion {
  return { group, amounts, count: 1, traitsAnyOf: [], ...changes };
}

/** Two NUMA cells; the accelerators and cards of each are below it. */
const cells: readonly TestProvider[] = [
  { id: 'host', totals: { DISK_GB: 100 } },
  { id: 'cell0', parent: 'host', totals: { VCPU: 4 }, traits: ['HW_NUMA_ROOT'] },
  { id: 'cell1', parent: 'host', totals: { VCPU: 8 }, traits: ['HW_NUMA_ROOT'] },
  { id: 'fpga0', parent: 'cell0', totals: { FPGA: 1 }, aggregates: ['a'] },
  { id: 'fpga1', parent: 'cell1', totals: { FPGA: 1 } },
  { id: 'nic1', parent: 'cell1', totals: { VF: 4 }, aggregates: ['a', 'b'] },
];

describe('groups on two cells', () => {
  const numa = portion('_n', {}, { traits: { required: ['HW_NUMA_ROOT'] } });
  const [fpga, nic, cpu] = [portion('_f', { FPGA: 1 }), portion('_v', { VF: 1 }), portion('_c', { VCPU: 2 })];
  const rows: [name: string, demand: Demand, given: string][] = [
    ['apart, each tightest', { amounts: {}, portions: [fpga, nic] }, 'fpga0 nic1'],
    ['under one cell', { amounts: {}, portions: [numa, fpga, nic], sameSubtree: [['_n', '_f', '_v']] }, 'fpga1 nic1'],
    ['with CPUs of the cell', { amounts: {}, portions: [cpu, nic], sameSubtree: [['_c', '_v']] }, 'cell1 nic1'],
    ['more than the cell has', { amounts: {}, portions: [portion('_c', { VCPU: 9 })] }, 'TooFew'],
    ['siblings', { amounts: {}, portions: [fpga, nic], sameSubtree: [['_f', '_v']] }, 'Apart'],
    ['no such cell', { amounts: {}, portions: [portion('_n', {}, { traits: { required: ['X'] } })] }, 'NoProvider'],
    ['in an aggregate', { amounts: {}, portions: [portion('_f', { FPGA: 1 }, { memberOf: [['a', 'b']] })] }, 'fpga0'],
    ['not in one', { amounts: {}, portions: [portion('_f', { FPGA: 1 }, { notMemberOf: ['a'] })] }, 'fpga1'],
    ['in two of them', { amounts: {}, portions: [portion('_v', { VF: 1 }, { memberOf: [['a'], ['b']] })] }, 'nic1'],
  ];
  it.each(rows)('%s', (_, demand, given) => {
    const answer = assign(treeOf(cells), demand);
    const found = answer.fits ? Object.keys(answer.held).sort() : answer.shortfalls.map(({ refusal }) => refusal);
    expect(found.join(' ')).toBe(given);
  });

  it('counts the pool of the host as an aggregate of each provider', () => {
    const demand: Demand = { amounts: {}, portions: [portion('_f', { FPGA: 1 }, { memberOf: [[ci]] })] };
    expect(assign(treeOf(cells), demand).fits).toBe(false);
    const pooled = treeOf(cells).map((room) => ({ ...room, pool: 'ci' }));
    expect(assign(pooled, demand).fits).toBe(true);
  });
});

const ci = poolAggregate('ci');

it('for any tree and query, fits where the search of candidates finds one', () => {
  const classes = fc.constantFrom('VCPU', 'GPU');
  const drawnProvider = fc.record({
    parent: fc.nat({ max: 3 }),
    totals: fc.dictionary(classes, fc.integer({ min: 1, max: 4 })),
    traits: fc.subarray(['A', 'B']),
    aggregates: fc.subarray(['a', 'b']),
  });
  const drawnGroup = fc.record({
    amounts: fc.dictionary(classes, fc.integer({ min: 1, max: 3 })),
    required: fc.subarray(['A', 'B']),
    forbidden: fc.subarray(['B']),
    memberOf: fc.array(fc.subarray(['a', 'b'], { minLength: 1 }), { maxLength: 1 }),
    notMemberOf: fc.subarray(['b']),
  });
  const suffixes = ['_0', '_1', '_2'];
  const drawnRules = fc.array(fc.subarray(suffixes, { minLength: 1 }), { minLength: 1, maxLength: 2 });
  const fits = { true: 0, false: 0 };
  fc.assert(
    fc.property(
      fc.array(drawnProvider, { minLength: 1, maxLength: 5 }),
      fc.array(drawnGroup, { minLength: 1, maxLength: 3 }),
      fc.record({ amounts: fc.dictionary(classes, fc.constant(1)), rules: drawnRules, isolate: fc.boolean() }),
      (drawn, groups, { amounts, rules, isolate }) => {
        const providers = drawn.map(({ parent, ...rest }, at) =>
          at === 0 ? { id: 'host', ...rest } : { id: `p${at}`, parent: parentAt(Math.min(parent, at - 1)), ...rest },
        );
        const sameSubtree = rules.map((rule) => rule.filter((suffix) => Number(suffix.slice(1)) < groups.length));
        const portions = groups.map(({ amounts: each, required, forbidden, memberOf, notMemberOf }, at) =>
          portion(suffixes[at] ?? '', each, {
            traits: { required, forbidden },
            memberOf,
            notMemberOf,
            ...(isolate ? { apart: true } : {}),
          }),
        );
        const plain = Object.keys(amounts).length === 0 ? [] : [testGroup('', amounts)];
        const asked = groups.map((group, at) =>
          testGroup(suffixes[at] ?? '', group.amounts, {
            required: group.required.map((trait) => [trait]),
            forbidden: group.forbidden,
            memberOf: group.memberOf,
            forbiddenAggregates: group.notMemberOf,
          }),
        );
        const question = testQuestion([...plain, ...asked], { sameSubtree, groupPolicy: isolate ? 'isolate' : 'none' });
        const found = findCandidates(testIndex(providers), question).requests.length > 0;
        const verdict = assign(treeOf(providers), { amounts, portions, sameSubtree });
        expect(verdict.fits).toBe(found);
        if (!verdict.fits) expect(verdict.shortfalls).not.toEqual([]);
        fits[found ? 'true' : 'false'] += 1;
      },
    ),
    { numRuns: 2_000 },
  );
  expect(Math.min(fits.true, fits.false)).toBeGreaterThan(50);
});

function parentAt(at: number): string {
  return at === 0 ? 'host' : `p${at}`;
}
