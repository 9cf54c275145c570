import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../../base/prng.ts';
import type { CandidateIndex, CandidateQuestion } from '../candidate-question.ts';
import { enumerate } from './plain-enumeration.ts';
import { findCandidates } from './search.ts';
import { testGroup as group, type TestProvider, testIndex, testQuestion as ask } from './testing.ts';

const shares = 'MISC_SHARES_VIA_AGGREGATE';
const providersOf = (index: CandidateIndex, question: CandidateQuestion): string[] =>
  findCandidates(index, question).requests.map(({ allocations }) => Object.keys(allocations).sort().join(' '));
const sorted = (index: CandidateIndex, question: CandidateQuestion): string[] => providersOf(index, question).sort();

describe('one tree', () => {
  const numa = testIndex([
    { id: 'host', totals: { DISK_GB: 100 } },
    { id: 'numa0', parent: 'host', totals: { VCPU: 4, MEMORY_MB: 1024 }, traits: ['FAST'] },
    { id: 'numa1', parent: 'host', totals: { VCPU: 4, MEMORY_MB: 512 } },
    { id: 'nic0', parent: 'numa0', totals: { VF: 2 }, traits: ['NET_A'] },
    { id: 'nic1', parent: 'numa1', totals: { VF: 2 }, traits: ['NET_B'] },
  ]);

  it('gives each class of the group without a suffix from any provider', () => {
    const found = sorted(numa, ask([group('', { DISK_GB: 10, VCPU: 1 })]));
    expect(found).toEqual(['host numa0', 'host numa1']);
  });

  it('gives all of a group with a suffix from one provider', () => {
    expect(sorted(numa, ask([group('1', { VCPU: 2, MEMORY_MB: 600 })]))).toEqual(['numa0']);
    expect(sorted(numa, ask([group('1', { VCPU: 2, DISK_GB: 1 })]))).toEqual([]);
  });

  it('wants the traits of a group without a suffix from its providers together', () => {
    const question = ask([group('', { VCPU: 1, VF: 1 }, { required: [['FAST'], ['NET_A', 'NET_B']] })]);
    expect(sorted(numa, question)).toEqual(['nic0 numa0', 'nic1 numa0']);
  });

  it('takes no second provider of a tree for questions before 1.29', () => {
    expect(sorted(numa, ask([group('', { VCPU: 1, MEMORY_MB: 512 })], { nested: false }))).toEqual(['numa0', 'numa1']);
  });

  it('isolates groups with a suffix only from each other', () => {
    const groups = [group('', { VF: 1 }), group('1', { VF: 1 }), group('2', { VF: 1 })];
    const isolated = findCandidates(numa, ask(groups, { groupPolicy: 'isolate' }));
    expect(isolated.requests.map(({ mappings }) => [mappings['1'], mappings['2']].join())).toEqual([
      'nic0,nic1',
      'nic1,nic0',
      'nic0,nic1',
      'nic1,nic0',
    ]);
  });

  it('adds up what several groups take from one provider', () => {
    const one = [group('1', { VF: 1 }), group('2', { VF: 1 }), group('3', { VF: 1 })];
    expect(findCandidates(numa, ask(one)).requests).toHaveLength(6); // 8 ways, without the 2 that put three on one NIC
  });

  it('keeps groups of a subtree below one of them, also one without resources', () => {
    const groups = [group('_cpu', { VCPU: 1 }), group('_nic', { VF: 1 }), group('_numa', {}, { required: [['FAST']] })];
    const together = ask(groups, { sameSubtree: [['_cpu', '_nic', '_numa']] });
    expect(findCandidates(numa, together).requests).toEqual([
      {
        allocations: { numa0: { VCPU: 1 }, nic0: { VF: 1 } },
        mappings: { _cpu: ['numa0'], _nic: ['nic0'], _numa: ['numa0'] },
      },
    ]);
  });

  it('summarizes the whole tree, or before 1.29 only what is used', () => {
    const groups = [group('', { DISK_GB: 1 })];
    const ids = (nested: boolean): string[] =>
      findCandidates(numa, ask(groups, { nested })).summarized.map(({ id }) => id);
    expect(ids(true)).toEqual(['host', 'numa0', 'numa1', 'nic0', 'nic1']);
    expect(ids(false)).toEqual(['host']);
  });
});

describe('what is shared', () => {
  const fleet = testIndex([
    { id: 'cn1', totals: { VCPU: 4 }, aggregates: ['a'] },
    { id: 'cn2', totals: { VCPU: 4, DISK_GB: 50 }, aggregates: ['a', 'b'] },
    { id: 'cn3', totals: { VCPU: 4 } },
    { id: 'nfs', totals: { DISK_GB: 500 }, traits: [shares], aggregates: ['a'] },
  ]);

  it('goes to the trees that have an aggregate with it', () => {
    const question = ask([group('', { VCPU: 1, DISK_GB: 10 })]);
    expect(sorted(fleet, question)).toEqual(['cn1 nfs', 'cn2', 'cn2 nfs']);
  });

  it('is a candidate by itself, once', () => {
    expect(sorted(fleet, ask([group('', { DISK_GB: 100 })]))).toEqual(['nfs']);
    expect(sorted(fleet, ask([group('1', { DISK_GB: 100 })]))).toEqual(['nfs']);
  });

  it('goes with the tree of another group', () => {
    expect(sorted(fleet, ask([group('1', { VCPU: 1 }), group('2', { DISK_GB: 100 })]))).toEqual(['cn1 nfs', 'cn2 nfs']);
  });

  it('is not for the group without a suffix that names a tree', () => {
    expect(sorted(fleet, ask([group('', { VCPU: 1, DISK_GB: 10 }, { inTree: 'cn1' })]))).toEqual([]);
    expect(sorted(fleet, ask([group('', { VCPU: 1, DISK_GB: 10 }, { inTree: 'cn2' })]))).toEqual(['cn2']);
    expect(sorted(fleet, ask([group('', { VCPU: 1 }, { inTree: 'gone' })]))).toEqual([]);
  });

  it('must be in the aggregates asked for', () => {
    expect(sorted(fleet, ask([group('', { VCPU: 1, DISK_GB: 10 }, { memberOf: [['b']] })]))).toEqual(['cn2']);
    expect(sorted(fleet, ask([group('', { VCPU: 1, DISK_GB: 10 }, { forbiddenAggregates: ['a'] })]))).toEqual([]);
  });
});

describe('very many combinations', () => {
  const devices = (count: number): TestProvider[] =>
    Array.from({ length: count }, (_, at) => ({ id: `dev${at}`, parent: 'host', totals: { PCI_DEVICE: 1 } }));
  const groups = Array.from({ length: 8 }, (_, at) => group(`_${at}`, { PCI_DEVICE: 1 }));
  // Launchpad 2070257: eight groups, each for one of eight devices. 8! = 40,320 of 8^8 = 16,777,216 ways fit.
  const eight = testIndex([{ id: 'host' }, ...devices(8)]);

  it.each(['none', 'isolate'] as const)('are not all made for a limit (policy %s)', (groupPolicy) => {
    const { requests, complete } = findCandidates(eight, ask(groups, { groupPolicy, limit: 10 }));
    expect(requests).toHaveLength(10);
    expect(complete).toBe(true);
    expect(new Set(requests.map(({ mappings }) => JSON.stringify(mappings))).size).toBe(10);
  });

  it('are all found without a limit', () => {
    expect(findCandidates(eight, ask(groups)).requests).toHaveLength(40_320);
  });

  it.each(['none', 'isolate'] as const)('fail at once where a device is missing (policy %s)', (groupPolicy) => {
    const seven = testIndex([{ id: 'host' }, ...devices(7)]);
    const { requests, complete } = findCandidates(seven, ask(groups, { groupPolicy }));
    expect({ requests, complete }).toEqual({ requests: [], complete: true });
  });

  it('are given up, and said to be, where the cheap checks do not help', () => {
    // A device with 9 gives 3 + 3 + 3 or 5 + 3: beside five groups for 5, ten devices give 20 groups 3, and 21 ask for it.
    const groupsOf = (count: number, VF: number) =>
      Array.from({ length: count }, (_, at) => group(`_${VF}_${at}`, { VF }));
    const ten = Array.from({ length: 10 }, (_, at) => ({ id: `dev${at}`, parent: 'host', totals: { VF: 9 } }));
    const tight = findCandidates(testIndex([{ id: 'host' }, ...ten]), ask([...groupsOf(21, 3), ...groupsOf(5, 5)]));
    expect(tight).toMatchObject({ requests: [], complete: false });
  });

  it('come from each tree in turn, breadth-first', () => {
    const hosts = ['h1', 'h2', 'h3'].flatMap((id): TestProvider[] => [
      { id },
      { id: `${id}a`, parent: id, totals: { VF: 1 } },
      { id: `${id}b`, parent: id, totals: { VF: 1 } },
    ]);
    const question = ask([group('', { VF: 1 })], { limit: 4 });
    const index = testIndex(hosts);
    const deep = findCandidates(index, question).requests;
    const broad = findCandidates(index, question, { strategy: 'breadth-first' }).requests;
    const ids = (requests: typeof deep): string => requests.flatMap(({ mappings }) => mappings[''] ?? []).join(' ');
    expect(ids(deep)).toBe('h1a h1b h2a h2b');
    expect(ids(broad)).toBe('h1a h2a h3a h1b');
  });
});

describe('the search', () => {
  const traits = ['T1', 'T2', shares];
  const provider = fc.record({
    parent: fc.nat({ max: 6 }),
    rooted: fc.boolean(),
    totals: fc.record({ A: fc.nat({ max: 3 }), B: fc.nat({ max: 3 }) }, { requiredKeys: [] }),
    usedA: fc.nat({ max: 1 }),
    maxUnit: fc.integer({ min: 1, max: 3 }),
    traits: fc.subarray(traits),
    aggregates: fc.subarray(['x', 'y']),
  });
  const fleet = fc.array(provider, { minLength: 1, maxLength: 7 }).map((drawn) =>
    drawn.map(
      ({ parent, rooted, totals, usedA, ...rest }, at): TestProvider => ({
        id: `p${at}`,
        ...(at === 0 || rooted ? {} : { parent: `p${parent % at}` }),
        totals: Object.fromEntries(Object.entries(totals).filter(([, total]) => total > 0)),
        used: { A: Math.min(usedA, totals.A ?? 0) },
        ...rest,
      }),
    ),
  );
  const trait = fc.subarray(['T1', 'T2'], { maxLength: 1 }).map((any) => (any.length > 0 ? [any] : []));
  const resources = fc
    .record({ A: fc.integer({ min: 1, max: 2 }), B: fc.integer({ min: 1, max: 2 }) }, { requiredKeys: [] })
    .map((amounts) => Object.fromEntries(Object.entries(amounts)));
  const drawnGroup = fc.record({
    resources,
    required: fc.oneof(trait, fc.constant([['T1', 'T2']])),
    forbidden: fc.subarray(['T1', 'T2'], { maxLength: 1 }),
    memberOf: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.constant([['x']]), fc.constant([['x', 'y']])),
    forbiddenAggregates: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, fc.constant(['y'])),
    tree: fc.option(fc.nat({ max: 7 }), { freq: 4 }),
  });
  const question = fc
    .record({
      plain: fc.option(drawnGroup, { freq: 3 }),
      granular: fc.array(drawnGroup, { maxLength: 3 }),
      isolate: fc.boolean(),
      root: fc.subarray(['T1'], { maxLength: 1 }),
      notRoot: fc.subarray(['T2'], { maxLength: 1 }),
      subtree: fc.boolean(),
      nested: fc.boolean(),
    })
    .map(({ plain, granular, isolate, root, notRoot, subtree, nested }): CandidateQuestion => {
      const suffixes = granular.map((_, at) => `_${at}`);
      const made = (suffix: string, { resources: asked, tree, ...rest }: NonNullable<typeof plain>) =>
        group(suffix, asked, { ...rest, ...(tree === null ? {} : { inTree: `p${tree}` }) });
      return ask(
        [
          ...(plain && Object.keys(plain.resources).length > 0 ? [made('', plain)] : []),
          ...granular.map((each, at) => made(suffixes[at] ?? '', each)),
        ],
        {
          groupPolicy: isolate ? 'isolate' : 'none',
          rootRequired: root,
          rootForbidden: notRoot,
          sameSubtree: subtree && suffixes.length > 0 ? [suffixes] : [],
          nested,
        },
      );
    })
    .filter(({ groups }) => groups.length > 0);

  it('finds what a plain enumeration finds, each once, and with a limit some of it', () => {
    fc.assert(
      fc.property(fleet, question, fc.integer({ min: 1, max: 4 }), (providers, drawn, limit) => {
        const index = testIndex(providers);
        const keysOf = (found: ReturnType<typeof findCandidates>): string[] => found.requests.map(keyOf).sort();
        const expected = [...new Set(enumerate(index, drawn).map(keyOf))].sort();
        expect(keysOf(findCandidates(index, drawn))).toEqual(expected);
        const shuffled = findCandidates(index, drawn, { strategy: 'breadth-first', prng: seededPrng(limit) });
        expect(keysOf(shuffled)).toEqual(expected);
        const limited = keysOf(findCandidates(index, { ...drawn, limit }));
        expect(limited).toHaveLength(Math.min(limit, expected.length));
        for (const key of limited) expect(expected).toContain(key);
      }),
      { numRuns: 1_500 },
    );
  });
});

/** The same for requests that differ only in the order of their keys. */
function keyOf({ allocations, mappings }: ReturnType<typeof enumerate>[number]): string {
  const held = Object.entries(allocations).flatMap(([id, amounts]) =>
    Object.entries(amounts).map(([resourceClass, amount]) => `${id} ${resourceClass} ${amount}`),
  );
  const mapped = Object.entries(mappings).map(([suffix, ids]) => `${suffix}: ${[...ids].sort().join()}`);
  return [...held.sort(), ...mapped.sort()].join('; ');
}
