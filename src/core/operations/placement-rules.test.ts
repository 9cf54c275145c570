// Invalid rules are refused by field; placement groups are created, changed, and kept as long as instances name them.

import { describe, expect, it } from 'vitest';
import { InstanceSpec } from '../../api/resources/instance.ts';
import { GroupSpec } from '../../api/resources/group.ts';
import { parse } from '../../api/parse.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testGroup,
  testImage,
  testInstance,
  testHost,
  testProject,
} from '../testing.ts';
import { createInstance, replaceInstance } from './instance.ts';
import { createPlainResource, deletePlainResource, replacePlainResource } from './plain-resource.ts';

/** Like a user's request: parsed by schema, then decided. Returns the refused field and the reason. */
function refusalOf(placement: unknown, labels: Record<string, string> = { app: 'web' }): string {
  const cache = testCache([testImage(), testGroup('databases')]);
  try {
    const spec = parse(InstanceSpec, { image: 'tiny', placement }, 'spec');
    createInstance(cache, { project: 'default', name: 'web', labels, spec }, testContext());
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'field' in error ? `${String(error.field)}: ${error.message}` : String(error);
  }
}

const to = { app: 'db' };

describe('a project that lists the pools it may use', () => {
  const fleet = [
    testImage(),
    ...testHost('a', { spec: { pool: 'edge' } }),
    ...testHost('b', { spec: { pool: 'core' } }),
    testProject('web', { pools: ['edge'] }),
  ];
  const rows: [name: string, project: string, placement: object, answer: string][] = [
    ['one of its pools', 'web', { pool: 'edge' }, 'accepted'],
    ['another pool', 'web', { pool: 'core' }, 'project "web" may not use pool "core"'],
    [
      'a pool that does not exist, with the same answer',
      'web',
      { pool: 'cor' },
      'project "web" may not use pool "cor"',
    ],
    ['no pool', 'web', {}, 'project "web" may use some pools only, so one must be named'],
    ['any pool for another project', 'api', { pool: 'core' }, 'accepted'],
    ['no pool for another project', 'api', {}, 'accepted'],
  ];
  it.each(rows)('answers for %s', (_name, project, placement, answer) => {
    const spec = parse(InstanceSpec, { image: 'tiny', placement }, 'spec');
    const create = () => createInstance(testCache(fleet), { project, name: 'a', labels: {}, spec }, testContext());
    if (answer === 'accepted') expect(create().changed).toBe(true);
    else
      expect(create).toThrow(
        expect.objectContaining({
          field: 'spec.placement.pool',
          message: `${answer}; "berth project show web" lists those it may use`,
        }),
      );
  });
});

describe('rules about neighbours', () => {
  const rows: [name: string, placement: object, answer: RegExp][] = [
    [
      'all that may be asked',
      {
        affinity: [{ to }],
        antiAffinity: [{ to: { app: 'web' } }],
        spread: [{ by: 'zone' }],
        maxPerHost: 3,
        group: 'databases',
      },
      /^accepted$/,
    ],
    [
      'near and away from the same',
      { affinity: [{ to }], antiAffinity: [{ to: { x: 'y' } }, { to }] },
      /^spec.placement.antiAffinity\[1\]: it cannot be both near and away from app=db by host/,
    ],
    [
      'near some and away from all of them',
      { affinity: [{ to: { app: 'db', tier: 'x' } }], antiAffinity: [{ to }] },
      /^spec.placement.antiAffinity\[0\]/,
    ],
    ['near and away, but by different keys', { affinity: [{ to, by: 'zone' }], antiAffinity: [{ to }] }, /^accepted$/],
    [
      'near and away, but one only if possible',
      { affinity: [{ to }], antiAffinity: [{ to, required: false }] },
      /^accepted$/,
    ],
    [
      'together and spread',
      { affinity: [{ to: { app: 'web' }, by: 'zone' }], spread: [{ by: 'zone' }] },
      /^spec.placement.spread\[0\]: app=web cannot be both together and spread by zone/,
    ],
    ['a skew of nothing', { spread: [{ by: 'zone', maxSkew: 0 }] }, /^spec.placement.spread\[0\].maxSkew: .*>= 1/],
    [
      'a skew of a half',
      { spread: [{ by: 'zone', maxSkew: 0.5 }] },
      /^spec.placement.spread\[0\].maxSkew: .*whole number/,
    ],
    ['a spread over nothing', { spread: [{}] }, /^spec.placement.spread\[0\].by/],
    ['a key that is no label', { spread: [{ by: 'a b' }] }, /^spec.placement.spread\[0\].by/],
    ['none on a host', { maxPerHost: 0 }, /^spec.placement.maxPerHost: .*>= 1/],
    ['nobody to be near', { affinity: [{ to: {} }] }, /^spec.placement.affinity\[0\].to/],
    ['nobody among whom to spread', { spread: [{ by: 'zone', among: {} }] }, /^spec.placement.spread\[0\].among/],
    [
      'a weight of a required rule',
      { affinity: [{ to, weight: 5 }] },
      /^spec.placement.affinity\[0\].weight: a required rule has no weight/,
    ],
    [
      'a weight out of bounds',
      { affinity: [{ to, required: false, weight: 101 }] },
      /^spec.placement.affinity\[0\].weight: .*<= 100/,
    ],
    ['too many rules', { affinity: Array.from({ length: 9 }, () => ({ to })) }, /^spec.placement.affinity: /],
    [
      'ten thousand labels',
      { affinity: [{ to: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'v'])) }] },
      /^spec.placement.affinity\[0\].to/,
    ],
    [
      'an unknown group',
      { group: 'database' },
      /^spec.placement.group: there is no placement group "database" in project default; did you mean "databases"\?/,
    ],
    ['an unknown word', { antiAfinity: [{ to }] }, /did you mean "antiAffinity"/],
  ];
  it.each(rows)('%s', (_name, placement, answer) => expect(refusalOf(placement)).toMatch(answer));

  it('need peers: labels or a group', () => {
    expect(refusalOf({ maxPerHost: 1 }, {})).toMatch(/^spec.placement.maxPerHost: the rule selects no instances/);
    expect(refusalOf({ spread: [{ by: 'zone' }] }, {})).toMatch(/^spec.placement.spread\[0\].among/);
    expect(refusalOf({ maxPerHost: 1, group: 'databases' }, {})).toBe('accepted');
    expect(refusalOf({ spread: [{ by: 'zone', among: to }] }, {})).toBe('accepted');
  });

  it('still need them when labels change', () => {
    const web = testInstance('web', { placement: { maxPerHost: 1 } }, {}, { labels: { app: 'web' } });
    const cache = testCache([testImage(), web]);
    const input = { project: 'default', name: 'web', labels: {}, spec: web.spec };
    expect(() => replaceInstance(cache, input, testContext())).toThrow('the rule selects no instances');
  });
});

describe('placement groups', () => {
  const input = (spec: object) => ({ project: 'default', name: 'g', labels: {}, spec: parse(GroupSpec, spec, 'spec') });

  it('are made, changed and removed', () => {
    const cache = testCache([]);
    commitPlan(cache, createPlainResource(cache, 'group', input({ maxPerHost: 2 }), testContext()).plan);
    expect(() => createPlainResource(cache, 'group', input({}), testContext())).toThrow('exists already');
    commitPlan(cache, replacePlainResource(cache, 'group', input({ maxPerHost: 3 })).plan);
    const made = cache.get('group', 'groups/default/g')?.value;
    expect(made).toMatchObject({ metadata: { generation: 2 }, spec: { maxPerHost: 3 } });
    commitPlan(cache, deletePlainResource(cache, 'group', { project: 'default', name: 'g' }, testContext()).plan);
    expect(cache.get('group', 'groups/default/g')).toBeUndefined();
  });

  it('are of one project each', () => {
    const cache = testCache([]);
    commitPlan(cache, createPlainResource(cache, 'group', input({}), testContext()).plan);
    const other = { ...input({ maxPerHost: 1 }), project: 'ci' };
    commitPlan(cache, createPlainResource(cache, 'group', other, testContext()).plan);
    commitPlan(cache, deletePlainResource(cache, 'group', { project: 'default', name: 'g' }, testContext()).plan);
    expect(cache.get('group', 'groups/ci/g')?.value.spec).toMatchObject({ maxPerHost: 1 });
    expect(() => deletePlainResource(cache, 'group', { project: 'default', name: 'g' }, testContext())).toThrow(
      'there is no group',
    );
  });

  it('stay while instances name them', () => {
    const cache = testCache([testGroup('g')]);
    addRecord(cache, testInstance('web', { placement: { group: 'g' } }));
    expect(() => deletePlainResource(cache, 'group', { project: 'default', name: 'g' }, testContext())).toThrow(
      'placement group "g" has one instance (web); remove them first',
    );
  });

  it('cannot ask for two things at once', () => {
    const make = (spec: object) => createPlainResource(testCache([]), 'group', input(spec), testContext());
    expect(() => make({ affinity: {}, antiAffinity: {} })).toThrow('both together and apart by host');
    expect(() => make({ affinity: { by: 'zone' }, spread: { by: 'zone' } })).toThrow(
      'both together and spread by zone',
    );
    expect(() => make({ affinity: { weight: 3 } })).toThrow('a required rule has no weight');
    expect(() => make({ affinity: { by: 'zone' }, antiAffinity: { by: 'host' } })).not.toThrow();
  });
});
