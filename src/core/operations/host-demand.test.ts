import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/errors.ts';
import { parse } from '../../api/parse.ts';
import { InstanceSpec } from '../../api/resources/instance.ts';
import { uuidOf } from '../state/views/placement-index.ts';
import { testCache, testHost, testImage } from '../testing.ts';
import { assertHostDemand } from './host-demand.ts';

const unknown = '6d0b4b0a-2d0b-4c1b-8e0f-0e2f6d6a5b11';
const storage = '11111111-2222-4333-8444-555555555555';
const [h1, h2] = [testHost('h1', { spec: { pool: 'gold' } }), testHost('h2')];
const outside = { ...h1[1], id: storage, host: '', outside: { name: 'array-1', createdAtMs: 1, changedAtMs: 1 } };
const cache = testCache([testImage(), ...h1, ...h2, outside]);

/** Like a request: checked by the schema, then by the rules that it cannot express. */
function faultOf(spec: Record<string, unknown>): { field: string | undefined; message: string } | undefined {
  try {
    assertHostDemand(cache, parse(InstanceSpec, { image: 'tiny', ...spec }, 'spec'));
    return undefined;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.code).toBe('InvalidRequest');
    return { field: error.field, message: error.message };
  }
}

const place = (placement: Record<string, unknown>) => ({ placement });
const rules = (...hostRules: unknown[]) => place({ hostRules });

describe('what is let in', () => {
  const rows: [string, Record<string, unknown>][] = [
    ['nothing asked', {}],
    [
      'rules that leave something over',
      rules({ key: 'z', operator: 'In', values: ['a', 'b'] }, { key: 'z', operator: 'NotIn', values: ['a'] }),
    ],
    [
      'bounds with one number between',
      rules({ key: 'n', operator: 'Gt', values: ['3'] }, { key: 'n', operator: 'Lt', values: ['5'] }),
    ],
    [
      'absent, and not one value',
      rules({ key: 'z', operator: 'DoesNotExist' }, { key: 'z', operator: 'NotIn', values: ['a'] }),
    ],
    ['a trait nobody has', place({ traits: { required: ['CUSTOM_NEVER_SEEN'] } })],
    ['a pool that only a host names', place({ pool: 'gold' })],
    ['a driver that a host has', place({ driver: 'fake' })],
    ['a GPU share', { gpus: { count: 1, share: 250, models: ['A100'] } }],
    ['cells that go up', { cpus: 4, memoryMiB: 1024, numaCells: 2 }],
    ['a query for a host', place({ query: `resources=VCPU:1&in_tree=${uuidOf(h1[1].id)}` })],
    ['a query', place({ query: 'resources=VCPU:1,MEMORY_MB:256&required=CUSTOM_A,!CUSTOM_B' })],
    ['an unknown class', { resources: { CUSTOM_NOBODY_HAS: 1 } }],
  ];
  for (const [name, spec] of rows) it(name, () => expect(faultOf(spec)).toBeUndefined());
});

describe('what is refused, naming the field', () => {
  const rows: [string, Record<string, unknown>, string, RegExp][] = [
    [
      'In and NotIn of the same',
      rules({ key: 'z', operator: 'In', values: ['a'] }, { key: 'z', operator: 'NotIn', values: ['a'] }),
      'spec.placement.hostRules[1]',
      /no host can have z != a together/,
    ],
    [
      'a label and NotIn',
      place({ hostLabels: { z: 'a' }, hostRules: [{ key: 'z', operator: 'NotIn', values: ['a'] }] }),
      'spec.placement.hostRules[0]',
      /no host/,
    ],
    [
      'two In that share nothing',
      rules({ key: 'z', operator: 'In', values: ['a'] }, { key: 'z', operator: 'In', values: ['b'] }),
      'spec.placement.hostRules[1]',
      /no host/,
    ],
    [
      'there and not there',
      rules({ key: 'z', operator: 'Exists' }, { key: 'z', operator: 'DoesNotExist' }),
      'spec.placement.hostRules[1]',
      /no host/,
    ],
    [
      'bounds with nothing between',
      rules({ key: 'n', operator: 'Gt', values: ['4'] }, { key: 'n', operator: 'Lt', values: ['5'] }),
      'spec.placement.hostRules[1]',
      /no host/,
    ],
    [
      'a value beyond a bound',
      rules({ key: 'n', operator: 'In', values: ['4'] }, { key: 'n', operator: 'Gt', values: ['4'] }),
      'spec.placement.hostRules[1]',
      /no host/,
    ],
    ['In without values', rules({ key: 'z', operator: 'In' }), 'spec.placement.hostRules[0].values', /at least one/],
    [
      'Exists with values',
      rules({ key: 'z', operator: 'Exists', values: ['a'] }),
      'spec.placement.hostRules[0].values',
      /takes no values/,
    ],
    [
      'Gt of a word',
      rules({ key: 'z', operator: 'Gt', values: ['a'] }),
      'spec.placement.hostRules[0].values',
      /whole number/,
    ],
    [
      'an unknown operator',
      rules({ key: 'z', operator: 'Near' }),
      'spec.placement.hostRules[0].operator',
      /must be one of/,
    ],
    [
      'a trait required and forbidden',
      place({ traits: { required: ['A'], forbidden: ['A'] } }),
      'spec.placement.traits.required[0]',
      /both required and forbidden/,
    ],
    [
      'a list whose traits are all forbidden',
      place({ traits: { anyOf: [['A', 'B']], forbidden: ['B', 'A'] } }),
      'spec.placement.traits.anyOf[0]',
      /every trait/,
    ],
    [
      'a trait in small letters',
      place({ traits: { required: ['avx'] } }),
      'spec.placement.traits.required[0]',
      /capitals/,
    ],
    [
      'a preference for nothing',
      place({ preferences: [{ weight: 5 }] }),
      'spec.placement.preferences[0].key',
      /either a label/,
    ],
    [
      'a preference of weight 0',
      place({ preferences: [{ weight: 0, trait: 'A' }] }),
      'spec.placement.preferences[0].weight',
      /has no effect/,
    ],
    [
      'a preference beyond 100',
      place({ preferences: [{ weight: 101, trait: 'A' }] }),
      'spec.placement.preferences[0].weight',
      /<= 100/,
    ],
    [
      'a toleration of a value without a key',
      place({ tolerations: [{ value: 'a' }] }),
      'spec.placement.tolerations[0].key',
      /needs the key/,
    ],
    [
      'an unknown score',
      place({ weights: { utilisation: 1 } }),
      'spec.placement.weights.utilisation',
      /did you mean "utilization"/,
    ],
    ['a negative weight', place({ weights: { utilization: -1 } }), 'spec.placement.weights.utilization', />= 0/],
    ['an unknown pool', place({ pool: 'golt' }), 'spec.placement.pool', /did you mean "gold"/],
    ['an unknown driver', place({ driver: 'fakee' }), 'spec.placement.driver', /did you mean "fake"/],
    ['a share of two GPUs', { gpus: { count: 2, share: 500 } }, 'spec.gpus.share', /count must be 1/],
    ['a share of more than one GPU', { gpus: { count: 1, share: 1001 } }, 'spec.gpus.share', /<= 1000/],
    [
      'GPUs in two ways',
      { gpus: { count: 1 }, resources: { CUSTOM_GPU_MILLI: 1 } },
      'spec.resources.CUSTOM_GPU_MILLI',
      /leave one/,
    ],
    ['CPUs that do not go up in cells', { cpus: 3, memoryMiB: 1024, numaCells: 2 }, 'spec.numaCells', /3 CPUs/],
    ['a negative amount', { cpus: -1 }, 'spec.cpus', />= 1/],
    ['a fraction', { memoryMiB: 512.5 }, 'spec.memoryMiB', /must be a whole number/],
    ['a huge amount', { resources: { CUSTOM_A: 2 ** 40 } }, 'spec.resources.CUSTOM_A', /<= 2147483647/],
    ['a class in small letters', { resources: { fpga: 1 } }, 'spec.resources.fpga', /CUSTOM_/],
    [
      'a query that cannot be read',
      place({ query: 'resource=VCPU:1' }),
      'spec.placement.query',
      /resource is not understood here; did you mean "resources"/,
    ],
    [
      'a query beside its own amounts',
      { cpus: 2, ...place({ query: 'resources=VCPU:1' }) },
      'spec.placement.query',
      /VCPU is requested both by the query and separately/,
    ],
    [
      'a query against the traits',
      place({ query: 'resources=VCPU:1&required=A', traits: { forbidden: ['A'] } }),
      'spec.placement.query',
      /both/,
    ],
    [
      'a query for an unknown provider',
      place({ query: `resources=VCPU:1&in_tree=${unknown}` }),
      'spec.placement.query',
      /in_tree names 6d0b.*which is no resource provider; "berth ledger ls"/,
    ],
    [
      'a query for an outside provider',
      place({ query: `resources=VCPU:1&in_tree=${storage}` }),
      'spec.placement.query',
      /in_tree names the outside provider "array-1", where no instance is placed/,
    ],
    [
      'a query for two hosts',
      place({ query: `resources=VCPU:1&in_tree=${uuidOf(h1[1].id)}&resources1=VCPU:1&in_tree1=${uuidOf(h2[1].id)}` }),
      'spec.placement.query',
      /in_tree names providers of h1 and h2; an instance has one host/,
    ],
    [
      'a query against its own aggregates',
      place({ query: `resources1=VCPU:1&member_of1=${storage}&member_of1=!${storage}` }),
      'spec.placement.query',
      /member_of both requires and excludes 11111111/,
    ],
    [
      'a query for disk in a group',
      place({ query: 'resources1=DISK_GB:1' }),
      'spec.placement.query',
      /cannot name DISK_GB/,
    ],
    [
      '33 rules',
      rules(...Array.from({ length: 33 }, () => ({ key: 'z', operator: 'Exists' }))),
      'spec.placement.hostRules',
      /32/,
    ],
    [
      '10,000 host labels',
      place({ hostLabels: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`k${i}`, 'v'])) }),
      'spec.placement.hostLabels',
      /64/,
    ],
  ];
  for (const [name, spec, field, message] of rows) {
    it(name, () => {
      const fault = faultOf(spec);
      expect(fault?.field).toBe(field);
      expect(fault?.message).toMatch(message);
    });
  }
});
