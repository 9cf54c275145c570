import { describe, expect, it } from 'vitest';
import type { VolumeSeen } from '../../../api/agent-protocol.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Container } from '../../../api/resources/container.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Volume, VolumeSpec } from '../../../api/resources/volume.ts';
import { garbage } from '../../controllers/garbage.ts';
import { placement } from '../../controllers/placement.ts';
import { volume as volumeController } from '../../controllers/volume.ts';
import { keys } from '../../state/keys.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testImage,
  testProject,
  type TestHost,
} from '../../testing.ts';
import { assignmentOf } from '../assignment.ts';
import { createInstance, deleteInstance, replaceInstance } from '../instance.ts';
import { restoredRecord } from '../restored-record.ts';
import { createVolume, deleteVolume, replaceVolume } from './volume.ts';
import { volumeAssignmentOf } from './volume-assignment.ts';
import { applyVolumeReport } from './volume-report.ts';

const smallest: Record<string, TestHost> = { h1: {}, h2: {} };

function fleet(hosts: Record<string, TestHost> = smallest, records: Parameters<typeof testCache>[0] = []) {
  const cache = testCache([
    testImage(),
    testImage('box', { format: 'container', source: 'docker://registry.test/box:1' }),
    ...Object.entries(hosts).flatMap(([name, host]) => testHost(name, host)),
    ...records,
  ]);
  const ctx = testContext();
  const project = 'default';
  let sequence = 0;
  const volumeKey = (name: string) => keys.volume(project, name);
  const instanceKey = (name: string) => keys.instance(project, name);
  const all = {
    cache,
    ctx,
    volume: (name = 'data') => cache.get('volume', volumeKey(name))?.value,
    instance: (name = 'web') => cache.get('instance', instanceKey(name))?.value,
    make: (spec: Partial<VolumeSpec> = {}, name = 'data') =>
      commitPlan(
        cache,
        createVolume(cache, { project, name, labels: {}, spec: { sizeGiB: 10, snapshots: [], ...spec } }, ctx).plan,
      ),
    change: (spec: Partial<VolumeSpec>, name = 'data') => {
      const before = all.volume(name) ?? expect.unreachable();
      commitPlan(
        cache,
        replaceVolume(cache, { project, name, labels: {}, spec: { ...before.spec, ...spec } }, ctx).plan,
      );
    },
    remove: (name = 'data') => commitPlan(cache, deleteVolume(cache, { project, name }, ctx).plan),
    run: (spec: Partial<InstanceSpec> = {}, name = 'web') => {
      const whole: InstanceSpec = {
        image: 'tiny',
        powerState: 'running',
        restartPolicy: 'Never',
        exclusive: false,
        placement: {},
        ports: [],
        sshKeys: [],
        userData: '',
        stopGraceMs: 0,
        ...spec,
      };
      commitPlan(cache, createInstance(cache, { project, name, labels: {}, spec: whole }, ctx).plan);
      commitPlan(cache, placement.reconcile(cache, instanceKey(name), ctx));
    },
    give: (volumes: InstanceSpec['volumes'], name = 'web') => {
      const { volumes: _, ...spec } = all.instance(name)?.spec ?? expect.unreachable();
      const input = { project, name, labels: {}, spec: volumes ? { ...spec, volumes } : spec };
      commitPlan(cache, replaceInstance(cache, input, ctx).plan);
    },
    tell: (
      seen: Partial<VolumeSeen> | 'absent',
      name = 'data',
      generation = all.volume(name)?.metadata.generation ?? 0,
      at = ++sequence,
    ) => {
      const { metadata, status } = all.volume(name) ?? expect.unreachable();
      const volume =
        seen === 'absent'
          ? ({ state: 'absent' } as const)
          : { state: 'ready' as const, sizeGiB: 10, snapshots: [], ...seen };
      const report = { volumeId: metadata.id, sequence: at, observedGeneration: generation, volume };
      const decided = applyVolumeReport(cache, { host: status.host ?? '', epoch: 1, report }, ctx);
      commitPlan(cache, decided.plan);
      return decided.result;
    },
    look: (name = 'data') => commitPlan(cache, volumeController.reconcile(cache, volumeKey(name), ctx)),
    disk: (host: string) => cache.usedBy(testHost(host)[1].id).get('DISK_GB') ?? 0,
    order: (name = 'data') => {
      const entry = cache.get('volume', volumeKey(name));
      const [allocation] = cache.allocationsOfConsumer(entry?.value.metadata.id ?? '');
      return allocation && volumeAssignmentOf(allocation, entry, (_, other) => all.volume(other));
    },
    assigned: (name = 'web') => {
      const entry = cache.get('instance', instanceKey(name));
      const [allocation] = cache.allocationsOfConsumer(entry?.value.metadata.id ?? '');
      return allocation && assignmentOf(allocation, entry, undefined, (_, other) => all.volume(other));
    },
  };
  return all;
}

function refusal(act: () => void): { code: string; field: string | undefined; message: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code, field: error.field, message: error.message };
    throw error;
  }
  return expect.unreachable('nothing was refused');
}

describe('a volume', () => {
  it('waits for an instance, goes with it to a host with room for both, and holds its own room there', () => {
    const all = fleet({ h1: { capacity: { VCPU: 8, MEMORY_MB: 8192, DISK_GB: 12 } }, h2: {} });
    all.make({ sizeGiB: 10 });
    expect(all.volume()?.status).toMatchObject({ phase: 'Pending' });
    all.run({ diskGiB: 5, volumes: [{ name: 'data' }] });
    expect(all.instance()?.status).toMatchObject({ host: 'h2', assigned: { DISK_GB: 5 } });
    expect(all.volume()?.status).toMatchObject({ phase: 'Creating', host: 'h2', attachedTo: { instance: 'web' } });
    expect(all.disk('h2')).toBe(15);
    expect(all.order()).toMatchObject({ want: 'present', sizeGiB: 10, snapshots: [], made: false });
    expect(all.assigned()?.volumes).toEqual([{ volumeId: all.volume()?.metadata.id, name: 'data', readOnly: false }]);
    expect(all.tell({})).toBe('accepted');
    expect(all.volume()?.status).toMatchObject({ phase: 'Ready', made: true });
  });

  it('is as its host said last, also when that was said before', () => {
    const all = fleet();
    all.make({ host: 'h1' });
    expect(all.tell({}, 'data', 1, 4)).toBe('accepted');
    expect(all.tell({}, 'data', 1, 6)).toBe('accepted');
    expect(all.tell({ sizeGiB: 5 }, 'data', 1, 5)).toBe('stale');
    expect(all.volume()?.status).toMatchObject({ phase: 'Ready', volume: { sizeGiB: 10 }, report: { sequence: 6 } });
  });

  it('outlives its instance, and draws the next one to its host', () => {
    const all = fleet();
    all.make({ host: 'h2' });
    expect(all.disk('h2')).toBe(10);
    all.run({ volumes: [{ name: 'data' }] });
    expect(all.instance()?.status.host).toBe('h2');
    commitPlan(all.cache, deleteInstance(all.cache, { project: 'default', name: 'web' }, all.ctx).plan);
    for (const { key, revision } of all.cache.allocationsOfConsumer(all.instance()?.metadata.id ?? ''))
      commitPlan(all.cache, { changes: [{ key, ifRevision: revision, value: null }] });
    commitPlan(all.cache, garbage.reconcile(all.cache, keys.instance('default', 'web'), all.ctx));
    expect(all.instance()).toBeUndefined();
    all.look();
    expect(all.volume()?.status.attachedTo).toBeUndefined();
    expect(all.disk('h2')).toBe(10);
    all.run({ volumes: [{ name: 'data' }] }, 'next');
    expect(all.instance('next')?.status.host).toBe('h2');
  });

  it('makes its instance wait with the reason where its host has no room for that', () => {
    const all = fleet({ h1: { capacity: { VCPU: 1, MEMORY_MB: 8192, DISK_GB: 50 } }, h2: {} });
    all.make({ host: 'h1' });
    all.run({ cpus: 2, volumes: [{ name: 'data' }] });
    expect(all.instance()?.status.conditions[0]?.message).toMatch(
      /^0 of 2 hosts: 1 InsufficientCpu, 1 VolumeElsewhere; /,
    );
  });

  it('belongs to one instance at a time', () => {
    const all = fleet();
    all.make();
    all.run({ volumes: [{ name: 'data' }] });
    expect(refusal(() => all.run({ volumes: [{ name: 'data' }] }, 'other'))).toMatchObject({
      code: 'Conflict',
      field: 'spec.volumes[0].name',
      message: 'volume "data" is attached to instance "web"; "berth volume detach data" detaches it',
    });
    expect(refusal(() => all.remove()).message).toMatch(/^volume "data" is attached to instance "web"/);
  });

  it('comes and goes while its instance runs, and takes its room on the host of that', () => {
    const all = fleet();
    all.run();
    all.make();
    const host = all.instance()?.status.host ?? '';
    all.give([{ name: 'data', readOnly: true }]);
    expect(all.volume()?.status).toMatchObject({ host, phase: 'Creating', attachedTo: { instance: 'web' } });
    expect(all.disk(host)).toBe(10);
    expect(all.assigned()).toMatchObject({ generation: 2, volumes: [{ name: 'data', readOnly: true }] });
    all.give(undefined);
    expect(all.volume()?.status.attachedTo).toBeUndefined();
    expect(all.assigned()?.volumes).toBeUndefined();
    expect(all.disk(host)).toBe(10);
  });

  it('is not attached where it is not, nor where it does not fit', () => {
    const all = fleet({ h1: { capacity: { VCPU: 8, MEMORY_MB: 8192, DISK_GB: 20 } }, h2: { spec: { paused: true } } });
    all.run();
    all.make({ host: 'h2' });
    all.make({ sizeGiB: 30 }, 'large');
    expect(refusal(() => all.give([{ name: 'data' }])).message).toBe(
      'volume "data" is on host h2, and instance "web" on host h1; a volume stays where it is',
    );
    expect(refusal(() => all.give([{ name: 'large' }])).message).toMatch(
      /^host h1 has no room for 30 GiB more of volume large: /,
    );
    expect(all.volume('large')?.status).toMatchObject({ phase: 'Pending' });
  });

  it('takes its room when it grows or is given snapshots, and gives it back when its host has removed them', () => {
    const all = fleet({ h1: {} });
    all.make({ host: 'h1' });
    all.tell({});
    all.change({ sizeGiB: 20, snapshots: ['before'] });
    expect(all.disk('h1')).toBe(40);
    expect(all.order()).toMatchObject({ sizeGiB: 20, snapshots: ['before'], generation: 2, made: true });
    expect(refusal(() => all.change({ sizeGiB: 60 })).message).toMatch(/^host h1 has no room for 80 GiB more/);
    all.tell({ sizeGiB: 20, snapshots: [{ name: 'before', createdAtMs: 1 }] });
    all.change({ snapshots: [] });
    expect(all.disk('h1')).toBe(40);
    all.tell({ sizeGiB: 20, snapshots: [{ name: 'before', createdAtMs: 1 }] }, 'data', 2);
    expect(all.disk('h1')).toBe(40);
    all.tell({ sizeGiB: 20 });
    expect(all.disk('h1')).toBe(20);
  });

  it('can be made of a snapshot, which is kept until it is', () => {
    const all = fleet();
    all.make({ host: 'h1', snapshots: ['gold'] });
    const copy = { source: { volume: 'data', snapshot: 'gold' } };
    expect(refusal(() => all.make(copy, 'copy')).message).toBe(
      'snapshot "gold" of volume "data" has not been created yet',
    );
    all.tell({ snapshots: [{ name: 'gold', createdAtMs: 1 }] });
    expect(refusal(() => all.make({ ...copy, sizeGiB: 9 }, 'copy')).field).toBe('spec.sizeGiB');
    all.make(copy, 'copy');
    expect(all.volume('copy')?.status.host).toBe('h1');
    expect(all.order('copy')).toMatchObject({ source: { volumeId: all.volume()?.metadata.id, snapshot: 'gold' } });
    expect(refusal(() => all.change({ snapshots: [] })).code).toBe('Conflict');
    expect(refusal(() => all.remove()).code).toBe('Conflict');
    all.tell({}, 'copy');
    all.change({ snapshots: [] });
  });

  it('is gone with its room when its host has removed it, at once when it is on none', () => {
    const all = fleet();
    all.make();
    all.remove();
    expect(all.volume()).toBeUndefined();
    all.make({ host: 'h1' });
    all.remove();
    expect(all.volume()?.status.phase).toBe('Deleting');
    expect(all.order()?.want).toBe('absent');
    all.look();
    expect(all.volume()?.status.phase).toBe('Deleting');
    expect(all.tell('absent')).toBe('accepted');
    expect(all.disk('h1')).toBe(0);
    all.look();
    expect(all.volume()).toBeUndefined();
  });

  it('is believed absent only where that is wanted', () => {
    const all = fleet();
    all.make({ host: 'h1' });
    expect(all.tell('absent')).toBe('stale');
    expect(all.disk('h1')).toBe(10);
  });

  it('fails with its host when it was made, and waits for another when it was not', () => {
    for (const made of [true, false]) {
      const all = fleet();
      all.make();
      all.run({ volumes: [{ name: 'data' }], placement: { hostLabels: {} } });
      const host = all.volume()?.status.host ?? '';
      if (made) all.tell({});
      const entry = all.cache.get('host', keys.host(host)) ?? expect.unreachable();
      commitPlan(all.cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] });
      all.look();
      if (!made) expect(all.volume()?.status.phase).toBe('Creating'); // until its room is released
      for (const { key } of [...all.cache.allocationsOnHost(host)])
        commitPlan(all.cache, garbage.reconcile(all.cache, key, all.ctx));
      all.look();
      expect(all.volume()?.status).toMatchObject(made ? { phase: 'Failed', host } : { phase: 'Pending' });
      expect(all.volume()?.status.conditions[0]?.reason).toBe('HostRemoved');
    }
  });

  const bad: readonly [string, (all: ReturnType<typeof fleet>) => void, string, RegExp][] = [
    ['an unknown host', (all) => all.make({ host: 'h3' }, 'x'), 'spec.host', /there is no host "h3"; did you mean/],
    [
      'an unknown volume',
      (all) => all.run({ volumes: [{ name: 'date' }] }),
      'spec.volumes[0].name',
      /did you mean "data"/,
    ],
    [
      'one named twice',
      (all) => all.run({ volumes: [{ name: 'data' }, { name: 'data' }] }),
      'spec.volumes[1].name',
      /twice/,
    ],
    [
      'a disk for containers',
      (all) => all.run({ image: 'box', volumes: [{ name: 'data' }] }),
      'spec.volumes[0].name',
      /"data" is a disk for virtual machines, and image "box" is of containers/,
    ],
    [
      'a source that is not',
      (all) => all.make({ source: { volume: 'no', snapshot: 'x' } }, 'c'),
      'spec.source.volume',
      /no volume "no"/,
    ],
    [
      'a snapshot that is not',
      (all) => all.make({ source: { volume: 'data', snapshot: 'x' } }, 'c'),
      'spec.source.snapshot',
      /it has none/,
    ],
    ['a smaller size', (all) => all.change({ sizeGiB: 5 }), 'spec.sizeGiB', /cannot shrink/],
    ['another host', (all) => all.change({ host: 'h2' }), 'spec.host', /cannot be changed/],
    ['another format', (all) => all.change({ format: 'filesystem' }), 'spec.format', /cannot be changed/],
    [
      'a file system on a host whose agent makes none',
      (all) => all.make({ format: 'filesystem', host: 'h1' }, 'files'),
      'spec.host',
      /makes no volumes for containers/,
    ],
  ];
  it('with a file system is for containers that mount it, and stays with them', () => {
    const all = fleet();
    all.make({ format: 'filesystem' });
    expect(refusal(() => all.run({ volumes: [{ name: 'data' }] })).message).toMatch(/is a file system for containers/);
    const container = { name: 'main', env: {}, ports: [] };
    const run = (mounts: NonNullable<Container['mounts']>) =>
      all.run({ image: 'box', volumes: [{ name: 'data' }], containers: [{ ...container, mounts }] }, 'web');
    expect(refusal(() => run([{ volume: 'date', path: '/data' }])).message).toMatch(/spec\.volumes must name it/);
    run([{ volume: 'data', path: '/data' }]);
    expect(refusal(() => all.run({ image: 'box', volumes: [{ name: 'data' }] }, 'two')).message).toMatch(
      /attached to|no container/,
    );
  });

  it.each(bad)('refuses %s, naming the field', (_, act, field, message) => {
    const all = fleet();
    all.make();
    const { revision } = all.cache;
    const told = refusal(() => act(all));
    expect(told.field).toBe(field);
    expect(told.message).toMatch(message);
    expect(all.cache.revision).toBe(revision);
  });

  it('counts towards the quota of its project with its snapshots', () => {
    const all = fleet(smallest, [testProject('default', { quota: { DISK_GB: 25 } })]);
    all.make();
    all.change({ snapshots: ['one'] });
    expect(refusal(() => all.make({ sizeGiB: 6 }, 'more')).code).toBe('QuotaExceeded');
    expect(refusal(() => all.change({ snapshots: ['one', 'two'] })).code).toBe('QuotaExceeded');
    all.make({ sizeGiB: 5 }, 'more');
    all.remove('more');
    all.make({ sizeGiB: 5 }, 'again');
  });

  it('keeps after a restore what its host made since the backup', () => {
    const all = fleet({ h1: {} });
    all.make({ host: 'h1' });
    all.tell({});
    const backup = restoredRecord(all.volume() ?? expect.unreachable(), { nowMs: 2_000_000, newestSession: 1 });
    addRecord(all.cache, backup ?? expect.unreachable());
    expect(all.order()?.want).toBe('kept');
    const snapshots = [{ name: 'later', createdAtMs: 1 }];
    expect(all.tell({ sizeGiB: 12, snapshots })).toBe('accepted');
    expect(all.volume()?.spec).toMatchObject({ sizeGiB: 12, snapshots: ['later'] } satisfies Partial<Volume['spec']>);
    expect(all.disk('h1')).toBe(24);
    expect(all.order()?.want).toBe('present');
  });
});
