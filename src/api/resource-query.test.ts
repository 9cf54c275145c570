import { describe, expect, it } from 'vitest';
import { parseResourceQuery } from './resource-query.ts';

const aggregate = '6d0b4b0a-2d0b-4c1b-8e0f-0e2f6d6a5b11';
const other = '11111111-2222-4333-8444-555555555555';

describe('a resource query', () => {
  it('is resources and required traits', () => {
    expect(
      parseResourceQuery(
        'resources=VCPU:1,DISK_GB:1,MEMORY_MB:256&required=HW_A,!CUSTOM_B&required=in:CUSTOM_C,CUSTOM_D',
      ),
    ).toEqual({
      ok: true,
      query: {
        amounts: { VCPU: 1, DISK_GB: 1, MEMORY_MB: 256 },
        traits: { required: ['HW_A'], forbidden: ['CUSTOM_B'], anyOf: [['CUSTOM_C', 'CUSTOM_D']] },
        groups: [],
        isolate: false,
      },
    });
  });

  it('has numbered groups, each from one provider, and a policy for them', () => {
    const parsed = parseResourceQuery(
      '?resources=VCPU:2&resources1=CUSTOM_GPU_MILLI:1000&required1=CUSTOM_GPU_A100&resources_b=CUSTOM_GPU_MILLI:500&group_policy=isolate&limit=5',
    );
    expect(parsed).toMatchObject({
      ok: true,
      query: {
        amounts: { VCPU: 2 },
        groups: [
          { suffix: '1', amounts: { CUSTOM_GPU_MILLI: 1000 }, traits: { required: ['CUSTOM_GPU_A100'] } },
          { suffix: '_b', amounts: { CUSTOM_GPU_MILLI: 500 }, traits: {} },
        ],
        isolate: true,
        limit: 5,
      },
    });
  });

  it('has aggregates that the host is in, or is not in', () => {
    const query = `resources=VCPU:1&member_of=${aggregate}&member_of=in:${aggregate},${other}&member_of=!${other}`;
    expect(parseResourceQuery(query)).toMatchObject({
      ok: true,
      query: { memberOf: [[aggregate], [aggregate, other]], notMemberOf: [other] },
    });
  });

  it('has aggregates and trees for each group', () => {
    const query = `resources1=VCPU:1&member_of1=${aggregate}&member_of1=!in:${other}&in_tree1=${other.toUpperCase()}&in_tree=${other}`;
    expect(parseResourceQuery(query)).toEqual({
      ok: true,
      query: {
        amounts: {},
        traits: {},
        groups: [{ suffix: '1', amounts: { VCPU: 1 }, traits: {}, memberOf: [[aggregate]], notMemberOf: [other] }],
        isolate: false,
        inTree: [other],
      },
    });
  });

  it('has subtrees, whose groups may ask for no amounts', () => {
    const query = 'resources_f=FPGA:1&required_n=HW_NUMA_ROOT&same_subtree=_f,_n,_f&group_policy=none';
    expect(parseResourceQuery(query)).toMatchObject({
      ok: true,
      query: {
        groups: [
          { suffix: '_f', amounts: { FPGA: 1 } },
          { suffix: '_n', amounts: {}, traits: { required: ['HW_NUMA_ROOT'] } },
        ],
        sameSubtree: [['_f', '_n']],
      },
    });
  });

  it('is read with its escapes', () => {
    expect(parseResourceQuery('resources=VCPU%3A1%2CDISK_GB%3A2')).toMatchObject({
      ok: true,
      query: { amounts: { VCPU: 1, DISK_GB: 2 } },
    });
  });

  const refused: [string, string, string, RegExp][] = [
    ['an unknown parameter', 'resources=VCPU:1&colour=red', 'colour', /not understood here; known: resources/],
    ['a subtree of no group', 'resources=VCPU:1&same_subtree=_a', 'same_subtree', /"_a", but no group has this suffix/],
    ['a subtree of the group without a suffix', 'resources=VCPU:1&same_subtree=,_a', 'same_subtree', /by their suff/],
    ['a subtree of groups without any amount', 'required_a=A&same_subtree=_a', 'resources', /is missing/],
    ['a tree that is no UUID', 'resources=VCPU:1&in_tree=h1', 'in_tree', /UUID of a provider; "h1" is not one/],
    ['two trees for a group', `resources=VCPU:1&in_tree=${other}&in_tree=${other}`, 'in_tree', /given twice/],
    ['a tree of no group', `resources=VCPU:1&in_tree1=${other}`, 'in_tree1', /belongs to no group/],
    ['aggregates of no group', `resources=VCPU:1&member_of1=${other}`, 'member_of1', /add resources1, or name/],
    ['traits of the root twice', 'resources=VCPU:1&root_required=A&root_required=B', 'root_required', /given twice/],
    ['one of several traits of the root', 'resources=VCPU:1&root_required=in:A,B', 'root_required', /cannot use in:/],
    ['an aggregate that is no UUID', 'resources=VCPU:1&member_of=ci', 'member_of', /"ci" is not one/],
    [
      'two aggregates without a word before them',
      `resources=VCPU:1&member_of=${aggregate},${aggregate}`,
      'member_of',
      /must begin with in:/,
    ],
    ['a near miss', 'resource=VCPU:1', 'resource', /did you mean "resources"/],
    ['no resources', 'required=HW_A', 'resources', /is missing/],
    ['nothing at all', '', 'resources', /is missing/],
    ['an amount that is none', 'resources=VCPU:x', 'resources', /whole number from 1/],
    ['a negative amount', 'resources=VCPU:-1', 'resources', /whole number from 1/],
    ['a fraction', 'resources=VCPU:1.5', 'resources', /whole number from 1/],
    ['zero', 'resources=VCPU:0', 'resources', /whole number from 1/],
    ['a huge amount', 'resources=VCPU:99999999999', 'resources', /whole number from 1/],
    ['a class in small letters', 'resources=vcpu:1', 'resources', /CLASS:AMOUNT/],
    ['a class that is none', 'resources=CPU:1', 'resources', /no resource class "CPU"; did you mean "VCPU"/],
    ['instances', 'resources=INSTANCES:1', 'resources', /in quotas only/],
    ['a class twice', 'resources=VCPU:1,VCPU:2', 'resources', /names VCPU twice/],
    ['resources twice', 'resources=VCPU:1&resources=DISK_GB:2', 'resources', /given twice/],
    ['a trait in small letters', 'resources=VCPU:1&required=avx', 'required', /traits in capitals/],
    ['a forbidden one within in:', 'resources=VCPU:1&required=in:A,!B', 'required', /within in:/],
    ['traits of a group that is not', 'resources=VCPU:1&required1=A', 'required1', /belongs to no group/],
    ['groups without a policy', 'resources1=VCPU:1&resources2=VCPU:1', 'group_policy', /say none or isolate/],
    ['an unknown policy', 'resources=VCPU:1&group_policy=both', 'group_policy', /none or isolate/],
    ['a limit of nothing', 'resources=VCPU:1&limit=0', 'limit', /from 1/],
  ];
  for (const [name, text, parameter, message] of refused) {
    it(`refuses ${name}`, () => {
      const parsed = parseResourceQuery(text);
      expect(parsed).toMatchObject({ ok: false, parameter });
      expect(parsed.ok ? '' : parsed.message).toMatch(message);
    });
  }
});
