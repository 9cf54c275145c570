import { describe, expect, it } from 'vitest';
import type { GuestStatus, Report } from '../../api/agent-protocol.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { garbage } from '../controllers/garbage.ts';
import { placement } from '../controllers/placement.ts';
import { powerOn } from '../controllers/power-on.ts';
import { restart } from '../controllers/restart.ts';
import { release } from '../ledger/ledger.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { commitPlan, testCache, testContext, testGuest, testHost, testImage, testInstance } from '../testing.ts';
import { assignmentOf } from './assignment.ts';
import { createInstance, deleteInstance, replaceInstance } from './instance.ts';
import { applyReport } from './report.ts';

const key = 'instances/default/web';
const ctx = testContext();

function placed(spec: Partial<InstanceSpec> = {}, host: Partial<Host['status']> = {}): Cache {
  const cache = testCache([
    testImage(),
    ...testHost('h1', { status: host }),
    ...testHost('h2', { ready: false }),
    testInstance('web', { diskGiB: 5, ...spec }),
  ]);
  commitPlan(cache, placement.reconcile(cache, key, ctx));
  return cache;
}

const instanceIn = (cache: Cache): Instance => cache.get('instance', key)?.value ?? expect.unreachable();

function report(
  cache: Cache,
  guest: GuestStatus | { state: 'absent' },
  changes: Partial<Report> & { host?: string; epoch?: number } = {},
): string {
  const { host = 'h1', epoch = 1, ...rest } = changes;
  const sent: Report = {
    instanceId: instanceIn(cache).metadata.id,
    incarnation: 1,
    sequence: 1,
    observedGeneration: 1,
    guest,
    ...rest,
  };
  const { plan, result } = applyReport(cache, { host, epoch, report: sent }, ctx);
  commitPlan(cache, plan);
  return result;
}

function wantOn(cache: Cache): string {
  const [allocation] = cache.allocationsOnHost('h1');
  return allocation ? assignmentOf(allocation, cache.get('instance', key)).want : 'nothing';
}

const assignments = (cache: Cache): string[] =>
  [...cache.allocationsOnHost('h1')].map((each) => assignmentOf(each, cache.get('instance', key)).want);

describe('a report', () => {
  const phases: [GuestStatus['state'], string][] = [
    ['preparing', 'Starting'],
    ['running', 'Running'],
    ['suspended', 'Suspended'],
    ['exited', 'Exited'],
    ['failed', 'Failed'],
    ['stopped', 'Stopped'],
  ];
  for (const [state, phase] of phases) {
    it(`of a guest that is ${state} makes the instance ${phase}`, () => {
      const cache = placed();
      expect(report(cache, testGuest({ state }))).toBe('accepted');
      expect(instanceIn(cache).status.phase).toBe(phase);
    });
  }

  describe('of a suspended guest', () => {
    const suspends = { drivers: [{ name: 'fake', available: true, suspends: true }] };
    const replace = (cache: Cache, powerState: InstanceSpec['powerState'], change: Partial<InstanceSpec> = {}) =>
      commitPlan(
        cache,
        replaceInstance(
          cache,
          { project: 'default', name: 'web', labels: {}, spec: { ...instanceIn(cache).spec, powerState, ...change } },
          ctx,
        ).plan,
      );

    it('comes of a wish, keeps the room and what was, and ends with the wish', () => {
      const cache = placed({}, suspends);
      report(cache, testGuest({ ready: true }));
      const { runningAtMs } = instanceIn(cache).status;
      replace(cache, 'suspended');
      expect(wantOn(cache)).toBe('suspended');
      report(cache, testGuest({ state: 'suspended', ready: true }), { sequence: 2, observedGeneration: 2 });
      expect(instanceIn(cache).status).toMatchObject({
        phase: 'Suspended',
        runningAtMs,
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'Running', status: 'False', reason: 'Suspended' }),
          expect.objectContaining({ type: 'Ready', status: 'False', reason: 'Suspended' }),
        ]),
      });
      expect([...cache.allocationsOnHost('h1')][0]?.value.amounts).toEqual({
        [testHost('h1')[0].metadata.id]: expect.objectContaining({ VCPU: 1 }),
      });
      replace(cache, 'running');
      expect(wantOn(cache)).toBe('running');
      report(cache, testGuest({ ready: true }), { sequence: 3, observedGeneration: 3 });
      expect(instanceIn(cache).status).toMatchObject({ phase: 'Running', runningAtMs });
      const told = [...cache.list('event')].map(({ value }) => value.spec.reason);
      expect(told.filter((reason) => reason === 'Suspended' || reason === 'Resumed')).toEqual(['Suspended', 'Resumed']);
    });

    it('is on disk where that is asked for, and keeps its room there', () => {
      const saves = { name: 'fake', available: true, suspends: true, offers: ['save' as const] };
      const cache = placed({}, { drivers: [saves] });
      report(cache, testGuest({ ready: true }));
      replace(cache, 'suspended', { suspendTo: 'disk' });
      const allocation = [...cache.allocationsOnHost('h1')][0];
      expect(allocation && assignmentOf(allocation, cache.get('instance', key)).suspendTo).toBe('disk');
      const guest = { state: 'suspended' as const, ready: true };
      report(cache, testGuest(guest), { sequence: 2, observedGeneration: 2 });
      report(cache, testGuest({ ...guest, saved: true }), { sequence: 3, observedGeneration: 2 });
      const told = [...cache.list('event')].map(({ value }) => value.spec.reason);
      expect(told.slice(-2)).toEqual(['Suspended', 'SuspendedToDisk']);
      expect(instanceIn(cache).status).toMatchObject({ phase: 'Suspended', guest: { saved: true } });
      expect(instanceIn(cache).status.conditions).toContainEqual(
        expect.objectContaining({
          type: 'Running',
          message: 'its memory is in a file of its host, and nothing of it runs',
        }),
      );
      expect([...cache.allocationsOnHost('h1')][0]?.value.amounts).toEqual(allocation?.value.amounts);
    });

    it('is refused to disk where its driver cannot', () => {
      const cache = placed({}, suspends);
      report(cache, testGuest());
      expect(() => replace(cache, 'suspended', { suspendTo: 'disk' })).toThrow('does not save the memory of guests');
    });

    it('is refused where its driver cannot, and of what does not run', () => {
      const cache = placed();
      expect(() => replace(cache, 'suspended')).toThrow('it is Scheduled, and only running instances can be');
      report(cache, testGuest());
      expect(() => replace(cache, 'suspended')).toThrow('the driver fake on host h1 does not suspend guests');
    });

    it('holds through a failure: it is placed anew, to be suspended', () => {
      const cache = placed({ restartPolicy: 'OnFailure' }, suspends);
      report(cache, testGuest());
      replace(cache, 'suspended');
      report(cache, testGuest({ state: 'failed' }), { sequence: 2, observedGeneration: 2 });
      expect(wantOn(cache)).toBe('stopped');
      const later = testContext({ nowMs: ctx.nowMs + 3_600_000 });
      commitPlan(cache, restart.reconcile(cache, key, later));
      expect(instanceIn(cache)).toMatchObject({ status: { phase: 'Pending', restartCount: 1 } });
      commitPlan(cache, placement.reconcile(cache, key, later));
      expect(assignments(cache)).toContain('suspended');
    });

    it('is not created', () => {
      const cache = placed();
      const input = { project: 'default', name: 'new', labels: {}, spec: { ...instanceIn(cache).spec } };
      expect(() => createInstance(cache, { ...input, spec: { ...input.spec, powerState: 'suspended' } }, ctx)).toThrow(
        'a new instance can be running or stopped',
      );
    });
  });

  it('of a guest that panicked says so, and so does its restart', () => {
    const cache = placed({ restartPolicy: 'OnFailure' });
    report(cache, testGuest());
    const why = { reason: 'GuestPanicked', message: 'the kernel of the guest panicked; its console says why' };
    report(cache, testGuest({ state: 'failed', ...why }), { sequence: 2 });
    expect(instanceIn(cache).status).toMatchObject({
      phase: 'Failed',
      conditions: expect.arrayContaining([expect.objectContaining({ type: 'Running', status: 'False', ...why })]),
    });
    commitPlan(cache, restart.reconcile(cache, key, testContext({ nowMs: ctx.nowMs + 3_600_000 })));
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Pending', restartCount: 1 });
    expect([...cache.list('event')].map(({ value }) => value.spec.message)).toContain(
      `restart 1 after: ${why.message}`,
    );
  });

  it('of a guest that shows no sign of life leaves it running, and says why it is not ready', () => {
    const cache = placed({ restartPolicy: 'OnFailure' });
    report(cache, testGuest({ reason: 'NoSignOfLife', message: 'no sign of life in 5 min' }));
    expect(instanceIn(cache).status).toMatchObject({
      phase: 'Running',
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Ready', status: 'False', reason: 'NoSignOfLife' }),
      ]),
    });
  });

  it('brings address, ports and readiness', () => {
    const cache = placed();
    report(
      cache,
      testGuest({ ready: true, address: '10.0.2.15', ports: [{ guestPort: 80, hostPort: 20_000, protocol: 'tcp' }] }),
    );
    expect(instanceIn(cache).status).toMatchObject({
      guest: { address: '10.0.2.15' },
      observedGeneration: 1,
      readyAtMs: ctx.nowMs,
    });
  });

  const stale: [string, Partial<Report> & { host?: string }][] = [
    ['of another incarnation', { incarnation: 2 }],
    ['from a host that does not hold it', { host: 'h2' }],
    ['of an instance nobody knows', { instanceId: 'inst_00000000000000000000000000' }],
  ];
  for (const [name, changes] of stale) {
    it(`${name} is stale and changes nothing`, () => {
      const cache = placed();
      const before = instanceIn(cache);
      expect(report(cache, testGuest(), changes)).toBe('stale');
      expect(instanceIn(cache)).toBe(before);
    });
  }

  it('that comes late or twice is stale', () => {
    const cache = placed();
    expect(report(cache, testGuest(), { sequence: 5 })).toBe('accepted');
    expect(report(cache, testGuest({ state: 'preparing' }), { sequence: 4 })).toBe('stale');
    expect(report(cache, testGuest({ state: 'failed' }), { sequence: 5 })).toBe('stale');
    expect(instanceIn(cache).status.phase).toBe('Running');
  });

  it('that says the same again makes what was said before it stale', () => {
    const cache = placed();
    expect(report(cache, testGuest(), { sequence: 4 })).toBe('accepted');
    const events = cache.count('event');
    expect(report(cache, testGuest(), { sequence: 6 })).toBe('accepted');
    expect(cache.count('event')).toBe(events);
    expect(report(cache, testGuest({ state: 'failed' }), { sequence: 5 })).toBe('stale');
    expect(instanceIn(cache).status.phase).toBe('Running');
  });

  it('of a session that is over is refused', () => {
    expect(() => report(placed(), testGuest(), { epoch: 7 })).toThrow(/session 7/);
  });

  it('cannot bring a failed guest back to life', () => {
    const cache = placed();
    report(cache, testGuest({ state: 'failed', reason: 'HypervisorExited' }));
    report(cache, testGuest(), { sequence: 2 });
    expect(instanceIn(cache).status.phase).toBe('Failed');
  });

  it('of a dead guest gives back CPU and memory, and keeps the disk that is still there', () => {
    const cache = placed();
    report(cache, testGuest({ state: 'failed' }));
    const [provider] = cache.providersOfHost('h1');
    expect(Object.fromEntries(cache.usedBy(provider?.value.id ?? ''))).toEqual({ VCPU: 0, MEMORY_MB: 0, DISK_GB: 5 });
  });

  it('cannot claim to have seen a generation that does not exist', () => {
    const cache = placed();
    report(cache, testGuest(), { observedGeneration: 99 });
    expect(instanceIn(cache).status.observedGeneration).toBe(1);
  });

  it('of absence releases the room only when nothing was wanted there any more', () => {
    const cache = placed();
    expect(report(cache, { state: 'absent' })).toBe('stale');
    commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'web' }, ctx).plan);
    expect(wantOn(cache)).toBe('absent');
    const { metadata } = instanceIn(cache);
    const sent = { instanceId: metadata.id, incarnation: 1, sequence: 9, observedGeneration: 1 };
    const { plan } = applyReport(cache, { host: 'h1', epoch: 1, report: { ...sent, guest: { state: 'absent' } } }, ctx);
    expect(plan.conditions?.map((condition) => condition.key)).toEqual([key, keys.host('h1')]);
    expect(report(cache, { state: 'absent' })).toBe('accepted');
    expect([...cache.allocationsOnHost('h1')]).toEqual([]);
    commitPlan(cache, garbage.reconcile(cache, key, ctx));
    expect(cache.get('instance', key)).toBeUndefined();
  });
});

describe('a guest that KVM could not run', () => {
  it('is told of in an event, once, beside what else is new', () => {
    const cache = placed();
    const why = { reason: 'AcceleratorFallback', message: 'KVM could not run this guest' };
    report(cache, testGuest({ state: 'running', ...why }), { sequence: 1 });
    report(cache, testGuest({ state: 'running', ready: true, ...why }), { sequence: 2 });
    const told = [...cache.list('event')].map(({ value }) => value.spec).filter(({ reason }) => reason === why.reason);
    expect(told).toMatchObject([{ type: 'Warning', message: why.message }]);
    expect([...cache.list('event')].map(({ value }) => value.spec.reason)).toEqual(
      expect.arrayContaining(['Started', 'Ready']),
    );
  });
});

describe('readiness', () => {
  it('is told anew each time the guest has booted, and once for each', () => {
    const cache = placed();
    const reasons = () =>
      [...cache.list('event')].map((event) => event.value.spec.reason).filter((reason) => reason === 'Ready');
    const later = (nowMs: number, sequence: number, guest: GuestStatus) => {
      const sent: Report = {
        instanceId: instanceIn(cache).metadata.id,
        incarnation: 1,
        sequence,
        observedGeneration: 1,
        guest,
      };
      const at = testContext({ nowMs, newId: (prefix) => `${prefix}_${nowMs}` });
      commitPlan(cache, applyReport(cache, { host: 'h1', epoch: 1, report: sent }, at).plan);
    };
    later(10, 1, testGuest({ ready: true }));
    later(20, 2, testGuest({ ready: true, address: '10.0.2.15' }));
    later(30, 3, testGuest({ state: 'stopped' }));
    later(40, 4, testGuest());
    later(50, 5, testGuest({ ready: true }));
    expect(reasons()).toHaveLength(2);
    expect(instanceIn(cache).status).toMatchObject({ runningAtMs: 40, readyAtMs: 50 });
  });
});

describe('a stopped instance', () => {
  function stopped(): Cache {
    const cache = placed({ cpus: 6 });
    report(cache, testGuest());
    const { spec } = instanceIn(cache);
    power(cache, spec, 'stopped');
    report(cache, testGuest({ state: 'stopped' }), { sequence: 2, observedGeneration: 2 });
    return cache;
  }
  const power = (cache: Cache, spec: InstanceSpec, powerState: 'running' | 'stopped') =>
    commitPlan(
      cache,
      replaceInstance(cache, { project: 'default', name: 'web', labels: {}, spec: { ...spec, powerState } }, ctx).plan,
    );
  const used = (cache: Cache) => Object.fromEntries(cache.usedBy(cache.providersOfHost('h1')[0]?.value.id ?? ''));

  it('that had to be ended by force is told of by a warning', () => {
    const cache = placed();
    report(cache, testGuest());
    power(cache, instanceIn(cache).spec, 'stopped');
    const why = { reason: 'StopForced', message: 'the guest did not power off within 30 s' };
    report(cache, testGuest({ state: 'stopped', ...why }), { sequence: 2, observedGeneration: 2 });
    const events = [...cache.list('event')].map(({ value }) => value.spec);
    expect(events).toContainEqual(expect.objectContaining({ type: 'Warning', ...why }));
    expect(instanceIn(cache).status.phase).toBe('Stopped');
  });

  it('holds only its disk', () => {
    expect(used(stopped())).toEqual({ VCPU: 0, MEMORY_MB: 0, DISK_GB: 5 });
  });

  it('gets its room back before its host may start it', () => {
    const cache = stopped();
    power(cache, instanceIn(cache).spec, 'running');
    expect(wantOn(cache)).toBe('stopped');
    commitPlan(cache, powerOn.reconcile(cache, key, ctx));
    expect(wantOn(cache)).toBe('running');
    expect(used(cache)).toEqual({ VCPU: 6, MEMORY_MB: 512, DISK_GB: 5 });
  });

  it('waits with the reason while others have its room, and goes on when they are gone', () => {
    const cache = stopped();
    commitPlan(cache, {
      changes: [{ key: 'instances/default/other', ifRevision: 0, value: testInstance('other', { cpus: 4 }) }],
    });
    commitPlan(
      cache,
      placement.reconcile(cache, 'instances/default/other', testContext({ newId: (prefix) => `${prefix}_o` })),
    );
    power(cache, instanceIn(cache).spec, 'running');
    commitPlan(cache, powerOn.reconcile(cache, key, testContext({ newId: (prefix) => `${prefix}_p` })));
    expect(wantOn(cache)).toBe('stopped');
    expect(instanceIn(cache).status.conditions.find((c) => c.type === 'Scheduled')).toMatchObject({
      status: 'False',
      message:
        'its disk is on h1, where there is no room for it to run: 6 CPUs asked, 4 free: needs 2 more; "berth host set h1 --overcommit VCPU=N" or "berth pool set POOL --cpu-ratio N" gives out more CPUs',
    });
    expect(powerOn.reconcile(cache, key, ctx).changes).toEqual([]);
    // One more that comes changes only the number.
    const third = testInstance('third', { cpus: 2 });
    commitPlan(cache, { changes: [{ key: 'instances/default/third', ifRevision: 0, value: third }] });
    commitPlan(
      cache,
      placement.reconcile(cache, 'instances/default/third', testContext({ newId: (prefix) => `${prefix}_t` })),
    );
    expect(powerOn.reconcile(cache, key, ctx).changes).toEqual([]);
    const other = cache.get('instance', 'instances/default/other')?.value.metadata.id ?? '';
    for (const allocation of cache.allocationsOfConsumer(other)) commitPlan(cache, { changes: release(allocation) });
    commitPlan(cache, powerOn.reconcile(cache, key, testContext({ newId: (prefix) => `${prefix}_q` })));
    expect(wantOn(cache)).toBe('running');
  });
});

describe('what a host should do', () => {
  it('is to run what is bound to it', () => expect(wantOn(placed())).toBe('running'));

  it('is to stop what its owner wants stopped, and to go on when not', () => {
    const cache = placed();
    const { spec } = instanceIn(cache);
    const replace = (powerState: 'running' | 'stopped') =>
      commitPlan(
        cache,
        replaceInstance(cache, { project: 'default', name: 'web', labels: {}, spec: { ...spec, powerState } }, ctx)
          .plan,
      );
    replace('stopped');
    expect(wantOn(cache)).toBe('stopped');
    report(cache, testGuest({ state: 'stopped' }));
    expect(instanceIn(cache).status.phase).toBe('Stopped');
    // Its host had not seen the newest spec yet: the room stays held.
    replace('running');
    expect(wantOn(cache)).toBe('running');
  });

  it('is to leave alone what failed or ended', () => {
    for (const state of ['failed', 'exited'] as const) {
      const cache = placed();
      report(cache, testGuest({ state }));
      expect(wantOn(cache)).toBe('stopped');
    }
  });
});
