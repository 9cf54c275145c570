import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { keys } from '../state/keys.ts';
import type { Provider } from '../state/records.ts';
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
import { explain } from './explain.ts';

const ctx = testContext();

/** The changes that would make `asked` fit, once `running` have been placed. */
function nearest(
  hosts: Record<string, TestHost>,
  asked: Partial<InstanceSpec>,
  running: Record<string, Partial<InstanceSpec>> = {},
): string[] {
  const cache = testFleet(hosts);
  for (const [name, spec] of Object.entries(running)) {
    const one = testInstance(name, spec);
    cache.apply(
      [{ key: keys.instance('default', name), value: one, revision: cache.revision + 1 }],
      cache.revision + 1,
    );
    commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
  }
  const waiting = testInstance('web', { cpus: 1, memoryMiB: 512, ...asked });
  const before = JSON.stringify([...cache.list('host')]);
  const { nearest: changes = [] } = explain(cache, waiting);
  expect(JSON.stringify([...cache.list('host')])).toBe(before);
  return changes.map(({ message }) => message);
}

const four = { capacity: { VCPU: 4, MEMORY_MB: 8192 } };

describe('what would make it fit', () => {
  it('says how much less to ask, of each class that is short', () => {
    expect(nearest({ h1: four }, { memoryMiB: 10_240 })).toEqual(['request 8 GiB memory (2 GiB memory less)']);
  });

  it('finds the host where least has to be given up', () => {
    const hosts = { h1: four, h2: { capacity: { VCPU: 6, MEMORY_MB: 8192 } } };
    expect(nearest(hosts, { cpus: 8 })[0]).toBe('request 6 CPUs (2 CPUs less)');
  });

  it('joins what one host lacks', () => {
    expect(nearest({ h1: four }, { cpus: 5, memoryMiB: 9216 })).toEqual([
      'request 4 CPUs and 8 GiB memory (1 CPU and 1 GiB memory less)',
    ]);
  });

  it('offers whole steps only', () => {
    const [host, provider] = testHost('h1', four);
    const memory = provider.inventories['MEMORY_MB'];
    const inventories = { ...provider.inventories, ...(memory ? { MEMORY_MB: { ...memory, stepSize: 1024 } } : {}) };
    const cache = testCache([testImage(), host, { ...provider, inventories }]);
    const { nearest: changes } = explain(cache, testInstance('web', { cpus: 1, memoryMiB: 1500 }));
    expect(changes?.map(({ message }) => message)).toEqual(['request 1 GiB memory (476 MiB memory less)']);
  });

  it('asks for fewer devices', () => {
    const [host, provider] = testHost('h1', four);
    const gpu = (id: string): Provider => ({
      ...provider,
      id: `${provider.id}.${id}`,
      parent: provider.id,
      inventories: {
        CUSTOM_GPU_MILLI: { total: 1000, reserved: 0, minUnit: 1, maxUnit: 1000, stepSize: 1, allocationRatio: 1 },
      },
    });
    const cache = testCache([testImage(), host, provider, gpu('gpu0'), gpu('gpu1')]);
    const { nearest: changes } = explain(cache, testInstance('web', { cpus: 1, memoryMiB: 512, gpus: { count: 4 } }));
    expect(changes?.map(({ message }) => message)).toEqual(['ask for 2 instead of 4 that give 1 GPU each']);
  });

  it('says which host to resume, and which to wait for', () => {
    expect(nearest({ h1: { spec: { paused: true } }, h2: { ready: false } }, {})).toEqual([
      'resume host h1',
      'host h2 comes back',
    ]);
  });

  it('joins what one host needs', () => {
    expect(nearest({ h1: { ready: false, spec: { paused: true } } }, {})).toEqual([
      'resume host h1, and it comes back',
    ]);
  });

  it('does not offer to resume a host that would still refuse', () => {
    expect(nearest({ h1: { spec: { paused: true }, capacity: { VCPU: 1, MEMORY_MB: 8192 } } }, { cpus: 2 })).toEqual(
      [],
    );
  });

  it('names the taint that keeps it away', () => {
    const tainted = { spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' as const }] } };
    expect(nearest({ h1: tainted }, {})).toEqual(['remove the taints of host h1']);
  });

  it('names the wish that refuses all hosts', () => {
    const placement = { hostLabels: { rack: 'r1', disk: 'ssd' }, pool: 'ci' };
    expect(nearest({ h1: { labels: { disk: 'ssd' }, spec: { pool: 'ci' } } }, { placement })).toEqual([
      'drop the label rule rack=r1',
    ]);
    expect(nearest({ h1: { labels: { disk: 'ssd', rack: 'r1' } } }, { placement })).toEqual(['drop the pool ci']);
  });

  it('names one trait, one label rule, one rule about neighbours', () => {
    const host = { labels: { zone: 'a', cores: '8' } };
    expect(
      nearest({ h1: host }, { placement: { traits: { required: ['CUSTOM_B'], forbidden: ['CUSTOM_C'] } } }),
    ).toEqual(['drop the trait rule required CUSTOM_B']);
    const hostRules: InstanceSpec['placement']['hostRules'] = [
      { key: 'zone', operator: 'In', values: ['a'] },
      { key: 'cores', operator: 'Gt', values: ['8'] },
    ];
    expect(nearest({ h1: host }, { placement: { hostRules } })).toEqual(['drop the label rule cores Gt 8']);
    const near = { affinity: [{ to: { app: 'db' }, by: 'zone', required: true }] };
    expect(nearest({ h1: host }, { placement: near })).toEqual(['drop the affinity rule by zone']);
  });

  it('names the one whose end makes room', () => {
    expect(nearest({ h1: four }, { cpus: 3 }, { small: { cpus: 1 }, big: { cpus: 3 } })).toEqual([
      'when instance default/big ends on h1',
      'one more host like h1 (4 CPUs, 8 GiB memory)',
    ]);
  });

  it('names the fewest whose ends together make room', () => {
    const running = { a: { cpus: 2, memoryMiB: 512 }, b: { cpus: 2, memoryMiB: 512 } };
    expect(nearest({ h1: four }, { cpus: 4 }, running)).toContain(
      'when 2 end on h1: instance default/a, instance default/b',
    );
  });

  it('offers one more host of a kind that is there', () => {
    expect(nearest({ h1: four }, { cpus: 4 }, { a: { cpus: 4 } })).toContain(
      'one more host like h1 (4 CPUs, 8 GiB memory)',
    );
  });

  it('counts how many more hosts a gang needs, beside the room that there is', () => {
    const cache = testCache([testImage(), ...testHost('h1', four), ...testHost('h2', four)]);
    addRecord(cache, testInstance('big', { cpus: 4, memoryMiB: 512 }));
    commitPlan(cache, placement.reconcile(cache, keys.instance('default', 'big'), ctx));
    const spec = { cpus: 2, memoryMiB: 512, gang: { name: 'train', size: 7 } };
    const members = Array.from({ length: 7 }, (_, i) => testInstance(`m-${i}`, spec, {}, { createdAtMs: i }));
    for (const member of members) addRecord(cache, member);
    // Two of seven find room on the free host, two more on each new one.
    for (const member of [members[0], members[6]])
      expect(member && explain(cache, member).nearest).toEqual([
        {
          change: 'AddHost',
          message: '3 more hosts like h1 (4 CPUs, 8 GiB memory), for all of gang train',
          hosts: ['h1'],
          hostCount: 1,
          cost: 60,
        },
      ]);
  });

  it('counts them for a gang of which not even one fits, too', () => {
    const cache = testCache([testImage(), ...testHost('h1', four)]);
    addRecord(cache, testInstance('big', { cpus: 4, memoryMiB: 512 }));
    commitPlan(cache, placement.reconcile(cache, keys.instance('default', 'big'), ctx));
    const apart = { placement: { antiAffinity: [{ to: { app: 'db' }, by: 'host', required: true }] } };
    const spec = { cpus: 1, memoryMiB: 512, gang: { name: 'db', size: 2 }, ...apart };
    const [first, ...others] = ['a', 'b'].map((name) => testInstance(name, spec, {}, { labels: { app: 'db' } }));
    for (const member of [first, ...others]) if (member) addRecord(cache, member);
    expect(first && explain(cache, first).nearest?.map(({ message }) => message)).toContain(
      '2 more hosts like h1 (4 CPUs, 8 GiB memory), for all of gang db',
    );
  });

  it('knows of no number of hosts for a member that fits on none', () => {
    const cache = testCache([testImage(), ...testHost('h1', four)]);
    const members = [1, 9].map((cpus) =>
      testInstance(`m-${cpus}`, { cpus, memoryMiB: 512, gang: { name: 'g', size: 2 } }),
    );
    for (const member of members) addRecord(cache, member);
    expect(members[0] && explain(cache, members[0]).nearest).toEqual([]);
  });

  it('knows of nothing when nothing helps', () => {
    expect(nearest({}, {})).toEqual([]);
  });

  it('answers with five at most, the nearest first', () => {
    const hosts = {
      h1: { spec: { paused: true } },
      h2: { ready: false },
      h3: four,
      h4: { spec: { taints: [{ key: 'x', effect: 'NoSchedule' as const }] } },
    };
    const found = nearest(hosts, { cpus: 6 }, { a: { cpus: 4 } });
    expect(found).toEqual(['resume host h1', 'host h2 comes back', 'remove the taints of host h4']);
  });
});

describe('one whose disk is on a full host', () => {
  it('is told whose end there makes room, and of nothing elsewhere', () => {
    const cache = testCache([testImage(), ...testHost('h1', four), ...testHost('h2', four)]);
    for (const [name, cpus] of [
      ['web', 2],
      ['big', 4],
    ] as const) {
      addRecord(cache, testInstance(name, { cpus, memoryMiB: 512, placement: { hostLabels: {} } }));
      commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
    }
    const big = cache.get('instance', keys.instance('default', 'big'))?.value;
    expect(big?.status.host).toBe('h2');
    const stopped = testInstance('web', { cpus: 2, memoryMiB: 512 }, { phase: 'Stopped', host: 'h2', incarnation: 1 });
    expect(explain(cache, stopped).nearest?.map(({ message }) => message)).toEqual([
      'when instance default/big ends on h2',
    ]);
  });
});

describe('a placed one', () => {
  it('is told its score then and now, who is better today, and what has changed', () => {
    const cache = testCache([testImage(), ...testHost('h2'), testInstance('web', { cpus: 1, memoryMiB: 512 })]);
    commitPlan(cache, placement.reconcile(cache, keys.instance('default', 'web'), ctx));
    const [host, provider] = testHost('h1', { capacity: { VCPU: 2, MEMORY_MB: 1024 } });
    for (const value of [provider, { ...host, metadata: { ...host.metadata, createdAtMs: 2_000_000 } }])
      cache.apply(
        [
          {
            key: 'kind' in value && value.kind === 'host' ? 'hosts/h1' : `providers/${provider.id}`,
            value,
            revision: cache.revision + 1,
          },
        ],
        cache.revision + 1,
      );
    const web = cache.get('instance', keys.instance('default', 'web'))?.value;
    expect(web && explain(cache, web).placed).toMatchObject({
      decision: expect.stringMatching(/^placed on h2: best of 1 that fit, of 1 /),
      fitsNow: true,
      better: [{ host: 'h1' }],
      changes: ['there are 2 hosts, there were 1', '2 would take it, 1 did', 'h1 joined'],
    });
  });
});

describe('one that had to go', () => {
  it('is told so once', () => {
    const why = { status: 'False', reason: 'Preempted', message: 'had to go from h1 for vip', sinceMs: 1 } as const;
    const conditions = (['Scheduled', 'Running', 'Ready'] as const).map((type) => ({ type, ...why }));
    const gone = testInstance('web', {}, { phase: 'Failed', conditions });
    expect(explain(testCache([testImage(), ...testHost('h1'), gone]), gone).summary).toBe(
      'Preempted: had to go from h1 for vip',
    );
  });
});

describe('the queue', () => {
  it('tells the place, and who is before', () => {
    const waiting = ['a', 'b', 'c'].map((name, i) => testInstance(name, { cpus: 64 }, {}, { createdAtMs: i }));
    const cache = testCache([testImage(), ...testHost('h1', four), ...waiting]);
    const [, , last] = waiting;
    expect(last && explain(cache, last, { nowMs: 10 }).queue).toEqual({
      position: 3,
      waiting: 3,
      ahead: ['default/a', 'default/b'],
      projectShare: 0,
    });
  });
});

describe('the answer', () => {
  it('counts hosts by reason, with examples, and tells of the asked page only', () => {
    const hosts = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`h${String(i).padStart(2, '0')}`, four]));
    const cache = testFleet(hosts);
    const first = explain(cache, testInstance('web', { cpus: 5, memoryMiB: 9000 }), { limit: 10 });
    expect(first.counts).toEqual({ hosts: 30, fit: 0, refused: 30 });
    expect(first.reasons).toMatchObject([{ reason: 'InsufficientCpu', rule: 'fit', hosts: 30, alone: 30 }]);
    expect(first.reasons[0]?.examples).toHaveLength(3);
    expect(first.hosts.map(({ host }) => host)).toEqual(Object.keys(hosts).slice(0, 10));
    expect(first.continue).toBe('10');
    const last = explain(cache, testInstance('web', { cpus: 5 }), { limit: 10, offset: 20 });
    expect(last.hosts[0]?.host).toBe('h20');
    expect(last.continue).toBeUndefined();
  });
});
