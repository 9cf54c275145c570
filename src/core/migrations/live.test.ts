import { beforeEach, describe, expect, it } from 'vitest';
import type { Assignment, GuestStatus } from '../../api/agent-protocol.ts';
import type { LiveKind } from '../../api/resources/host.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { migration } from '../controllers/migration.ts';
import { assignmentOf } from '../operations/assignment.ts';
import { beginMigration, cancelMigration, showMigration } from '../operations/instances/migrate.ts';
import { replaceInstance } from '../operations/instance.ts';
import { applyReport } from '../operations/report.ts';
import { planHost } from '../plans/drain.ts';
import type { Cache } from '../state/cache.ts';
import type { Plan } from '../state/plan.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testContext, testFleet, testGuest, testInstance, testVolume } from '../testing.ts';

const names = { project: 'default', name: 'db' };
const alike: LiveKind = { machine: 'pc of QEMU 7.2', cpu: 'max', network: 'bridge' };
const key = (of: string): string => Array.from({ length: 32 }, () => of).join(':');
const live = { live: true };
let ids = 0;
const ctx = testContext({ newId: (prefix) => `${prefix}_${String(++ids).padStart(26, '0')}` });

function hostLike(kind: LiveKind | undefined, of: string) {
  const driver = { name: 'fake', available: true, offers: ['migration' as const] };
  const drivers = [{ ...driver, ...(kind === undefined ? {} : { live: kind }) }];
  return { status: { drivers, moveKey: key(of), takesMoves: true } };
}

function fleet(hosts: Parameters<typeof testFleet>[0], spec: Partial<InstanceSpec> = {}): Cache {
  const cache = testFleet(hosts);
  const room = { VCPU: 1, MEMORY_MB: 512 };
  const guest = testGuest({ state: 'running', ready: true });
  const status = { phase: 'Running' as const, host: 'a', incarnation: 1, assigned: room, observedGeneration: 1, guest };
  const instance = testInstance('db', spec, status);
  addRecord(cache, instance);
  const [provider] = cache.providersOfHost('a');
  const consumer = { id: instance.metadata.id, incarnation: 1, ...names };
  const amounts = { [provider?.value.id ?? '']: room };
  addRecord(cache, { kind: 'allocation', consumer, host: 'a', driver: 'fake', amounts });
  return cache;
}

const now = (cache: Cache): Instance => {
  const found = cache.get('instance', keys.instance('default', 'db'));
  if (!found) throw new Error('it is gone');
  return found.value;
};
const codes = (cache: Cache): string[] => showMigration(cache, names, live).obstacles.map(({ code }) => code);

describe('a live move', () => {
  let cache: Cache;
  let sequence = 0;

  beforeEach(() => {
    cache = fleet({ a: hostLike(alike, 'AA'), b: hostLike(alike, 'BB') });
  });

  const begin = (): void => {
    const { hash } = showMigration(cache, names, live);
    commitPlan(cache, beginMigration(cache, { ...names, options: live, hash }, ctx).plan);
  };
  const order = (host: string): Assignment | undefined => {
    const [allocation] = cache.allocationsOnHost(host);
    return allocation && assignmentOf(allocation, cache.get('instance', keys.instance('default', 'db')));
  };
  const decide = (): void => commitPlan(cache, migration.reconcile(cache, keys.instance('default', 'db'), ctx));
  const report = (host: string, incarnation: number, guest: GuestStatus): Plan => {
    const said = {
      instanceId: now(cache).metadata.id,
      incarnation,
      sequence: ++sequence,
      observedGeneration: 1,
      guest,
    };
    const { plan } = applyReport(cache, { host, epoch: 1, report: said }, ctx);
    commitPlan(cache, plan);
    return plan;
  };
  const incoming = (state: 'prepared' | 'received', change = {}): void => {
    const id = now(cache).status.migration?.id ?? '';
    report('b', 2, testGuest({ state: 'preparing', ready: false, incoming: { id, state, bytes: 0, ...change } }));
    decide();
  };

  it('lets the guest run on, and tells each side how it knows the other', () => {
    begin();
    expect(now(cache).status.migration).toMatchObject({ kind: 'live', direct: { from: key('AA'), to: key('BB') } });
    const at = { address: '10.0.0.2', port: 49_152 };
    incoming('prepared', { at });
    expect(order('a')).toMatchObject({
      want: 'running',
      migration: { role: 'outgoing', live: true, direct: { peer: key('BB'), at } },
    });
    expect(order('b')).toMatchObject({
      want: 'incoming',
      diskIncarnation: 1,
      migration: { role: 'incoming', live: true, copy: true, direct: { peer: key('AA') } },
    });
    incoming('received', { way: 'direct' });
    expect(now(cache).status).toMatchObject({
      host: 'b',
      incarnation: 2,
      diskIncarnation: 1,
      migration: { step: 'Finishing', way: 'direct' },
    });
    expect(order('a')).toMatchObject({ want: 'absent' });
    expect(order('b')).toMatchObject({ want: 'running' });
  });

  it('says how long the guest ran nowhere', () => {
    begin();
    incoming('prepared');
    incoming('received', { way: 'direct' });
    const id = now(cache).status.migration?.id ?? '';
    const guest = testGuest({ state: 'running', ready: true });
    const first = report('b', 2, { ...guest, movedLive: { id: 'mig_another', stoodStillMs: 1 } });
    const arrived = expect.objectContaining({ reason: 'Ready', message: 'ready, as it arrived' });
    expect(first.changes.map(({ value }) => value)).toContainEqual(expect.objectContaining({ spec: arrived }));
    expect(now(cache).status.migration?.stoodStillMs).toBeUndefined();
    const { changes } = report('b', 2, { ...guest, movedLive: { id, stoodStillMs: 153 } });
    expect(now(cache).status.migration).toMatchObject({ stoodStillMs: 153 });
    const message = 'it runs here, and stood still for 153 ms';
    expect(changes.map(({ value }) => value)).toContainEqual(
      expect.objectContaining({ spec: expect.objectContaining({ reason: 'MovedLive', message }) }),
    );
  });

  it('is ended in the store before the source may run the guest again, and its revision grows', () => {
    begin();
    incoming('prepared');
    const sent = order('a')?.revision ?? 0;
    commitPlan(cache, cancelMigration(cache, names, ctx).plan);
    expect(order('a')).toMatchObject({ want: 'running' });
    expect(order('a')?.migration).toBeUndefined();
    expect(order('a')?.revision).toBeGreaterThan(sent);
    expect(order('b')).toMatchObject({ want: 'absent' });
  });

  it('ends where the guest is to be stopped', () => {
    begin();
    incoming('prepared');
    const { metadata, spec } = now(cache);
    const change = { ...names, labels: metadata.labels, spec: { ...spec, powerState: 'stopped' as const } };
    commitPlan(cache, replaceInstance(cache, change, ctx).plan);
    expect(order('a')).toMatchObject({ want: 'running' }); // until the move has ended
    decide();
    expect(now(cache).status).toMatchObject({
      host: 'a',
      migration: { step: 'Failed', message: 'it is not to run any more' },
    });
    expect(order('a')).toMatchObject({ want: 'stopped' });
  });

  it('does not end on a target that has fallen silent', () => {
    begin();
    incoming('prepared');
    const host = cache.get('host', keys.host('b'));
    if (!host) throw new Error('no host b');
    const { conditions } = host.value.status;
    const silent = conditions.map((each) => (each.type === 'Ready' ? { ...each, status: 'False' as const } : each));
    const value = { ...host.value, status: { ...host.value.status, conditions: silent } };
    commitPlan(cache, { changes: [{ key: host.key, ifRevision: host.revision, value }] });
    incoming('received');
    expect(now(cache).status).toMatchObject({ host: 'a', migration: { step: 'Copying' } });
  });

  it('is another plan than a cold one', () => {
    const cold = showMigration(cache, names, {});
    const shown = showMigration(cache, names, live);
    expect([cold.kind, shown.kind, shown.way]).toEqual(['cold', 'live', 'direct']);
    expect(shown.hash).not.toBe(cold.hash);
  });
});

describe('what is in the way of a live move', () => {
  const b = hostLike(alike, 'BB');
  const at = (kind: LiveKind | undefined) => fleet({ a: hostLike(alike, 'AA'), b: hostLike(kind, 'BB') });

  it.each([
    ['OtherMachine', { ...alike, machine: 'pc of QEMU 8.2' }],
    ['OtherCpu', { ...alike, cpu: 'host 1234' }],
    ['OtherNetwork', { ...alike, network: 'nat' }],
    ['LiveUnable', undefined],
  ])('a target of another kind: %s', (code, kind) => {
    const { obstacles } = showMigration(at(kind), names, { live: true, to: 'b' });
    expect(obstacles).toEqual([{ code: 'NoHost', message: `host b does not take it: ${code}` }]);
  });

  it('of the guest and its host, all at once', () => {
    const volumes = { volumes: [{ name: 'data' }], powerState: 'suspended' as const };
    const cache = fleet({ a: hostLike({ ...alike, network: 'nat' }, 'AA'), b }, volumes);
    const { id } = now(cache).metadata;
    const status = {
      phase: 'Ready' as const,
      made: true,
      observedGeneration: 1,
      host: 'a',
      attachedTo: { instance: 'db', id },
    };
    const volume = { snapshots: [{ name: 'monday', createdAtMs: 1 }], sizeGiB: 1, state: 'ready' as const };
    addRecord(cache, testVolume('data', { sizeGiB: 1 }, { ...status, volume }));
    expect(codes(cache)).toEqual(['Suspended', 'NotRunning', 'NotBridge', 'VolumeStays', 'NoHost']);
  });

  it.each([
    ['a snapshot', { snapshots: ['monday'] }, {}, ['VolumeBusy', 'VolumeStays']],
    ['a file system', { format: 'filesystem' as const }, {}, ['VolumeStays']],
    ['read-only', {}, { readOnly: true }, ['VolumeStays']],
    ['nothing', {}, {}, []],
  ])('a volume, for %s', (_why, spec, attached, expected) => {
    const cache = fleet({ a: hostLike(alike, 'AA'), b }, { volumes: [{ name: 'data', ...attached }] });
    const attachedTo = { instance: 'db', id: now(cache).metadata.id };
    const status = { phase: 'Ready' as const, made: true, observedGeneration: 1, host: 'a', attachedTo };
    addRecord(cache, testVolume('data', { sizeGiB: 1, ...spec }, status));
    expect(codes(cache)).toEqual(expected);
  });

  it('a target that the source cannot reach', () => {
    const { takesMoves: _not, ...closed } = b.status;
    expect(codes(fleet({ a: hostLike(alike, 'AA'), b: { status: closed } }))).toEqual(['Relayed']);
  });
});

describe('a drain', () => {
  const options = { stopOthers: false, movesMax: 2, deadlineMs: 3_600_000, atDeadline: 'leave' as const };
  const planned = (cache: Cache) => planHost(cache, { verb: 'drain', host: 'a', options }, ctx).guests[0];

  it('moves live where another host is alike, and cold elsewhere', () => {
    const cold = { ...alike, machine: 'pc of QEMU 8.2' };
    const c = { ...hostLike(alike, 'CC') };
    const mixed = planned(fleet({ a: hostLike(alike, 'AA'), b: hostLike(cold, 'BB'), c }));
    expect(mixed).toMatchObject({ action: 'move', target: 'c', reasons: [{ code: 'Live' }] });
    const { id } = now(fleet({ a: hostLike(alike, 'AA') })).metadata;
    const withVolume = fleet({ a: hostLike(alike, 'AA'), c }, { volumes: [{ name: 'data' }] });
    const attachedTo = { instance: 'db', id };
    const volume = { snapshots: [{ name: 'monday', createdAtMs: 1 }], sizeGiB: 1, state: 'ready' as const };
    const status = { phase: 'Ready' as const, made: true, observedGeneration: 1, host: 'a', attachedTo, volume };
    addRecord(withVolume, testVolume('data', { sizeGiB: 1 }, status));
    expect(planned(withVolume)?.reasons[0]?.message).toContain('(volume data has snapshots');
    const other = planned(fleet({ a: hostLike(alike, 'AA'), b: hostLike(cold, 'BB') }));
    expect(other).toMatchObject({ action: 'move', target: 'b', reasons: [{ code: 'Cold' }] });
  });
});
