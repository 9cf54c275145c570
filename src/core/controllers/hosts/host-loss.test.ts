import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { isToRestart } from '../../../api/instances/restart-rule.ts';
import { holdsOnlyDisk } from '../../ledger/ledger.ts';
import { heartbeat } from '../../operations/host.ts';
import { declareDown } from '../../operations/hosts/declare-down.ts';
import { applyReport } from '../../operations/report.ts';
import type { Cache } from '../../state/cache.ts';
import { commitPlan, testCache, testContext, testGuest, testHost, testImage, testInstance } from '../../testing.ts';
import type { Controller } from '../controller.ts';
import { hostHealth } from './host-health.ts';
import { hostLoss } from './host-loss.ts';
import { lostHost } from './lost-host.ts';
import { placement } from '../placement.ts';
import { restart } from '../restart.ts';

const key = 'instances/default/web';
let idCount = 0;
const startMs = 1_000_000;

/** The instance runs on h1, whose agent is silent from the start. h2 is heard. */
function lost(spec: Partial<InstanceSpec>) {
  const clock = { nowMs: startMs };
  const at = () =>
    testContext({ nowMs: clock.nowMs, monotonicMs: clock.nowMs, newId: (prefix) => `${prefix}_l${++idCount}` });
  const cache = testCache([testImage(), ...testHost('h1'), testInstance('web', spec)], () => clock.nowMs);
  commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, at()).plan);
  const step = (controller: Controller, of: string) => {
    const plan = controller.reconcile(cache, of, at());
    commitPlan(cache, plan);
    return plan;
  };
  step(placement, key);
  const { id } = instanceIn(cache).metadata;
  const sent = { instanceId: id, incarnation: 1, sequence: 1, observedGeneration: 1, guest: testGuest({}) };
  commitPlan(cache, applyReport(cache, { host: 'h1', epoch: 1, report: sent }, at()).plan);
  clock.nowMs += 60_001;
  step(hostHealth, 'hosts/h1');
  step(lostHost, key);
  return { cache, clock, step, at };
}

const instanceIn = (cache: Cache) => cache.get('instance', key)?.value ?? expect.unreachable();
const stateIn = (cache: Cache) => cache.get('host', 'hosts/h1')?.value.status.state;

describe('host loss', () => {
  it('takes a silent host to be down at the deadline, from when it was last heard', () => {
    const { cache, clock, step } = lost({});
    expect(stateIn(cache)).toEqual({ name: 'Unknown', sinceMs: clock.nowMs });
    expect(step(hostHealth, 'hosts/h1')).toMatchObject({ changes: [], requeueAfterMs: 240_001 });
    clock.nowMs += 240_000;
    step(hostHealth, 'hosts/h1');
    expect(stateIn(cache)).toEqual({ name: 'Down', sinceMs: clock.nowMs });
    expect(step(hostHealth, 'hosts/h1').changes).toEqual([]);
  });

  it('ends with the next heartbeat', () => {
    const { cache, clock, step, at } = lost({});
    clock.nowMs += 240_000;
    step(hostHealth, 'hosts/h1');
    commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, at()).plan);
    step(hostHealth, 'hosts/h1');
    expect(cache.get('host', 'hosts/h1')?.value.status.down).toBeUndefined();
    expect(stateIn(cache)).toEqual({ name: 'Ready', sinceMs: clock.nowMs });
  });

  const rules: [string, Partial<InstanceSpec>, string, string][] = [
    ['replaces at the deadline', { onHostLoss: 'replace' }, 'Failed HostLost', 'Pending HostReplaced'],
    ['waits for the host', { onHostLoss: 'wait', restartPolicy: 'OnFailure' }, 'Failed HostLost', 'Failed HostLost'],
    ['fails for good', { onHostLoss: 'fail', restartPolicy: 'OnFailure' }, 'Failed HostLost', 'Failed HostDown'],
    ['goes by the restart policy', { restartPolicy: 'OnFailure' }, 'Pending Restarting', 'Pending Restarting'],
    ['needs a proof', { onHostLoss: 'replace', exclusive: true }, 'Failed HostLost', 'Failed HostLost'],
  ];
  it.each(rules)('%s', (_, spec, before, after) => {
    const { cache, clock, step } = lost(spec);
    const told = () => {
      const { phase, conditions } = instanceIn(cache).status;
      return `${phase} ${conditions.find(({ type }) => type === 'Running')?.reason}`;
    };
    clock.nowMs += 20_000;
    for (const controller of [hostLoss, restart]) step(controller, key);
    expect(told()).toBe(before);
    clock.nowMs += 220_000;
    step(hostHealth, 'hosts/h1');
    for (const controller of [hostLoss, restart]) step(controller, key);
    expect(told()).toBe(after);
  });
});

describe('an instance that failed with its host', () => {
  it('is not restarted when the host reports it, running or ended, and keeps no more than its disk', () => {
    const { cache, clock, step, at } = lost({ onHostLoss: 'fail', restartPolicy: 'OnFailure' });
    clock.nowMs += 240_000;
    step(hostHealth, 'hosts/h1');
    step(hostLoss, key);
    const { id } = instanceIn(cache).metadata;
    const reasons = (['running', 'stopped'] as const).map((state, index) => {
      const guest = testGuest({ state });
      const sent = { instanceId: id, incarnation: 1, sequence: 2 + index, observedGeneration: 1, guest };
      commitPlan(cache, applyReport(cache, { host: 'h1', epoch: 1, report: sent }, at()).plan);
      clock.nowMs += 60_000;
      step(restart, key);
      const { phase, conditions } = instanceIn(cache).status;
      return `${phase} ${conditions.find(({ type }) => type === 'Running')?.reason}`;
    });
    expect(reasons).toEqual(['Failed HostDown', 'Failed FailedWithHost']);
    expect(isToRestart(instanceIn(cache))).toBe(false);
    const held = [...cache.allocationsOnHost('h1')].map(({ value }) => holdsOnlyDisk(value));
    expect(held).toEqual([true]);
  });
});

describe('mass loss', () => {
  const down = (names: readonly string[], of: number) => {
    const clock = { nowMs: startMs };
    const all = Array.from({ length: of }, (_, index) => `h${index + 1}`);
    const cache = testCache(
      [testImage(), ...all.flatMap((name) => testHost(name)), testInstance('web', { onHostLoss: 'replace' })],
      () => clock.nowMs,
    );
    const at = () =>
      testContext({ nowMs: clock.nowMs, monotonicMs: clock.nowMs, newId: (prefix) => `${prefix}_m${++idCount}` });
    const beat = (name: string) => {
      const plan = heartbeat(cache, { name, heartbeat: { epoch: 1 } }, at()).plan;
      return commitPlan(cache, plan);
    };
    all.forEach(beat);
    for (const waitMs of [60_001, 240_001]) {
      clock.nowMs += waitMs;
      for (const name of all) if (!names.includes(name)) beat(name);
      for (const name of all) commitPlan(cache, hostHealth.reconcile(cache, `hosts/${name}`, at()));
    }
    const heldOf = (name: string) => {
      const until = cache.get('host', `hosts/${name}`)?.value.status.down?.heldUntilMs;
      return until === undefined ? undefined : until - clock.nowMs;
    };
    const alarms = [...cache.list('event')].filter(({ value }) => value.spec.reason === 'MassLoss').length;
    return { held: names.map(heldOf), alarms };
  };

  it('holds the replacements of three hosts of nine, and then begins with one host a minute', () => {
    expect(down(['h1', 'h2', 'h3'], 9)).toEqual({ held: [600_000, 660_000, 720_000], alarms: 1 });
  });

  it.each([
    ['two hosts of two', ['h1', 'h2'], 2],
    ['three hosts of ten', ['h1', 'h2', 'h3'], 10],
  ])('holds nothing for %s', (_, names, of) => {
    expect(down(names, of)).toEqual({ held: names.map(() => undefined), alarms: 0 });
  });
});

describe('a declaration', () => {
  it('is a proof for an exclusive instance, and is refused while the host is heard', () => {
    const { cache, step, at } = lost({ exclusive: true, onHostLoss: 'replace', selfStop: true });
    commitPlan(cache, declareDown(cache, { name: 'h1', reason: 'power is off' }, at()).plan);
    step(hostLoss, key);
    expect(instanceIn(cache).status).toMatchObject({
      phase: 'Pending',
      replaced: { host: 'h1', incarnation: 1, proof: { kind: 'operator' } },
    });
    commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, at()).plan);
    step(hostHealth, 'hosts/h1');
    expect(() => declareDown(cache, { name: 'h1', reason: '' }, at())).toThrow('host "h1" is Ready');
  });
});

describe('an agent that stops', () => {
  it('closes its host at once, loses no instance, and only its next session opens the host', () => {
    const cache = testCache([testImage(), ...testHost('h1'), testInstance('web')]);
    const at = () => testContext({ newId: (prefix) => `${prefix}_s${++idCount}` });
    const beat = (notReady?: { stopping: boolean; message: string }) =>
      commitPlan(
        cache,
        heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1, ...(notReady ? { notReady } : {}) } }, at()).plan,
      );
    commitPlan(cache, placement.reconcile(cache, key, at()));
    beat({ stopping: true, message: 'stopped' });
    expect(stateIn(cache)?.name).toBe('NotReady');
    beat();
    commitPlan(cache, hostHealth.reconcile(cache, 'hosts/h1', at()));
    commitPlan(cache, lostHost.reconcile(cache, key, at()));
    expect(stateIn(cache)?.name).toBe('NotReady');
    expect(instanceIn(cache).status.phase).toBe('Scheduled');
  });
});

describe('self-stop', () => {
  const opted = { exclusive: true, onHostLoss: 'replace', selfStop: true } as const;
  /** Down at the deadline; the lease of its host is 60 s, and its device waits 30 s. */
  const downWith = (watchdogMs: number | undefined) => {
    const world = lost(opted);
    const { cache, clock, step } = world;
    const host = cache.get('host', 'hosts/h1') ?? expect.unreachable();
    const watchdog = watchdogMs === undefined ? {} : { watchdogMs, leaseMs: 60_000 };
    const value = { ...host.value, status: { ...host.value.status, ...watchdog } };
    commitPlan(cache, { changes: [{ key: host.key, ifRevision: host.revision, value }] });
    clock.nowMs += 240_000;
    step(hostHealth, 'hosts/h1');
    step(hostHealth, 'hosts/h1');
    step(hostLoss, key);
    return world;
  };

  it('is a proof when the lease and the time of the device are over, recorded before the replacement', () => {
    const { cache } = downWith(30_000);
    expect(cache.get('host', 'hosts/h1')?.value.status.down?.proof?.kind).toBe('self-stop');
    expect(instanceIn(cache).status).toMatchObject({ phase: 'Pending', replaced: { proof: { kind: 'self-stop' } } });
  });

  it('proves nothing on a host without a watchdog device', () => {
    const { cache } = downWith(undefined);
    expect(instanceIn(cache).status.phase).toBe('Failed');
  });

  it('waits for a slow device', () => {
    // (60 s + 2 s + 600 s) × 1.25 + 10 s = 837.5 s after the lease was lost, of which 240 s are over.
    const { cache, clock, step } = downWith(600_000);
    expect(instanceIn(cache).status.phase).toBe('Failed');
    expect(step(hostHealth, 'hosts/h1').requeueAfterMs).toBe(597_501);
    clock.nowMs += 597_501;
    step(hostHealth, 'hosts/h1');
    step(hostLoss, key);
    expect(instanceIn(cache).status.phase).toBe('Pending');
  });
});
