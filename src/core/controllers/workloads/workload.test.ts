// Workloads on a small fleet: what is created and removed as guests become ready, fail, and hosts are lost.

import { describe, expect, it } from 'vitest';
import type { Host } from '../../../api/resources/host.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import type { WorkloadSpec } from '../../../api/resources/workload.ts';
import { deleteInstance } from '../../operations/instance.ts';
import { historyOf } from '../../operations/workloads/revisions.ts';
import { createWorkload, deleteWorkload, replaceWorkload, undoWorkload } from '../../operations/workloads/workload.ts';
import { keys } from '../../state/keys.ts';
import {
  commitPlan,
  testCache,
  testContext,
  testGuest,
  testHost,
  testImage,
  testProject,
  testWorkloadSpec,
} from '../../testing.ts';
import { garbage } from '../garbage.ts';
import { placement } from '../placement.ts';
import { workload } from './workload.ts';
import { settle } from './test-settle.ts';

const key = keys.workload('default', 'web');

class Scene {
  readonly cache;
  #nowMs = 1_000_000;
  readonly #ctx = testContext();
  /** Whether a guest becomes ready. */
  isGood: (instance: Instance) => boolean = () => true;

  constructor(...more: Parameters<typeof testCache>[0]) {
    const hosts = ['h1', 'h2'].flatMap((name) => testHost(name, { capacity: { VCPU: 16, MEMORY_MB: 65_536 } }));
    this.cache = testCache([testImage(), testImage('broken'), ...hosts, ...more]);
  }

  get ctx() {
    return { ...this.#ctx, nowMs: this.#nowMs };
  }

  create(spec: Partial<WorkloadSpec> = {}, instance: Partial<InstanceSpec> = {}): this {
    const input = { project: 'default', name: 'web', labels: {}, spec: testWorkloadSpec(spec, instance) };
    commitPlan(this.cache, createWorkload(this.cache, input, this.ctx).plan);
    return this.settle();
  }

  replace(change: (spec: WorkloadSpec) => WorkloadSpec): this {
    const { spec } = this.cache.get('workload', key)?.value ?? { spec: testWorkloadSpec() };
    const input = { project: 'default', name: 'web', labels: {}, spec: change(spec) };
    commitPlan(this.cache, replaceWorkload(this.cache, input, this.ctx).plan);
    return this.settle();
  }

  image(image: string): this {
    return this.replace((spec) => ({
      ...spec,
      template: { ...spec.template, spec: { ...spec.template.spec, image } },
    }));
  }

  /** Controllers and hosts act until nothing changes. */
  settle(): this {
    settle(this.cache, { controllers: [workload, placement, garbage], ctx: this.ctx, agents: () => this.#agents() });
    return this;
  }

  /** Guests start at once, and go at once. */
  #agents(): boolean {
    let changed = false;
    for (const { key: at, value, revision } of [...this.cache.list('instance')]) {
      if (value.metadata.deletionRequestedAtMs !== undefined) {
        const allocation = this.cache.get('allocation', keys.allocation(value.metadata.id, value.status.incarnation));
        if (!allocation) continue;
        commitPlan(this.cache, { changes: [{ key: allocation.key, ifRevision: allocation.revision, value: null }] });
        changed = true;
      } else if (value.status.host !== undefined && value.status.phase === 'Scheduled') {
        this.put(at, revision, { ...value, status: { ...value.status, ...this.#started(value) } });
        changed = true;
      }
    }
    return changed;
  }

  #started(instance: Instance): Partial<Instance['status']> {
    const ready = this.isGood(instance);
    return {
      phase: 'Running',
      runningAtMs: this.#nowMs,
      guest: testGuest({ ready }),
      ...(ready ? { readyAtMs: this.#nowMs } : {}),
    };
  }

  put(at: string, ifRevision: number, value: Instance): void {
    commitPlan(this.cache, { changes: [{ key: at, ifRevision, value }] });
  }

  fail(name: string): this {
    const entry = this.cache.get('instance', keys.instance('default', name));
    if (entry)
      this.put(entry.key, entry.revision, { ...entry.value, status: { ...entry.value.status, phase: 'Failed' } });
    return this.settle();
  }

  after(ms: number): this {
    this.#nowMs += ms;
    return this.settle();
  }

  /** In small steps, as time passes. */
  during(ms: number): this {
    for (let left = ms; left > 0; left -= 1_000) this.after(1_000);
    return this;
  }

  get copies(): readonly Instance[] {
    return [...this.cache.list('instance')]
      .map(({ value }) => value)
      .filter(({ metadata }) => metadata.deletionRequestedAtMs === undefined);
  }

  get revisions(): readonly (number | undefined)[] {
    return this.copies.map(({ status }) => status.workload?.revision).toSorted();
  }

  get workload() {
    return this.cache.get('workload', key)?.value;
  }

  get said(): string | undefined {
    return this.workload?.status.conditions[0]?.message;
  }
}

describe('a workload', () => {
  it('has as many copies as are wanted, each with its ordinal', () => {
    const scene = new Scene().create();
    expect(scene.copies.map(({ status }) => status.workload?.ordinal).toSorted()).toEqual([0, 1, 2]);
    expect(scene.copies.every(({ metadata }) => metadata.labels['berth/workload'] === 'web')).toBe(true);
    expect(scene.after(1_000).workload?.status).toMatchObject({
      wanted: 3,
      copies: 3,
      ready: 3,
      available: 3,
      stableRevision: 1,
    });
    expect(scene.said).toBe('all 3 copies are available');
  });

  it('writes nothing while all is as wanted', () => {
    const scene = new Scene().create().after(1_000);
    for (let i = 0; i < 3; i++) expect(workload.reconcile(scene.cache, key, scene.ctx).changes).toEqual([]);
  });

  it('grows and shrinks', () => {
    const scene = new Scene().create().after(1_000);
    expect(scene.replace((spec) => ({ ...spec, replicas: 5 })).copies).toHaveLength(5);
    expect(scene.replace((spec) => ({ ...spec, replicas: 0 })).copies).toHaveLength(0);
  });

  it('replaces a copy that failed, later each time', () => {
    const scene = new Scene().create({ replicas: 1 }).after(1_000);
    const nameOf = () => scene.copies[0]?.metadata.name ?? '';
    const first = nameOf();
    expect(scene.fail(first).copies).toHaveLength(0);
    expect(scene.after(9_999).copies).toHaveLength(0);
    expect(scene.after(1).copies).toHaveLength(1);
    const second = nameOf();
    expect(second).not.toBe(first);
    expect(scene.fail(second).after(19_999).copies).toHaveLength(0);
    expect(scene.after(1).copies.map(({ status }) => status.workload?.ordinal)).toEqual([0]);
  });

  describe('while a Plan is not committed yet', () => {
    it('creates a copy only if the removal of another one holds', () => {
      const scene = new Scene().create().after(1_000);
      const [gone] = scene.copies;
      const at = keys.instance('default', gone?.metadata.name ?? '');
      const removal = scene.cache.assume({
        changes: [{ key: at, ifRevision: scene.cache.get('instance', at)?.revision ?? 0, value: null }],
      });
      const plan = workload.reconcile(scene.cache, key, scene.ctx);
      expect(plan.changes.some(({ value }) => value?.kind === 'instance')).toBe(true);
      expect(plan.conditions).toEqual([{ key: at, ifRevision: 0 }]);
      if (!removal.ok) throw new Error('the removal does not hold');
      scene.cache.confirm(removal, scene.cache.revision + 1);
      expect(workload.reconcile(scene.cache, key, scene.ctx).conditions).toEqual([]);
    });

    it('creates a copy for one that leaves a silent host only if that host is found to be silent', () => {
      const scene = new Scene()
        .create({ strategy: { ...testWorkloadSpec().strategy, maxSurge: 0, maxUnavailable: 1 } })
        .after(1_000);
      const [first] = scene.copies;
      const at = keys.instance('default', first?.metadata.name ?? '');
      commitPlan(
        scene.cache,
        deleteInstance(scene.cache, { project: 'default', name: first?.metadata.name ?? '' }, scene.ctx).plan,
      );
      const host = scene.cache.get('host', keys.host(first?.status.host ?? ''));
      if (!host) throw new Error('it has no host');
      const [silent] = testHost(host.value.metadata.name, { ready: false });
      const change = scene.cache.assume({ changes: [{ key: host.key, ifRevision: host.revision, value: silent }] });
      if (!change.ok) throw new Error('the change of the host does not hold');
      const plan = workload.reconcile(scene.cache, key, scene.ctx);
      expect(scene.cache.get('instance', at)?.value.status.phase).toBe('Deleting');
      expect(plan.changes.some(({ value }) => value?.kind === 'instance' && value.status.phase === 'Pending')).toBe(
        true,
      );
      expect(plan.conditions).toEqual([{ key: host.key, ifRevision: -change.token }]);
    });

    it('removes a ready copy only if the report that another one is ready holds', () => {
      const scene = new Scene().create({ replicas: 2 }).after(1_000);
      scene.isGood = () => false;
      const fresh = scene.image('broken').copies.find(({ status }) => status.workload?.revision === 2);
      if (!fresh) throw new Error('there is no copy of the update');
      const at = keys.instance('default', fresh.metadata.name);
      const status = { ...fresh.status, guest: testGuest({ ready: true }), readyAtMs: scene.ctx.nowMs };
      const ifRevision = scene.cache.get('instance', at)?.revision ?? 0;
      const report = scene.cache.assume({ changes: [{ key: at, ifRevision, value: { ...fresh, status } }] });
      if (!report.ok) throw new Error('the report does not hold');
      const later = { ...scene.ctx, nowMs: scene.ctx.nowMs + 1_000 };
      const plan = workload.reconcile(scene.cache, key, later);
      const removed = plan.changes.flatMap(({ value }) =>
        value?.kind === 'instance' && value.status.phase === 'Deleting' ? [value.metadata.name] : [],
      );
      expect(removed).toHaveLength(1);
      expect(plan.conditions).toEqual([{ key: at, ifRevision: -report.token }]);
    });
  });

  it('is updated copy by copy', () => {
    const scene = new Scene().create().after(1_000).image('broken');
    expect(scene.revisions).toEqual([1, 1, 1, 2]);
    expect(scene.after(1_000).revisions).toEqual([1, 1, 2, 2]);
    scene.during(5_000);
    expect(scene.revisions).toEqual([2, 2, 2]);
    expect(scene.workload?.status).toMatchObject({ revision: 2, stableRevision: 2, available: 3 });
  });

  it('goes back, once, when an update makes no progress', () => {
    const scene = new Scene().create().after(1_000);
    scene.isGood = ({ spec }) => spec.image !== 'broken';
    scene.image('broken').during(30_000);
    expect([scene.revisions, scene.workload?.status.ready]).toEqual([[1, 1, 1, 2], 3]);
    scene.during(40_000);
    expect(scene.revisions).toEqual([3, 3, 3]);
    expect(scene.workload?.spec.template.spec.image).toBe('tiny');
    expect(scene.workload?.status).toMatchObject({ revision: 3, stableRevision: 3, available: 3 });
    const reasons = [...scene.cache.list('event')].map(({ value }) => value.spec.reason);
    expect(reasons.filter((reason) => reason === 'UpdateFailed')).toHaveLength(1);
  });

  it('stands still when it may not go back', () => {
    const { strategy } = testWorkloadSpec();
    const scene = new Scene().create({ strategy: { ...strategy, autoRevert: false } }).after(1_000);
    scene.isGood = ({ spec }) => spec.image !== 'broken';
    scene.image('broken').during(70_000);
    expect([scene.revisions, scene.said]).toEqual([
      [1, 1, 1, 2],
      'no progress within the deadline: 1 of 3 copies updated; 3 of all 4 available',
    ]);
  });

  it('keeps an update from going on while it is paused', () => {
    const scene = new Scene().create().after(1_000);
    scene
      .replace((spec) => ({ ...spec, paused: true }))
      .image('broken')
      .during(70_000);
    expect(scene.revisions).toEqual([1, 1, 1]);
    scene.fail(scene.copies[0]?.metadata.name ?? '').during(20_000);
    expect(scene.revisions).toEqual([1, 1, 1]);
    expect(scene.replace((spec) => ({ ...spec, paused: false })).during(10_000).revisions).toEqual([2, 2, 2]);
  });

  it('returns to an earlier template by undo, under a new number', () => {
    const scene = new Scene().create().after(1_000).image('broken').during(5_000);
    commitPlan(scene.cache, undoWorkload(scene.cache, { key }, scene.ctx).plan);
    scene.settle().during(5_000);
    expect([scene.revisions, scene.workload?.spec.template.spec.image]).toEqual([[3, 3, 3], 'tiny']);
    expect(scene.workload && historyOf(scene.cache, scene.workload).map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(() => undoWorkload(scene.cache, { key, to: 9 }, scene.ctx)).toThrow(
      'has no earlier revision 9; earlier revisions that it keeps: 1, 2',
    );
  });

  it('does not go back to a revision that never had a copy', () => {
    const scene = new Scene().create().after(1_000);
    scene.isGood = ({ spec }) => spec.image !== 'broken';
    scene.replace((spec) => ({ ...spec, replicas: 0 })).image('broken');
    expect(scene.workload?.status).toMatchObject({ revision: 2, stableRevision: 1 });
    scene.replace((spec) => ({ ...spec, replicas: 2 })).during(70_000);
    expect([scene.workload?.spec.template.spec.image, scene.workload?.status.available]).toEqual(['tiny', 2]);
  });

  it('keeps the copies that have the template of an undo already', () => {
    const scene = new Scene().create().after(1_000);
    scene.isGood = ({ spec }) => spec.image !== 'broken';
    scene.image('broken').during(5_000);
    const good = scene.copies.filter(({ spec }) => spec.image === 'tiny').map(({ metadata }) => metadata.id);
    commitPlan(scene.cache, undoWorkload(scene.cache, { key }, scene.ctx).plan);
    scene.settle().during(5_000);
    expect([scene.revisions, scene.copies.map(({ metadata }) => metadata.id).toSorted()]).toEqual([
      [3, 3, 3],
      good.toSorted(),
    ]);
  });

  it('starts no update when a release adds a default to templates', () => {
    const scene = new Scene().create().after(1_000);
    const entry = scene.cache.get('workload', key);
    if (!entry) throw new Error('there is no workload');
    // As an older release stored it: without a field that has a default.
    const { ports: _ports, ...older } = entry.value.spec.template.spec;
    const template = { ...entry.value.spec.template, spec: older as InstanceSpec }; // a field is missing on purpose
    const value = { ...entry.value, spec: { ...entry.value.spec, template } };
    commitPlan(scene.cache, { changes: [{ key, ifRevision: entry.revision, value }] });
    scene.replace((spec) => ({ ...spec, template: { ...template, spec: { ...template.spec, ports: [] } } }));
    expect([scene.workload?.status.revision, scene.revisions]).toEqual([1, [1, 1, 1]]);
  });

  it('keeps the newest ten revisions and the stable one', () => {
    const scene = new Scene().create().after(1_000);
    scene.isGood = () => false;
    for (let build = 1; build <= 14; build++)
      scene.replace((spec) => ({ ...spec, template: { ...spec.template, labels: { build: String(build) } } }));
    const kept = () =>
      [...scene.cache.list('workloadRevision')].map(({ value }) => value.number).toSorted((a, b) => a - b);
    expect(kept()).toEqual([1, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    expect(scene.workload && historyOf(scene.cache, scene.workload).map(({ number }) => number)).toEqual(kept());
    scene.isGood = () => true;
    for (const { metadata } of scene.copies) scene.fail(metadata.name);
    scene.during(60_000);
    expect([scene.workload?.status.stableRevision, kept()]).toEqual([15, [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]);
  });

  it('has one copy on each host, if it is asked to', () => {
    const scene = new Scene().create({ replicas: 1, perHost: true });
    expect(scene.copies.map(({ status }) => status.host).toSorted()).toEqual(['h1', 'h2']);
    for (const record of testHost('h3', { capacity: { VCPU: 16, MEMORY_MB: 65_536 } }))
      commitPlan(scene.cache, {
        changes: [
          { key: record.kind === 'host' ? keys.host('h3') : keys.provider(record.id), ifRevision: 0, value: record },
        ],
      });
    expect(scene.settle().copies).toHaveLength(3);
  });

  const change = (scene: Scene, name: string, to: (host: Host) => Host): void => {
    const host = scene.cache.get('host', keys.host(name));
    if (!host) throw new Error(`there is no host ${name}`);
    commitPlan(scene.cache, { changes: [{ key: host.key, ifRevision: host.revision, value: to(host.value) }] });
  };
  const taints = [{ key: 'gpu', effect: 'NoSchedule' as const }];
  const hostsOf = (scene: Scene) => scene.copies.map(({ status }) => status.host).toSorted();

  it('has none on a host with a taint that it does not tolerate, unless its copy is there already', () => {
    const scene = new Scene();
    change(scene, 'h2', (host) => ({ ...host, spec: { ...host.spec, taints } }));
    expect(hostsOf(scene.create({ replicas: 1, perHost: true }))).toEqual(['h1']);
    change(scene, 'h1', (host) => ({ ...host, spec: { ...host.spec, taints } }));
    expect(hostsOf(scene.settle())).toEqual(['h1']);
    const tolerant = new Scene();
    change(tolerant, 'h2', (host) => ({ ...host, spec: { ...host.spec, taints } }));
    const placement = { tolerations: [{ key: 'gpu' }] };
    expect(hostsOf(tolerant.create({ replicas: 1, perHost: true }, { placement }))).toEqual(['h1', 'h2']);
  });

  it('has none on a host without a required trait', () => {
    const scene = new Scene().create(
      { replicas: 1, perHost: true },
      { placement: { traits: { required: ['CUSTOM_FAST'] } } },
    );
    expect([hostsOf(scene), scene.workload?.status.wanted]).toEqual([[], 0]);
  });

  it('follows a label to another host', () => {
    const scene = new Scene();
    const labelled = (name: string, labels: Record<string, string>) =>
      change(scene, name, (host) => ({ ...host, metadata: { ...host.metadata, labels } }));
    labelled('h1', { disk: 'fast' });
    expect(
      hostsOf(scene.create({ replicas: 1, perHost: true }, { placement: { hostLabels: { disk: 'fast' } } })),
    ).toEqual(['h1']);
    labelled('h1', {});
    labelled('h2', { disk: 'fast' });
    expect(hostsOf(scene.settle().during(15_000))).toEqual(['h2']);
  });

  it('says when a quota refuses a copy, and goes on when it has room', () => {
    const scene = new Scene(testProject('default', { quota: { VCPU: 2 } })).create({}, { cpus: 1, memoryMiB: 64 });
    expect([scene.copies.length, scene.said]).toEqual([
      2,
      expect.stringContaining('a copy cannot be created: project'),
    ]);
  });

  it('takes its copies along when it is deleted', () => {
    const scene = new Scene().create();
    commitPlan(scene.cache, deleteWorkload(scene.cache, { project: 'default', name: 'web' }, scene.ctx).plan);
    scene.settle();
    expect([scene.workload, [...scene.cache.list('instance')], [...scene.cache.list('workloadRevision')]]).toEqual([
      undefined,
      [],
      [],
    ]);
  });

  it.each<[string, Partial<WorkloadSpec>, Partial<InstanceSpec>, string]>([
    ['an unknown image', {}, { image: 'none-such' }, 'spec.template.spec.image'],
    [
      'an update that may not move',
      { strategy: { ...testWorkloadSpec().strategy, maxSurge: 0, maxUnavailable: '0%' } },
      {},
      'spec.strategy.maxUnavailable',
    ],
    ['copies per host and a number', { perHost: true, replicas: 2 }, {}, 'spec.replicas'],
    ['a gang', {}, { gang: { name: 'a', size: 2 } }, 'spec.template.spec.gang'],
  ])('refuses %s', (_, spec, instance, field) => {
    expect(() => new Scene().create(spec, instance)).toThrow(expect.objectContaining({ field }));
  });
});
