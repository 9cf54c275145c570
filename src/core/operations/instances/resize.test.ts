import { describe, expect, it } from 'vitest';
import type { ResizeOptions } from '../../../api/plans/resize-plan.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import { bind } from '../../controllers/bind.ts';
import { placedAnew } from '../../controllers/restart.ts';
import { requestOf } from '../../scheduler/request.ts';
import { schedule } from '../../scheduler/schedule.ts';
import type { Cache } from '../../state/cache.ts';
import { instanceStatusChange } from '../../state/instance-change.ts';
import { keys } from '../../state/keys.ts';
import { addRecord, commitPlan, testContext, testFleet, testGuest, testInstance } from '../../testing.ts';
import { assignmentOf } from '../assignment.ts';
import { applyReport } from '../report.ts';
import { beginResize, showResize } from './resize.ts';

const ctx = testContext();
const named = { project: 'default', name: 'web' };
let sequence = 0;

/** One instance that runs on host a, of 8 CPUs (32 with overcommitment), 16 GiB and 100 GiB. */
function running(spec: Partial<InstanceSpec> = {}, offers: 'resize'[] = ['resize']): Cache {
  const drivers = [{ name: 'fake', available: true, runs: true, offers }];
  const cache = testFleet({
    a: { labels: { host: 'a' }, status: { drivers } },
    b: { status: { drivers }, capacity: { VCPU: 64, MEMORY_MB: 65_536, DISK_GB: 500 } },
  });
  const placement = { hostLabels: { host: 'a' } };
  addRecord(cache, testInstance('web', { cpus: 2, memoryMiB: 4_096, diskGiB: 10, placement, ...spec }));
  place(cache);
  report(cache, 'running');
  return cache;
}

function place(cache: Cache): void {
  const instance = entryOf(cache);
  const request = requestOf(cache, instance.value);
  const placed = schedule(cache, request);
  if (!placed.placed) throw new Error('it fits nowhere');
  commitPlan(cache, bind(cache, [{ instance, request, placed }], {}, ctx));
}

const entryOf = (cache: Cache) => {
  const entry = cache.get('instance', keys.instance('default', 'web'));
  if (!entry) throw new Error('no instance');
  return entry;
};
const allocationOf = (cache: Cache) => {
  const { metadata, status } = entryOf(cache).value;
  const entry = cache.get('allocation', keys.allocation(metadata.id, status.incarnation));
  if (!entry) throw new Error('no allocation');
  return entry;
};
const held = (cache: Cache) => Object.values(allocationOf(cache).value.amounts)[0];

function report(cache: Cache, state: 'running' | 'stopped', resized?: number): void {
  const { metadata, status } = entryOf(cache).value;
  const guest = testGuest({ state, ready: state === 'running', ...(resized === undefined ? {} : { resized }) });
  const told = {
    ...{ instanceId: metadata.id, incarnation: status.incarnation, sequence: ++sequence },
    ...{ observedGeneration: metadata.generation, guest },
  };
  commitPlan(cache, applyReport(cache, { host: 'a', epoch: 1, report: told }, ctx).plan);
}

function begin(cache: Cache, options: ResizeOptions): void {
  const { hash } = showResize(cache, named, options);
  commitPlan(cache, beginResize(cache, { ...named, options, hash }, ctx).plan);
}

describe('a resize', () => {
  it('holds the larger of both amounts until its host has done it', () => {
    const cache = running();
    begin(cache, { cpus: 4, memoryMiB: 1_024, diskGiB: 20 });
    expect(held(cache)).toEqual({ VCPU: 4, MEMORY_MB: 4_096, DISK_GB: 20 });
    const { status, spec } = entryOf(cache).value;
    expect([spec.cpus, spec.memoryMiB, spec.diskGiB]).toEqual([4, 1_024, 20]);
    expect(status.resize).toEqual({ order: 1, pending: true });
    const assignment = assignmentOf(allocationOf(cache), entryOf(cache));
    expect(assignment).toMatchObject({ want: 'running', cpus: 4, memoryMiB: 1_024, diskGiB: 20, resized: 1 });
    report(cache, 'stopped'); // on the way: its room stays its own
    expect(held(cache)).toEqual({ VCPU: 4, MEMORY_MB: 4_096, DISK_GB: 20 });
    report(cache, 'running', 1);
    expect(held(cache)).toEqual({ VCPU: 4, MEMORY_MB: 1_024, DISK_GB: 20 });
    expect(entryOf(cache).value.status.resize).toEqual({ order: 1, pending: false });
  });

  it('of a stopped instance holds its disk only', () => {
    const cache = running();
    const entry = entryOf(cache);
    const spec = { ...entry.value.spec, powerState: 'stopped' as const };
    const stopped: Instance = { ...entry.value, spec };
    commitPlan(cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value: stopped }] });
    report(cache, 'stopped');
    begin(cache, { cpus: 8, diskGiB: 30 });
    expect(held(cache)).toEqual({ DISK_GB: 30 });
    expect(entryOf(cache).value.status.assigned).toEqual({ VCPU: 8, MEMORY_MB: 4_096, DISK_GB: 30 });
  });

  it('is done by the next guest of an instance that is placed again', () => {
    const cache = running();
    begin(cache, { cpus: 4, memoryMiB: 1_024 });
    const lost = entryOf(cache);
    const status = placedAnew(lost.value.status, { reason: 'HostReplaced', message: 'its host is lost' }, ctx);
    commitPlan(cache, { changes: [instanceStatusChange(lost, status)] });
    expect(entryOf(cache).value.status.resize).toEqual({ order: 1, pending: false });
    place(cache);
    expect(held(cache)).toEqual({ VCPU: 4, MEMORY_MB: 1_024, DISK_GB: 10 });
    expect(assignmentOf(allocationOf(cache), entryOf(cache))).toMatchObject({ cpus: 4, memoryMiB: 1_024, resized: 1 });
  });

  const rows: readonly [string, ResizeOptions, string[]][] = [
    ['a smaller disk', { diskGiB: 5 }, ['DiskShrinks']],
    ['more than the host has', { memoryMiB: 32_768 }, ['NoRoom']],
    ['both', { memoryMiB: 32_768, diskGiB: 5 }, ['DiskShrinks', 'NoRoom']],
  ];
  it.each(rows)('lists what is in its way: %s', (_name, options, codes) => {
    const plan = showResize(running(), named, options);
    expect(plan.obstacles.map(({ code }) => code)).toEqual(codes);
  });

  it('names hosts that have the room', () => {
    const cache = running({ placement: {} });
    const { host } = entryOf(cache).value.status;
    const plan = showResize(cache, named, { diskGiB: 400 });
    expect(plan.wouldFit).toEqual(host === 'b' ? [] : ['b']);
  });

  it('is refused with every obstacle, and by an old hash', () => {
    const cache = running({}, []);
    const { hash } = showResize(cache, named, { diskGiB: 5 });
    expect(() => beginResize(cache, { ...named, options: { diskGiB: 5 }, hash }, ctx)).toThrow(
      /cannot be resized: guests of the driver fake .* cannot be resized; its disk has 10 GiB/,
    );
    const able = running();
    const before = showResize(able, named, { cpus: 4 });
    begin(able, { cpus: 3 });
    report(able, 'running', 1);
    expect(() => beginResize(able, { ...named, options: { cpus: 4 }, hash: before.hash }, ctx)).toThrow(
      'no longer as it was shown',
    );
  });

  it('is not begun while one is under way, and not without amounts', () => {
    const cache = running();
    begin(cache, { cpus: 3 });
    expect(showResize(cache, named, { cpus: 4 }).obstacles.map(({ code }) => code)).toContain('Resizing');
    expect(() => showResize(cache, named, {})).toThrow('must say what is to change');
    expect(() => showResize(cache, named, { size: 'none' })).toThrow('there is no size "none"');
  });
});
