// Snapshots of a volume at times, over days: which are made, kept and skipped.

import { expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { type Volume, VolumeSpec } from '../../api/resources/volume.ts';
import { createVolume, replaceVolume } from '../operations/volumes/volume.ts';
import { applyVolumeReport } from '../operations/volumes/volume-report.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { commitPlan, testCache, testContext, testHost } from '../testing.ts';
import { volumeSnapshots } from './volume-snapshots.ts';

const hour = 3_600_000;
const day = 24 * hour;
const bornMs = Date.parse('2026-11-26T12:00Z');
const key = keys.volume('default', 'data');
let ids = 0;
const at = (nowMs: number) => testContext({ nowMs, newId: (prefix) => `${prefix}_${++ids}` });

const daily = { cron: '0 3 * * *', keep: 2 };
const inputOf = (spec: object) => ({
  ...{ project: 'default', name: 'data', labels: {} },
  spec: parse(VolumeSpec, { sizeGiB: 10, host: 'h1', ...spec }, 'spec'),
});

const volumeOf = (cache: Cache): Volume => cache.get('volume', key)?.value ?? expect.unreachable();
const told = (cache: Cache): string[] =>
  [...cache.list('event')].map(({ value }) => value.spec.reason).filter((reason) => reason === 'SnapshotSkipped');

let sequence = 0;
/** Its host has done what it was asked for. */
function report(cache: Cache, nowMs: number): void {
  const { metadata, spec, status } = volumeOf(cache);
  const snapshots = spec.snapshots.map((name) => ({ name, createdAtMs: nowMs }));
  const volume = { state: 'ready' as const, sizeGiB: spec.sizeGiB, snapshots };
  const said = { volumeId: metadata.id, sequence: ++sequence, observedGeneration: metadata.generation, volume };
  commitPlan(cache, applyVolumeReport(cache, { host: status.host ?? '', epoch: 1, report: said }, at(nowMs)).plan);
}

function make(spec: object, diskGiB = 100): Cache {
  const cache = testCache(testHost('h1', { capacity: { VCPU: 8, MEMORY_MB: 8_192, DISK_GB: diskGiB } }));
  commitPlan(cache, createVolume(cache, inputOf(spec), at(bornMs)).plan);
  report(cache, bornMs);
  return cache;
}

/** From then on, at the times that the controller asks for; a host reports after each, or is silent. */
function pass(cache: Cache, [fromMs, untilMs]: readonly [number, number], reports = true): void {
  for (let nowMs = fromMs, turns = 0; nowMs <= untilMs; turns++) {
    if (turns > 1_000) throw new Error('the controller asks for no time to come');
    const plan = volumeSnapshots.reconcile(cache, key, at(nowMs));
    commitPlan(cache, plan);
    if (plan.changes.length > 0 && reports) report(cache, nowMs);
    if (plan.changes.length === 0) nowMs += plan.requeueAfterMs ?? Number.POSITIVE_INFINITY;
  }
}

it('makes one at each time, and keeps the newest and those of the user', () => {
  const cache = make({ snapshotSchedule: daily, snapshots: ['mine'] });
  expect(volumeOf(cache).status.snapshotTimes?.nextMs).toBe(bornMs + 15 * hour);
  pass(cache, [bornMs, bornMs + 3 * day]);
  expect(volumeOf(cache).spec.snapshots).toEqual(['mine', 'auto-202611280300', 'auto-202611290300']);
  expect(told(cache)).toEqual([]);
});

it('makes up only the newest that was missed', () => {
  const cache = make({ snapshotSchedule: daily });
  pass(cache, [bornMs + 3 * day, bornMs + 3 * day]);
  expect(volumeOf(cache).spec.snapshots).toEqual(['auto-202611290300']);
});

it('skips a time while the previous snapshot is not created', () => {
  const cache = make({ snapshotSchedule: daily });
  pass(cache, [bornMs, bornMs + 2 * day], false);
  expect(volumeOf(cache).spec.snapshots).toEqual(['auto-202611270300']);
  expect(told(cache)).toEqual(['SnapshotSkipped']);
});

it('says that the host has no room', () => {
  const cache = make({ snapshotSchedule: daily }, 15);
  pass(cache, [bornMs, bornMs + day]);
  expect(volumeOf(cache).spec.snapshots).toEqual([]);
  expect(volumeOf(cache).status.conditions.find(({ type }) => type === 'SnapshotSchedule')?.message).toMatch(
    /host h1 has no room for 10 GiB more/,
  );
});

it('keeps its snapshots when a changed spec does not name them, and leaves them when it ends', () => {
  const cache = make({ snapshotSchedule: daily });
  pass(cache, [bornMs, bornMs + day]);
  const replace = (spec: object): void => {
    commitPlan(cache, replaceVolume(cache, inputOf(spec), at(bornMs + day)).plan);
  };
  replace({ snapshotSchedule: { ...daily, keep: 3 } });
  expect(volumeOf(cache).spec.snapshots).toEqual(['auto-202611270300']);
  replace({ snapshots: ['auto-202611270300'] });
  expect(volumeOf(cache).spec.snapshots).toEqual(['auto-202611270300']);
  expect(volumeOf(cache).status.snapshotTimes).toBeUndefined();
  replace({});
  expect(volumeOf(cache).spec.snapshots).toEqual([]);
});

it.each([
  [{ ...daily, cron: '0 25 * * *' }, 'spec.snapshotSchedule.cron'],
  [{ ...daily, timeZone: 'Nowhere' }, 'spec.snapshotSchedule.timeZone'],
])('refuses the schedule %j', (snapshotSchedule, field) => {
  expect(() => make({ snapshotSchedule })).toThrow(expect.objectContaining({ field }));
});
