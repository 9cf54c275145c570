import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { overUse } from '../ledger/ledger.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testFleet,
  testHost,
  type TestHost,
  testImage,
  testInstance,
} from '../testing.ts';
import { explain } from '../explain/explain.ts';
import { requestOf } from './request.ts';
import { schedule, summarize } from './schedule.ts';

function answer(hosts: Record<string, TestHost>, spec: Partial<InstanceSpec>, image = testImage()) {
  const cache = testFleet(hosts, image);
  const placed = schedule(cache, requestOf(cache, testInstance('web', spec)));
  return placed.placed ? placed.host : summarize(placed);
}

describe('each rule says why', () => {
  const rows: [string, TestHost, Partial<InstanceSpec>, string][] = [
    ['a host that is ready takes it', {}, {}, 'h1'],
    ['a silent host does not', { ready: false }, {}, '0 of 1 host: 1 HostNotReady'],
    ['a host never seen does not', { status: { conditions: [] } }, {}, '0 of 1 host: 1 HostNeverSeen'],
    ['a paused host does not', { spec: { paused: true } }, {}, '0 of 1 host: 1 HostPaused'],
    ['a label that is there', { labels: { gpu: 'yes' } }, { placement: { hostLabels: { gpu: 'yes' } } }, 'h1'],
    [
      'a label of another value',
      { labels: { gpu: 'no' } },
      { placement: { hostLabels: { gpu: 'yes' } } },
      '0 of 1 host: 1 LabelMismatch',
    ],
    [
      'a label that only the prototype has',
      {},
      { placement: { hostLabels: { constructor: 'x' } } },
      '0 of 1 host: 1 LabelMismatch',
    ],
    ['the pool asked for', { spec: { pool: 'ci' } }, { placement: { pool: 'ci' } }, 'h1'],
    ['another pool', { spec: { pool: 'ci' } }, { placement: { pool: 'db' } }, '0 of 1 host: 1 PoolMismatch'],
    ['a driver that is not there', {}, { placement: { driver: 'qemu' } }, '0 of 1 host: 1 DriverMissing'],
    [
      'a driver that does not work',
      { status: { drivers: [{ name: 'qemu', available: false }] } },
      { placement: { driver: 'qemu' } },
      '0 of 1 host: 1 DriverUnavailable',
    ],
    ['the other processor', { status: { architecture: 'arm64' } }, {}, '0 of 1 host: 1 ArchitectureMismatch'],
    ['an image that is gone', {}, { image: 'gone' }, '0 of 1 host: 1 ImageMissing'],
    ['more CPUs than there are', {}, { cpus: 9 }, '0 of 1 host: 1 InsufficientCpu'],
    ['more memory than there is', {}, { memoryMiB: 16_385 }, '0 of 1 host: 1 InsufficientMemory'],
    ['more disk than there is', {}, { diskGiB: 101 }, '0 of 1 host: 1 InsufficientDisk'],
    ['a resource the host lacks', {}, { resources: { CUSTOM_FPGA: 1 } }, '0 of 1 host: 1 InsufficientCUSTOM_FPGA'],
  ];
  for (const [name, host, spec, expected] of rows) it(name, () => expect(answer({ h1: host }, spec)).toBe(expected));

  it('an image that needs a driver is a request for it', () => {
    expect(answer({ h1: {} }, {}, testImage('tiny', { backend: 'zones' }))).toBe('0 of 1 host: 1 DriverMissing');
  });

  it('counts reasons, most frequent first', () => {
    const hosts = { a: { ready: false }, b: { capacity: { VCPU: 1 } }, c: { ready: false } };
    expect(answer(hosts, { cpus: 2 })).toBe('0 of 3 hosts: 2 HostNotReady, 1 InsufficientCpu');
  });

  it('tells a fleet without hosts how to get one', () => {
    expect(answer({}, {})).toMatch(/no host has joined/);
  });
});

describe('profiles', () => {
  const busy = { capacity: { VCPU: 4, MEMORY_MB: 16_384 } }; // 1 of 4 asked: fuller than 1 of 8
  it('optimize-utilization fills the fuller host', () => expect(answer({ a: {}, b: busy }, {})).toBe('b'));
  it('distribute-load takes the emptier one', () =>
    expect(answer({ a: {}, b: busy }, { placement: { profile: 'distribute-load' } })).toBe('a'));
  it('the pool "default" sets the profile of instances that name neither pool nor profile', () => {
    const pool = {
      kind: 'pool',
      schemaVersion: 1,
      metadata: { ...testImage('default').metadata },
      spec: { description: '', profile: 'distribute-load' },
      status: {},
    } as const;
    const cache = testCache([testImage(), pool]);
    expect(requestOf(cache, testInstance('web')).profile).toBe('distribute-load');
    expect(requestOf(cache, testInstance('web', { placement: { profile: 'optimize-utilization' } })).profile).toBe(
      'optimize-utilization',
    );
    expect(requestOf(cache, testInstance('web', { placement: { pool: 'other' } })).profile).toBe(
      'optimize-utilization',
    );
  });
  it('ties go to the first name, whatever the order', () => {
    expect(answer({ b: {}, a: {} }, {})).toBe('a');
    expect(answer({ a: {}, b: {} }, {})).toBe('a');
  });
});

describe('sizes and defaults', () => {
  it('own numbers win over the size, the size over the image, the image over the pool, the pool over 4 CPUs and 8 GiB', () => {
    const size = {
      kind: 'size',
      schemaVersion: 1,
      metadata: testImage('small').metadata,
      spec: { cpus: 2, memoryMiB: 1024 },
      status: {},
    } as const;
    const pool = (name: string, defaults: { cpus?: number; memoryMiB?: number }) => ({
      ...size,
      kind: 'pool' as const,
      metadata: testImage(name).metadata,
      spec: { description: '', defaults },
    });
    const images = [testImage('tiny', { defaults: { cpus: 7, diskGiB: 3 } }), testImage('bare', { defaults: {} })];
    const cache = testCache([...images, size, pool('small', { cpus: 3, memoryMiB: 100 })]);
    const amounts = (spec: Partial<InstanceSpec>) => requestOf(cache, testInstance('web', spec)).amounts;
    expect(amounts({})).toEqual({ VCPU: 7, MEMORY_MB: 8192, DISK_GB: 3 });
    expect(amounts({ image: 'bare' })).toEqual({ VCPU: 4, MEMORY_MB: 8192 });
    expect(amounts({ placement: { pool: 'small' } })).toEqual({ VCPU: 7, MEMORY_MB: 100, DISK_GB: 3 });
    addRecord(cache, pool('default', { memoryMiB: 1000 }));
    expect(amounts({ image: 'bare' })).toEqual({ VCPU: 4, MEMORY_MB: 1000 });
    expect(amounts({ size: 'small' })).toEqual({ VCPU: 2, MEMORY_MB: 1024, DISK_GB: 3 });
    expect(amounts({ size: 'small', cpus: 1 })).toEqual({ VCPU: 1, MEMORY_MB: 1024, DISK_GB: 3 });
  });
});

describe('explain', () => {
  it('gives every refusal of every host, not only the first', () => {
    const cache = testCache([
      testImage(),
      ...testHost('h1', { ready: false, spec: { paused: true }, capacity: { VCPU: 1, MEMORY_MB: 100 } }),
    ]);
    const { hosts } = explain(cache, testInstance('web', { cpus: 2 }));
    expect(hosts[0]?.refusals.map((refusal) => refusal.reason)).toEqual([
      'HostNotReady',
      'HostPaused',
      'InsufficientCpu',
    ]);
  });

  it('tells of every resource that is short, not only of the first', () => {
    const cache = testCache([testImage(), ...testHost('h1', { capacity: { VCPU: 1, MEMORY_MB: 600 } })]);
    const { hosts } = explain(cache, testInstance('web', { cpus: 2, memoryMiB: 1000 }));
    expect(hosts[0]?.refusals).toEqual([
      {
        rule: 'fit',
        reason: 'InsufficientCpu',
        message: '2 CPUs asked, 1 free: needs 1 more; 1000 MiB of memory asked, 600 MiB free: needs 400 MiB more',
      },
    ]);
  });

  it('says why a failed instance failed', () => {
    const running = {
      type: 'Running',
      status: 'False',
      reason: 'PortInUse',
      message: 'port 80 is taken',
      sinceMs: 0,
    } as const;
    const cache = testCache([testImage(), ...testHost('h1')]);
    const failed = testInstance('web', {}, { phase: 'Failed', host: 'h1', conditions: [running] });
    expect(explain(cache, failed).summary).toBe('PortInUse: port 80 is taken; it was placed');
  });

  it('counts the room an instance holds as its own', () => {
    const cache = testCache([
      testImage(),
      ...testHost('h1', { capacity: { VCPU: 2, MEMORY_MB: 1024 } }),
      testInstance('web', { cpus: 2 }),
    ]);
    commitPlan(cache, placement.reconcile(cache, 'instances/default/web', testContext()));
    const instance = cache.get('instance', 'instances/default/web');
    expect(instance && explain(cache, instance.value)).toMatchObject({
      host: 'h1',
      hosts: [{ host: 'h1', current: true, fits: true }],
    });
  });
});

describe('placing many', () => {
  it('never takes a host beyond what it has, and leaves nobody waiting who fits', () => {
    const size = fc.record({ cpus: fc.integer({ min: 1, max: 6 }), memoryMiB: fc.integer({ min: 16, max: 9000 }) });
    fc.assert(
      fc.property(fc.array(size, { maxLength: 25 }), fc.integer({ min: 1, max: 4 }), (sizes, hostCount) => {
        const cache = testCache([
          testImage(),
          ...Array.from({ length: hostCount }, (_, i) => testHost(`h${i}`)).flat(),
        ]);
        for (const [i, spec] of sizes.entries()) {
          addRecord(cache, testInstance(`i${i}`, spec));
          commitPlan(
            cache,
            placement.reconcile(cache, `instances/default/i${i}`, testContext({ newId: (prefix) => `${prefix}_${i}` })),
          );
          expect(overUse(cache)).toEqual([]);
        }
        for (const { value } of cache.list('instance')) {
          const fitsSomewhere = schedule(cache, requestOf(cache, value)).placed;
          expect(value.status.host === undefined && fitsSomewhere).toBe(false);
        }
      }),
      { numRuns: 60 },
    );
  });
});
