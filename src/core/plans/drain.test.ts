import { describe, expect, it } from 'vitest';
import type { DrainOptions } from '../../api/plans/host-plan.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import type { Metadata } from '../../api/resources/metadata.ts';
import { bind } from '../controllers/bind.ts';
import { requestOf } from '../scheduler/request.ts';
import { schedule } from '../scheduler/schedule.ts';
import type { Cache } from '../state/cache.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testContext, testFleet, testInstance, testVolume } from '../testing.ts';
import { planHost } from './drain.ts';

const options: DrainOptions = { stopOthers: false, movesMax: 2, deadlineMs: 3_600_000, atDeadline: 'leave' };
const ctx = testContext();

function place(cache: Cache, name: string, spec: Partial<InstanceSpec> = {}, meta: Partial<Metadata> = {}): void {
  addRecord(cache, testInstance(name, spec, {}, meta));
  const instance = cache.get('instance', keys.instance('default', name));
  if (!instance) throw new Error(`no instance ${name}`);
  const request = requestOf(cache, instance.value);
  const placed = schedule(cache, request);
  if (!placed.placed) throw new Error(`${name} fits nowhere`);
  commitPlan(cache, bind(cache, [{ instance, request, placed }], {}, ctx));
  const bound = cache.get('instance', instance.key);
  if (bound) commitPlan(cache, { changes: [instanceStatusChange(bound, { ...bound.value.status, phase: 'Running' })] });
}

/** It is placed there first, as the host is named. */
const on = (host: string): Partial<InstanceSpec> => ({ placement: { hostLabels: { host } } });
const status = { drivers: [{ name: 'fake', available: true, offers: ['migration' as const] }] };
const three = {
  a: { labels: { host: 'a' }, status },
  b: { labels: { host: 'b' }, status },
  c: { labels: { host: 'c' }, status },
};

describe('what happens to each instance of a drained host', () => {
  const rows: readonly [string, Partial<InstanceSpec>, Partial<DrainOptions>, string, string[]][] = [
    ['one that runs moves', { placement: {} }, {}, 'move', ['Cold']],
    ['one that no other host takes stays', {}, {}, 'stays', ['NoHost']],
    ['one that cannot move stays', { powerState: 'suspended' }, {}, 'stays', ['Suspended']],
    [
      'the same is stopped when that is allowed',
      { powerState: 'suspended' },
      { stopOthers: true },
      'stop',
      ['Suspended'],
    ],
    ['one with a lifetime ends', { ttlMs: 60_000 }, {}, 'ends', ['Expires']],
  ];
  it.each(rows)('%s', (_name, spec, changed, action, codes) => {
    const cache = testFleet(three);
    place(cache, 'web', { ...on('a'), ...spec });
    const { guests } = planHost(cache, { verb: 'drain', host: 'a', options: { ...options, ...changed } }, ctx);
    expect(guests.map((guest) => [guest.action, guest.reasons.map(({ code }) => code)])).toEqual([[action, codes]]);
  });

  it('names every obstacle at once', () => {
    const cache = testFleet(three);
    const { id } = testInstance('db').metadata;
    addRecord(cache, testVolume('data', {}, { host: 'a', phase: 'Creating', attachedTo: { instance: 'db', id } }));
    place(cache, 'db', { ...on('a'), powerState: 'suspended', volumes: [{ name: 'data' }] });
    const [guest] = planHost(cache, { verb: 'drain', host: 'a', options }, ctx).guests;
    expect(guest?.reasons.map(({ code }) => code)).toEqual(['Suspended', 'VolumeBusy']);
  });
});

describe('the hash', () => {
  const hashOf = (cache: Cache, changed: Partial<DrainOptions> = {}, nowMs = 1_000_000): string =>
    planHost(cache, { verb: 'drain', host: 'a', options: { ...options, ...changed } }, testContext({ nowMs })).hash;

  it('does not depend on time, nor on what happens on other hosts', () => {
    const cache = testFleet(three);
    place(cache, 'web', on('a'));
    const before = hashOf(cache);
    place(cache, 'other', on('b'));
    expect(hashOf(cache, {}, 2_000_000)).toBe(before);
  });

  it('depends on the options and on what is on the host', () => {
    const cache = testFleet(three);
    place(cache, 'web', on('a'));
    const before = hashOf(cache);
    expect(hashOf(cache, { movesMax: 3 })).not.toBe(before);
    place(cache, 'more', on('a'));
    expect(hashOf(cache)).not.toBe(before);
  });
});

it('refuses a host that is not there', () => {
  expect(() => planHost(testFleet(three), { verb: 'drain', host: 'z', options }, ctx)).toThrow('there is no host "z"');
});

describe('a host that is gone', () => {
  const rows: readonly [string, Partial<InstanceSpec>, string, string | undefined][] = [
    ['one that restarts starts elsewhere', { restartPolicy: 'OnFailure' }, 'restart', 'b'],
    ['one that does not is lost', {}, 'fails', undefined],
    ['so is one whose disk is to be kept', { restartPolicy: 'Always', restart: { disk: 'kept' } }, 'fails', undefined],
  ];
  it.each(rows)('%s', (_name, spec, action, target) => {
    const cache = testFleet({ a: three.a, b: three.b });
    place(cache, 'web', spec);
    const [guest] = planHost(cache, { verb: 'evacuate', host: 'a', options }, ctx).guests;
    expect([guest?.action, guest?.target]).toEqual([action, target]);
  });
});
