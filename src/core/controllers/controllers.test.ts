import { describe, expect, it } from 'vitest';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { assignmentOf } from '../operations/assignment.ts';
import { createInstance, deleteInstance } from '../operations/instance.ts';
import { createHost, deleteHost, heartbeat, registerHost, replaceHost } from '../operations/host.ts';
import { applyReport } from '../operations/report.ts';
import type { Cache } from '../state/cache.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import {
  commitPlan,
  testAgentId,
  testCache,
  testContext,
  testGuest,
  testHost,
  testImage,
  testInstance,
} from '../testing.ts';
import { garbage } from './garbage.ts';
import { hostHealth } from './hosts/host-health.ts';
import { lostHost } from './hosts/lost-host.ts';
import { placement } from './placement.ts';
import { restart } from './restart.ts';

const key = 'instances/default/web';
const instanceIn = (cache: Cache): Instance => cache.get('instance', key)?.value ?? expect.unreachable();
let idCount = 0;
const at = (ms: number) => testContext({ nowMs: ms, monotonicMs: ms, newId: (prefix) => `${prefix}_${++idCount}` });

/** Two hosts, both with a heartbeat at 1,000,000 ms; the instance runs on h1. */
function running(spec: Partial<InstanceSpec> = {}) {
  const seen = { nowMs: 1_000_000 };
  const cache = testCache([testImage(), ...testHost('h1'), testInstance('web', spec)], () => seen.nowMs);
  for (const name of ['h1'])
    commitPlan(cache, heartbeat(cache, { name, heartbeat: { epoch: 1 } }, at(seen.nowMs)).plan);
  commitPlan(cache, placement.reconcile(cache, key, at(1_000_000)));
  report(cache, 'running', 1);
  return { cache, seen };
}

function report(
  cache: Cache,
  state: 'running' | 'failed' | 'absent',
  sequence: number,
  host = 'h1',
  incarnation = 1,
  epoch = 1,
): string {
  const guest = state === 'absent' ? { state } : testGuest({ state });
  const sent = { instanceId: instanceIn(cache).metadata.id, incarnation, sequence, observedGeneration: 1, guest };
  const { plan, result } = applyReport(cache, { host, epoch, report: sent }, at(1_000_100));
  commitPlan(cache, plan);
  return result;
}

const step = (cache: Cache, controller: typeof restart, ms: number, of = key) => {
  const plan = controller.reconcile(cache, of, at(ms));
  commitPlan(cache, plan);
  return plan;
};

describe('placement', () => {
  it('says once why it waits, and is silent while the reason stays', () => {
    const cache = testCache([testImage(), ...testHost('h1', { ready: false }), testInstance('web')]);
    expect(step(cache, placement, 1).changes).toHaveLength(2);
    expect(instanceIn(cache).status.conditions[0]).toMatchObject({
      type: 'Scheduled',
      status: 'False',
      message: '0 of 1 host: 1 HostNotReady',
    });
    expect(step(cache, placement, 2).changes).toHaveLength(0);
  });

  it('binds, claims and tells of it in one Plan that also holds the host to what was seen', () => {
    const cache = testCache([testImage(), ...testHost('h1'), testInstance('web')]);
    const plan = placement.reconcile(cache, key, at(5));
    expect(plan.changes.map((change) => change.key.split('/')[0])).toEqual([
      'instances',
      'providers',
      'allocations',
      'events',
    ]);
    expect(plan.conditions?.map((condition) => condition.key)).toEqual(['hosts/h1']);
  });

  it('leaves alone what is being deleted, stopped or placed', () => {
    const cache = testCache([
      testImage(),
      ...testHost('h1'),
      testInstance('web', { powerState: 'stopped' }, { phase: 'Stopped' }),
    ]);
    expect(placement.reconcile(cache, key, at(5)).changes).toEqual([]);
  });

  it('is woken by room that becomes free, not by room that is taken', () => {
    const { cache } = running({ cpus: 5 });
    const woken: string[] = [];
    placement.wakes({ key: 'sizes/x', kind: 'size', before: null, after: null }, cache);
    commitPlan(cache, {
      changes: [{ key: 'instances/default/next', ifRevision: 0, value: testInstance('next', { cpus: 4 }) }],
    });
    cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
    commitPlan(cache, { changes: [{ key: 'instances/default/small', ifRevision: 0, value: testInstance('small') }] });
    step(cache, placement, 5, 'instances/default/small');
    expect(woken).toEqual(['instances/default/small']);
    commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'web' }, at(6)).plan);
    report(cache, 'absent', 2);
    expect(woken).toEqual(['instances/default/small', 'instances/default/next']);
  });
});

describe('host health', () => {
  it('counts silence from the last heartbeat and looks again when it may run out', () => {
    const { cache } = running();
    expect(step(cache, hostHealth, 1_050_000, 'hosts/h1')).toMatchObject({ changes: [], requeueAfterMs: 10_001 });
    step(cache, hostHealth, 1_060_001, 'hosts/h1');
    expect(cache.get('host', 'hosts/h1')?.value.status.conditions[0]).toMatchObject({
      status: 'False',
      reason: 'AgentSilent',
    });
  });

  it('counts silence of a server that was away from when it began to listen', () => {
    const { cache, seen } = running();
    // A new process reads the same records, long after the lease was written.
    seen.nowMs = 9_000_000;
    const lease = cache.get('lease', 'leases/h1');
    cache.apply(
      lease ? [{ key: lease.key, value: { ...lease.value }, revision: lease.revision + 50 }] : [],
      lease ? lease.revision + 50 : 0,
    );
    expect(hostHealth.reconcile(cache, 'hosts/h1', at(9_010_000)).changes).toEqual([]);
  });

  it('opens a host again that is heard again', () => {
    const { cache, seen } = running();
    step(cache, hostHealth, 1_070_000, 'hosts/h1');
    seen.nowMs = 1_080_000;
    commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, at(1_080_000)).plan);
    step(cache, hostHealth, 1_080_001, 'hosts/h1');
    expect(cache.get('host', 'hosts/h1')?.value.status.conditions[0]).toMatchObject({
      status: 'True',
      reason: 'AgentHeard',
    });
  });
});

describe('a lost host', () => {
  function lost(spec: Partial<InstanceSpec> = {}) {
    const world = running(spec);
    step(world.cache, hostHealth, 1_070_000, 'hosts/h1');
    step(world.cache, lostHost, 1_070_000);
    return world;
  }

  it('fails its instances with that reason, and keeps their room: they may still run there', () => {
    const { cache } = lost();
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Failed', failedAtMs: 1_070_000 });
    expect(instanceIn(cache).status.conditions.find((c) => c.type === 'Running')).toMatchObject({
      status: 'Unknown',
      reason: 'HostLost',
    });
    expect([...cache.allocationsOnHost('h1')]).toHaveLength(1);
  });

  it('that comes back with the guest running makes the instance Running again', () => {
    const { cache } = lost();
    expect(report(cache, 'running', 2)).toBe('accepted');
    expect(instanceIn(cache).status.phase).toBe('Running');
  });

  it('that comes back in the same session makes its instances what it last said of them: it will not say so again', () => {
    const { cache, seen } = lost();
    seen.nowMs = 1_080_000;
    commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, at(1_080_000)).plan);
    step(cache, lostHost, 1_080_000);
    expect(instanceIn(cache).status.phase).toBe('Failed'); // not ready yet
    step(cache, hostHealth, 1_080_000, 'hosts/h1');
    step(cache, lostHost, 1_080_000);
    expect(instanceIn(cache).status.phase).toBe('Running');
    expect(instanceIn(cache).status.conditions).toContainEqual(
      expect.objectContaining({ type: 'Running', status: 'True' }),
    );
  });

  it('does not hold up an instance that may restart elsewhere, and is told to remove the old guest when it is back', () => {
    const { cache } = lost({ restartPolicy: 'OnFailure' });
    step(cache, restart, 1_086_000);
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Pending', restartCount: 1 });
    const [allocation] = cache.allocationsOnHost('h1');
    expect(allocation && assignmentOf(allocation, cache.get('instance', key)).want).toBe('absent');
    expect(report(cache, 'running', 2)).toBe('stale');
    expect(report(cache, 'absent', 3)).toBe('accepted');
  });

  it('does hold up an exclusive instance: two copies must never run', () => {
    const { cache } = lost({ restartPolicy: 'OnFailure', exclusive: true });
    expect(restart.reconcile(cache, key, at(2_000_000)).changes).toEqual([]);
  });

  it('that is removed by force fails its instances for good and frees the room', () => {
    const { cache } = running();
    expect(() => deleteHost(cache, { name: 'h1', force: false }, at(1))).toThrow(
      /holds room for 1 instance;.*"berth host rm --force h1"/,
    );
    expect(() => deleteHost(cache, { name: 'h1', force: true }, at(1))).toThrow(/is connected and runs its guests/);
    step(cache, hostHealth, 1_070_000, 'hosts/h1');
    commitPlan(cache, deleteHost(cache, { name: 'h1', force: true }, at(1_070_000)).plan);
    step(cache, lostHost, 1_070_000);
    expect(instanceIn(cache).status.conditions.find((c) => c.type === 'Running')).toMatchObject({
      reason: 'HostRemoved',
    });
    const [allocation] = cache.allocationsOnHost('h1');
    step(cache, garbage, 1_070_000, allocation?.key);
    expect([...cache.allocationsOnHost('h1')]).toEqual([]);
  });
});

describe('a removed host', () => {
  const registration = {
    session: 'session-9',
    machineId: 'machine-h1',
    agentId: testAgentId,
    bootId: 'b',
    architecture: 'amd64' as const,
    capacity: { VCPU: 8 },
    reserved: {},
    labels: {},
    drivers: [],
    images: [],
    agentVersion: '1',
  };
  const spec = { paused: true, allocationRatios: {} };

  it('does not come back by itself, and goes on counting its sessions when an operator makes it again', () => {
    const cache = testCache(testHost('h1'));
    commitPlan(cache, deleteHost(cache, { name: 'h1', force: false }, at(1)).plan);
    expect(() => registerHost(cache, { name: 'h1', registration }, at(2))).toThrow(/has been removed from the fleet/);
    commitPlan(cache, createHost(cache, { project: '', name: 'h1', labels: {}, spec }, at(3)).plan);
    commitPlan(cache, registerHost(cache, { name: 'h1', registration }, at(4)).plan);
    expect(cache.get('host', 'hosts/h1')?.value).toMatchObject({ spec: { paused: true }, status: { epoch: 2 } });
    expect(() => heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, at(5))).toThrow(/session 1/);
  });

  it.each([
    ['is heard', true, /agent_0{26}, and this is agent_z{26},.* which is heard; stop one of the two/],
    ['is silent', false, /agent_0{26}, and this is agent_z{26},.* which is silent.*berth host rm --force h1/],
  ])('is closed to an agent with another data directory while its own %s', (_, ready, said) => {
    const cache = testCache(testHost('h1', { ready, status: { agentId: testAgentId } }));
    const other = { ...registration, agentId: `agent_${'z'.repeat(26)}` };
    expect(() => registerHost(cache, { name: 'h1', registration: other }, at(2))).toThrow(said);
    commitPlan(cache, registerHost(cache, { name: 'h1', registration }, at(3)).plan);
    expect(cache.get('host', 'hosts/h1')?.value.status).toMatchObject({ epoch: 2, agentId: testAgentId });
  });

  it('belongs from then on to the first agent that says who it is, and to the next when it was removed and made again', () => {
    const cache = testCache(testHost('h1'));
    const other = { ...registration, session: 'session-10', agentId: `agent_${'z'.repeat(26)}` };
    commitPlan(cache, registerHost(cache, { name: 'h1', registration }, at(1)).plan);
    expect(() => registerHost(cache, { name: 'h1', registration: other }, at(2))).toThrow('another data directory');
    commitPlan(cache, deleteHost(cache, { name: 'h1', force: true }, at(3)).plan);
    commitPlan(cache, createHost(cache, { project: '', name: 'h1', labels: {}, spec }, at(4)).plan);
    commitPlan(cache, registerHost(cache, { name: 'h1', registration: other }, at(5)).plan);
    expect(() => registerHost(cache, { name: 'h1', registration }, at(6))).toThrow('another data directory');
  });

  it('takes stopped instances with it: their disks are gone', () => {
    const cache = testCache([
      testImage(),
      ...testHost('h1', { ready: false }),
      testInstance('web', { powerState: 'stopped' }, { phase: 'Stopped', host: 'h1', incarnation: 1 }),
    ]);
    commitPlan(cache, deleteHost(cache, { name: 'h1', force: true }, at(1)).plan);
    step(cache, lostHost, 2);
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Failed' });
  });
});

describe('restart', () => {
  it('waits its delay, then places anew with a higher incarnation and restart count', () => {
    const { cache } = running({ restartPolicy: 'OnFailure' });
    report(cache, 'failed', 2);
    const failedAtMs = instanceIn(cache).status.failedAtMs ?? 0;
    expect(restart.reconcile(cache, key, at(failedAtMs + 1_000))).toMatchObject({
      changes: [],
      requeueAfterMs: 14_000,
    });
    step(cache, restart, failedAtMs + 15_000);
    step(cache, placement, failedAtMs + 15_000);
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Scheduled', incarnation: 2, restartCount: 1 });
    expect(instanceIn(cache).status.guest).toBeUndefined();
  });

  it('waits for clocks that differ a little, not for one that is far ahead, nor for a jump', () => {
    const { cache } = running({ restartPolicy: 'OnFailure' });
    report(cache, 'failed', 2);
    const failedAtMs = instanceIn(cache).status.failedAtMs ?? 0;
    expect(restart.reconcile(cache, key, at(failedAtMs - 1_000))).toMatchObject({
      changes: [],
      requeueAfterMs: 15_000,
    });
    step(cache, restart, failedAtMs - 3_600_000);
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Pending', restartCount: 1 });
  });

  it('does nothing under Never', () => {
    const { cache } = running();
    report(cache, 'failed', 2);
    expect(restart.reconcile(cache, key, at(9_000_000)).changes).toEqual([]);
  });
});

describe('garbage', () => {
  /** A full pass; returns the number of deletions. */
  const pass = (cache: Cache, ctx: Context): number => {
    let removed = 0;
    for (const each of [...garbage.keys(cache)]) {
      const plan = garbage.reconcile(cache, each, ctx);
      removed += plan.changes.length;
      commitPlan(cache, plan);
    }
    return removed;
  };

  it('keeps a deleted instance until its host holds nothing of it', () => {
    const { cache } = running();
    commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'web' }, at(1)).plan);
    expect(garbage.reconcile(cache, key, at(2)).changes).toEqual([]);
    report(cache, 'absent', 2);
    step(cache, garbage, 3);
    expect(cache.get('instance', key)).toBeUndefined();
  });

  it('rests on the release of its room, which may yet be refused', () => {
    const { cache } = running();
    commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'web' }, at(1)).plan);
    const { id } = instanceIn(cache).metadata;
    const absent = {
      instanceId: id,
      incarnation: 1,
      sequence: 2,
      observedGeneration: 1,
      guest: { state: 'absent' },
    } as const;
    const release = cache.assume(applyReport(cache, { host: 'h1', epoch: 1, report: absent }, at(2)).plan);
    const removal = cache.assume(garbage.reconcile(cache, key, at(3)));
    if (!release.ok || !removal.ok) return expect.unreachable();
    expect(removal.restsOn).toContain(release.token);
  });

  it('removes old events and keeps young ones', () => {
    const { cache } = running();
    const [event] = cache.list('event');
    const bornMs = event?.value.metadata.createdAtMs ?? 0;
    expect(garbage.reconcile(cache, event?.key ?? '', at(bornMs + 1)).changes).toEqual([]);
    expect(garbage.reconcile(cache, event?.key ?? '', at(bornMs + 86_400_000)).changes).toHaveLength(1);
  });

  it('removes the oldest events when they are too many, some at once, at the full pass', () => {
    const cache = testCache([testInstance('web')]);
    const subject = instanceIn(cache);
    for (let i = 0; i < 700; i++) {
      // The names do not reveal the age: events of other projects and other clocks lie between them.
      const ctx = { ...at(10_000 + i), newId: () => `evt_${(i * 7919) % 700}` };
      commitPlan(cache, { changes: [eventChange(subject, { reason: 'Tried', message: String(i) }, ctx)] });
    }
    const ctx = testContext({ nowMs: 20_000, policy: { eventsMax: 100 } });
    expect(pass(cache, testContext({ nowMs: 20_000, policy: { eventsMax: 700 } }))).toBe(0);
    expect(pass(cache, ctx)).toBe(512);
    expect(pass(cache, ctx)).toBe(88);
    expect(pass(cache, ctx)).toBe(0);
    const left = [...cache.list('event')].map(({ value }) => Number(value.spec.message));
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => 600 + i));
  });

  it('removes events between full passes where there are many, once one write removes 512 of them', () => {
    const cache = testCache([testInstance('web')]);
    const instance = cache.list('instance')[Symbol.iterator]().next().value;
    if (!instance) throw new Error('there is no instance');
    const { key, value } = instance;
    const woken = (): string[] => [...garbage.wakes({ key, kind: 'instance', before: value, after: value }, cache)];
    const more = (count: number): void =>
      commitPlan(cache, {
        changes: Array.from({ length: count }, (_, i) =>
          eventChange(value, { reason: 'Tried', message: String(i) }, at(10_000)),
        ),
      });
    more(10_000);
    expect(woken()).toEqual([]);
    more(511);
    expect(woken()).toEqual(['events/']);
    const ctx = testContext({ nowMs: 20_000, policy: { eventsMax: 10_000 } });
    expect(garbage.reconcile(cache, 'events/', ctx).changes).toEqual([]);
    more(1);
    expect(garbage.reconcile(cache, 'events/', ctx).changes).toHaveLength(512);
  });

  it('forgets the oldest idempotency keys when they are too many', () => {
    const cache = testCache([testImage()]);
    for (let i = 0; i < 5; i++) {
      const input = { project: 'default', name: `web-${i}`, labels: {}, spec: testInstance('web').spec };
      commitPlan(cache, createInstance(cache, { ...input, idempotencyKey: `key-${9 - i}` }, at(1_000 + i)).plan);
    }
    const ctx = testContext({ nowMs: 2_000, policy: { idempotencyMax: 2 } });
    expect(pass(cache, ctx)).toBe(3);
    expect([...cache.list('idempotency')].map(({ key }) => key)).toEqual([
      'idempotency/default/key-6',
      'idempotency/default/key-5',
    ]);
  });
});

describe('hosts', () => {
  it('change the ledger in the same Plan as their spec', () => {
    const cache = testCache(testHost('h1'));
    const spec = { paused: false, allocationRatios: { VCPU: 2 }, reserved: { MEMORY_MB: 384 } };
    commitPlan(cache, replaceHost(cache, { project: '', name: 'h1', labels: {}, spec }, at(1)).plan);
    expect(cache.providersOfHost('h1')[0]?.value).toMatchObject({
      generation: 2,
      inventories: { VCPU: { allocationRatio: 2 }, MEMORY_MB: { reserved: 384 } },
    });
  });

  it('keep labels, pool and pause over a new session of their agent', () => {
    const cache = testCache(testHost('h1', { labels: { zone: 'a' }, spec: { paused: true } }));
    const registration = {
      session: 'session-2',
      machineId: 'machine-h1',
      agentId: testAgentId,
      bootId: 'b',
      architecture: 'amd64' as const,
      capacity: { VCPU: 8, MEMORY_MB: 16_384, DISK_GB: 100 },
      reserved: {},
      labels: { zone: 'forged' },
      drivers: [],
      images: [],
      agentVersion: '1',
    };
    commitPlan(cache, registerHost(cache, { name: 'h1', registration }, at(1)).plan);
    expect(cache.get('host', 'hosts/h1')?.value).toMatchObject({
      metadata: { labels: { zone: 'a' } },
      spec: { paused: true },
      status: { epoch: 2 },
    });
    expect(cache.count('provider')).toBe(1);
  });
});
