import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { keys } from '../../state/keys.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testImage,
  testInstance,
  testProject,
  testTask,
} from '../../testing.ts';
import { createTask, releaseTask } from '../../operations/task.ts';
import { garbage } from '../garbage.ts';
import { placement } from '../placement.ts';
import { task } from './task.ts';
import { taskAtOnce } from './task-at-once.ts';

const key = keys.task('default', 'hold');
const web = keys.instance('default', 'web');

function fleetWith(...records: Parameters<typeof testCache>[0]) {
  const cache = testCache([testImage(), ...testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096 } }), ...records]);
  const ctx = testContext();
  return {
    cache,
    ctx,
    run: (controller: typeof task, at: string, nowMs = 1_000_000) =>
      commitPlan(cache, controller.reconcile(cache, at, { ...ctx, nowMs })),
    used: () => cache.usedBy(testHost('h1')[1].id).get('VCPU') ?? 0,
    task: () => cache.get('task', key)?.value,
    instance: () => cache.get('instance', web)?.value,
  };
}

function webFor(spec: Partial<InstanceSpec>) {
  return testInstance('web', { placement: { task: 'hold' }, ...spec });
}

describe('a task', () => {
  it('holds room without an instance, and gives it back when its time is over', () => {
    const fleet = fleetWith(testTask('hold', { ttlMs: 60_000 }));
    fleet.run(task, key);
    expect(fleet.task()?.status).toMatchObject({ phase: 'Placed', host: 'h1', heldUntilMs: 1_060_000 });
    expect(fleet.used()).toBe(2);
    expect(task.reconcile(fleet.cache, key, testContext({ nowMs: 1_059_999 }))).toEqual({
      changes: [],
      requeueAfterMs: 1,
    });
    fleet.run(task, key, 1_060_000);
    expect(fleet.task()?.status.phase).toBe('Expired');
    expect(fleet.used()).toBe(0);
    fleet.run(task, key, 1_060_000 + 3_600_000);
    expect(fleet.task()).toBeUndefined();
  });

  it('keeps others out of its room', () => {
    const fleet = fleetWith(testTask('hold', { cpus: 3 }), testInstance('web', { cpus: 2 }));
    fleet.run(task, key);
    fleet.run(placement, web);
    expect(fleet.instance()?.status.conditions[0]?.message).toMatch(/^0 of 1 host: 1 InsufficientCpu; /);
  });

  it('waits with the reason, and is woken by room', () => {
    const fleet = fleetWith(testTask('hold', { cpus: 5 }));
    fleet.run(task, key);
    expect(fleet.task()?.status.conditions[0]?.message).toBe('0 of 1 host: 1 InsufficientCpu');
    const [h2, provider] = testHost('h2');
    addRecord(fleet.cache, provider);
    expect([...task.wakes({ key: 'hosts/h2', kind: 'host', before: null, after: h2 }, fleet.cache)]).toEqual([key]);
    addRecord(fleet.cache, h2);
    fleet.run(task, key);
    expect(fleet.task()?.status.host).toBe('h2');
  });

  it('may be asked for without an image, or for where an image can run', () => {
    const arm = testImage('arm', { architecture: 'arm64' });
    const fleet = fleetWith(arm, testTask('hold', { image: 'arm' }));
    fleet.run(task, key);
    expect(fleet.task()?.status.conditions[0]?.message).toBe('0 of 1 host: 1 ArchitectureMismatch');
  });

  it('fails when its host is removed, and nothing is held any more', () => {
    const fleet = fleetWith(testTask('hold'));
    fleet.run(task, key);
    const [h1] = testHost('h1');
    fleet.cache.apply([{ key: keys.host('h1'), value: null, revision: 100 }], 100);
    const gone = { key: keys.host('h1'), kind: 'host', before: h1, after: null } as const;
    const allocation = keys.allocation(fleet.task()?.metadata.id ?? '', 1);
    expect([...garbage.wakes(gone, fleet.cache)]).toEqual([allocation]);
    fleet.run(garbage, allocation);
    expect([...task.wakes(gone, fleet.cache)]).toEqual([key]);
    fleet.run(task, key);
    expect(fleet.task()?.status).toMatchObject({ phase: 'Failed' });
    expect([...fleet.cache.list('allocation')]).toEqual([]);
  });
});

describe('an instance made for a task', () => {
  it('takes over its room and host in one Plan, and the task is no more', () => {
    const fleet = fleetWith(testTask('hold', { cpus: 4 }), ...testHost('h2'), webFor({ cpus: 4 }));
    fleet.run(task, key);
    expect(fleet.task()?.status.host).toBe('h1');
    fleet.run(placement, web);
    expect(fleet.instance()?.status).toMatchObject({ phase: 'Scheduled', host: 'h1', incarnation: 1 });
    expect(fleet.task()).toBeUndefined();
    expect(fleet.used()).toBe(4);
    expect([...fleet.cache.list('allocation')].map(({ value }) => value.consumer.name)).toEqual(['web']);
  });

  it('may take more than was held when that is free', () => {
    const fleet = fleetWith(testTask('hold', { cpus: 2 }), webFor({ cpus: 4 }));
    fleet.run(task, key);
    fleet.run(placement, web);
    expect(fleet.used()).toBe(4);
  });

  it('waits while the task does, and is woken when it is placed', () => {
    const fleet = fleetWith(testTask('hold'), webFor({}));
    fleet.run(placement, web);
    expect(fleet.instance()?.status.conditions[0]?.message).toBe('its task "hold" is waiting for a host itself');
    const before = fleet.task();
    fleet.run(task, key);
    const change = { key, kind: 'task', before: before ?? null, after: fleet.task() ?? null } as const;
    expect([...placement.wakes(change, fleet.cache)]).toEqual([web]);
  });

  it('says why the host of the task does not take it', () => {
    const fleet = fleetWith(testTask('hold'), webFor({ cpus: 5 }));
    fleet.run(task, key);
    fleet.run(placement, web);
    expect(fleet.instance()?.status.conditions[0]?.message).toMatch(
      /holds room on h1, which does not take it: InsufficientCpu \(5 CPUs asked, 4 free: needs 1 more\)/,
    );
    expect(fleet.task()?.status.phase).toBe('Placed');
  });

  it('says that the task is no more', () => {
    const fleet = fleetWith(webFor({}));
    fleet.run(placement, web);
    expect(fleet.instance()?.status.conditions[0]?.message).toMatch(/its task "hold" no longer exists/);
  });

  it('is looked at again when room is kept for an instance no longer', () => {
    const fleet = fleetWith(testTask('hold'));
    const nomination = { host: 'h1', untilMs: 2_000_000 };
    const change = (before: object, after: object) =>
      ({
        key: web,
        kind: 'instance',
        before: testInstance('web', {}, before),
        after: testInstance('web', {}, after),
      }) as const;
    expect([...task.wakes(change({ nomination }, {}), fleet.cache)]).toEqual([key]);
    expect([...task.wakes(change({ nomination }, { nomination }), fleet.cache)]).toEqual([]);
    expect([...task.wakes(change({}, { nomination }), fleet.cache)]).toEqual([]);
  });

  it('goes wherever it fits when it starts anew', () => {
    const fleet = fleetWith(testInstance('web', { placement: { task: 'hold' } }, { incarnation: 1 }));
    fleet.run(placement, web);
    expect(fleet.instance()?.status.host).toBe('h1');
  });
});

describe('a task that is placed in the Plan that creates it', () => {
  const limited = testProject('default', { quota: { VCPU: 4 } });
  const spec = { cpus: 4, memoryMiB: 1024, placement: {}, ports: [], ttlMs: 60_000, whenFull: 'fail' as const };
  const atOnce = (fleet: ReturnType<typeof fleetWith>, name: string, changes: object = {}) => {
    const input = { project: 'default', name, labels: {}, spec: { ...spec, ...changes } };
    const { plan } = taskAtOnce(fleet.cache, createTask(fleet.cache, input, fleet.ctx), fleet.ctx);
    commitPlan(fleet.cache, plan);
    return fleet.cache.get('task', keys.task('default', name))?.value;
  };

  it('holds its room', () => {
    const fleet = fleetWith();
    expect(atOnce(fleet, 'hold')?.status).toMatchObject({ phase: 'Placed', host: 'h1' });
    expect(fleet.used()).toBe(4);
  });

  it('fails when there is none, and counts against no quota', () => {
    const fleet = fleetWith(limited);
    expect(atOnce(fleet, 'large', { memoryMiB: 1 << 20 })?.status).toMatchObject({
      phase: 'Failed',
      conditions: [{ reason: 'NoRoom', message: '0 of 1 host: 1 InsufficientMemory' }],
    });
    expect(atOnce(fleet, 'hold')?.status.phase).toBe('Placed');
  });

  it('waits, with the reason, when it may', () => {
    const fleet = fleetWith();
    expect(atOnce(fleet, 'large', { cpus: 5, whenFull: 'wait' })?.status).toMatchObject({
      phase: 'Pending',
      conditions: [{ message: '0 of 1 host: 1 InsufficientCpu' }],
    });
  });

  it('counts against the quota of its project until it is released', () => {
    const fleet = fleetWith(limited);
    const id = atOnce(fleet, 'hold')?.metadata.id ?? '';
    expect(() => atOnce(fleet, 'more', { cpus: 1 })).toThrow(/has 4 of 4 VCPU, and 1 more/);
    commitPlan(fleet.cache, releaseTask(fleet.cache, { key, id }, fleet.ctx).plan);
    expect(fleet.used()).toBe(0);
    expect(atOnce(fleet, 'more', { cpus: 1 })?.status.phase).toBe('Placed');
  });
});
