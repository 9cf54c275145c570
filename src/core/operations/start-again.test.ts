import { beforeEach, describe, expect, it } from 'vitest';
import type { GuestStatus } from '../../api/agent-protocol.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { powerOn } from '../controllers/power-on.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { commitPlan, testCache, testContext, testGuest, testHost, testImage, testInstance } from '../testing.ts';
import { assignmentOf } from './assignment.ts';
import { replaceInstance } from './instance.ts';
import { applyReport } from './report.ts';

const key = 'instances/default/web';
const ctx = testContext();
const firstRun = { startedAtMs: 5000, phases: [{ name: 'start', startedAtMs: 4900, durationMs: 100 }] };

let cache: Cache;
let sequence = 0;

const web = (): Instance => cache.get('instance', key)?.value ?? expect.unreachable();

function report(guest: Partial<GuestStatus>): void {
  const { metadata, status } = web();
  const sent = {
    instanceId: metadata.id,
    incarnation: status.incarnation,
    sequence: ++sequence,
    observedGeneration: metadata.generation,
    guest: testGuest(guest),
  };
  commitPlan(cache, applyReport(cache, { host: 'h1', epoch: 1, report: sent }, ctx).plan);
}

function change(spec: Partial<InstanceSpec>): void {
  const { spec: before, metadata } = web();
  const input = { project: 'default', name: 'web', spec: { ...before, ...spec }, labels: metadata.labels };
  commitPlan(cache, replaceInstance(cache, input, ctx).plan);
}

const start = (): void => change({ powerState: 'running', starts: (web().spec.starts ?? 0) + 1 });

const wanted = (): string => {
  const allocation = cache.get('allocation', keys.allocation(web().metadata.id, web().status.incarnation));
  return allocation ? assignmentOf(allocation, cache.get('instance', key)).want : 'nothing';
};

const heldCpus = (): number => cache.usedBy('host_000000000000000000000000h1').get('VCPU') ?? 0;

beforeEach(() => {
  cache = testCache([testImage(), ...testHost('h1'), testInstance('web', { diskGiB: 5, cpus: 2 })]);
  commitPlan(cache, placement.reconcile(cache, key, ctx));
});

describe('an instance that is to start again', () => {
  it.each<[GuestStatus['state'], string]>([
    ['exited', 'Exited'],
    ['failed', 'Failed'],
  ])('is as a stopped one when its guest had %s: it gets its room back first, then starts', (state, phase) => {
    report({ state: 'running', ...firstRun });
    report({ state, message: 'that was it', ...firstRun });
    expect([web().status.phase, wanted(), heldCpus()]).toEqual([phase, 'stopped', 0]);
    start();
    expect([web().status.phase, wanted(), heldCpus()]).toEqual(['Stopped', 'stopped', 0]);
    report({ state, ...firstRun }); // reported again, as in each session
    expect(web().status.phase).toBe('Stopped');
    commitPlan(cache, powerOn.reconcile(cache, key, ctx));
    expect([wanted(), heldCpus()]).toEqual(['running', 2]);
    report({ state, ...firstRun });
    expect([web().status.phase, heldCpus()]).toEqual(['Stopped', 2]);
    report({ state: 'running', ...firstRun, startedAtMs: 9000 });
    expect([web().status.phase, web().status.incarnation]).toEqual(['Running', 1]);
  });

  it('ends again when that run ends, and starts as often as it is asked', () => {
    for (const startedAtMs of [5000, 6000, 7000]) {
      report({ state: 'running', ...firstRun, startedAtMs });
      report({ state: 'exited', ...firstRun, startedAtMs });
      expect([web().status.phase, wanted(), heldCpus()]).toEqual(['Exited', 'stopped', 0]);
      start();
      commitPlan(cache, powerOn.reconcile(cache, key, ctx));
      expect([web().status.startAgain, wanted()]).toEqual([
        { order: web().spec.starts, endedRunAtMs: startedAtMs },
        'running',
      ]);
    }
  });

  it('has failed when it could not be started, and keeps its disk for the next try', () => {
    report({ state: 'exited', ...firstRun });
    start();
    commitPlan(cache, powerOn.reconcile(cache, key, ctx));
    report({ state: 'failed', reason: 'HypervisorFailed', phases: firstRun.phases });
    expect([web().status.phase, heldCpus()]).toEqual(['Failed', 0]);
    start();
    expect(web().status).toMatchObject({ phase: 'Stopped', startAgain: { order: 2, endedRunAtMs: 5000 } });
  });

  it('is placed again when its guest never ran', () => {
    report({ state: 'failed', reason: 'ImageUnavailable', message: 'no such image' });
    start();
    expect(web().status).toMatchObject({ phase: 'Pending', incarnation: 1 });
    commitPlan(cache, placement.reconcile(cache, key, ctx));
    expect(web().status).toMatchObject({ phase: 'Scheduled', incarnation: 2, host: 'h1' });
  });

  it('is left alone when it runs, and not started at its end', () => {
    report({ state: 'running', ...firstRun });
    start();
    expect(web().status.phase).toBe('Running');
    report({ state: 'exited', ...firstRun });
    expect([web().status.phase, wanted()]).toEqual(['Exited', 'stopped']);
  });

  it('never forgets how often it was asked, whatever an older client sends', () => {
    report({ state: 'exited', ...firstRun });
    start();
    change({ starts: 0, priority: 3 });
    expect(web().spec).toMatchObject({ starts: 1, priority: 3 });
  });

  it('is refused where its guest may run unseen, and where nothing is left of its disk', () => {
    report({ state: 'running', ...firstRun });
    report({ state: 'failed', reason: 'RecordDamaged', message: 'its record cannot be read' });
    expect(start).toThrow('instance "web" cannot start again: its record cannot be read');
    const { status } = web();
    const { host: _host, guest: _guest, ...preempted } = status;
    cache = testCache([testInstance('web', {}, preempted)]);
    expect(start).toThrow('its disk no longer exists, so remove it and run a new one');
    const unknown = {
      type: 'Running',
      status: 'Unknown',
      reason: 'HostLost',
      message: 'host h1 is silent',
      sinceMs: 0,
    };
    cache = testCache([testInstance('web', {}, { ...status, conditions: [{ ...unknown, status: 'Unknown' }] })]);
    expect(start).toThrow('cannot start again: host h1 is silent; its guest may still run');
  });
});
