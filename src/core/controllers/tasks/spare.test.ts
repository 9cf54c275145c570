// The life of a spare, by what its runner reports, by time, and by what happens to its room.

import { describe, expect, it } from 'vitest';
import type { InstanceStatus } from '../../../api/resources/instance.ts';
import type { SpareSpec } from '../../../api/resources/spare.ts';
import { reportSpare, type SpareReport } from '../../operations/spares/report-spare.ts';
import { createSpare, releaseSpare } from '../../operations/spares/spare.ts';
import { deleteTask } from '../../operations/task.ts';
import type { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import type { AnyRecord } from '../../state/records.ts';
import { commitPlan, testCache, testContext, testHost, testImage, testSpare } from '../../testing.ts';
import { releaseAllOf } from '../../ledger/ledger.ts';
import { garbage } from '../garbage.ts';
import { placement } from '../placement.ts';
import { spare } from './spare.ts';
import { task } from './task.ts';

const key = keys.spare('default', 'metal-1');
const ready = { tcp: { port: 22 }, timeoutMs: 60_000, periodMs: 5_000 };

class Scene {
  cache = testCache([testImage(), ...testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096 } })]);
  #nowMs = 1_000_000;
  readonly #ctx = testContext();
  readonly #isKilled: boolean;

  /** `isKilled`: after each commit another process takes over, with nothing but the records. */
  constructor(isKilled = false) {
    this.#isKilled = isKilled;
  }

  get ctx() {
    return { ...this.#ctx, nowMs: this.#nowMs };
  }

  create(spec: Partial<SpareSpec> = {}, name = 'metal-1'): this {
    const input = { project: 'default', name, labels: {}, spec: testSpare(name, spec).spec };
    commitPlan(this.cache, createSpare(this.cache, input, this.ctx).plan);
    return this.settle();
  }

  /** Every controller until none writes. */
  settle(): this {
    for (let changed = true; changed; ) {
      changed = false;
      for (const controller of [placement, task, spare, garbage])
        for (const each of [...controller.keys(this.cache)]) {
          const plan = controller.reconcile(this.cache, each, this.ctx);
          if (plan.changes.length === 0) continue;
          changed = true;
          commitPlan(this.cache, plan);
          if (this.#isKilled) this.cache = reloaded(this.cache);
        }
    }
    return this;
  }

  after(ms: number): this {
    this.#nowMs += ms;
    return this.settle();
  }

  report(report: SpareReport, attempt = this.status?.attempt ?? 0): this {
    const { spare } = this;
    const step = { key, id: spare?.metadata.id ?? '', phase: spare?.status.phase ?? 'Pending', attempt };
    commitPlan(this.cache, reportSpare(this.cache, { step, report }, this.ctx).plan);
    return this.settle();
  }

  release(force = false): this {
    commitPlan(this.cache, releaseSpare(this.cache, { project: 'default', name: 'metal-1', force }, this.ctx).plan);
    return this.settle();
  }

  get spare() {
    return this.cache.get('spare', key)?.value;
  }

  get status() {
    return this.spare?.status;
  }

  get said(): string {
    return this.status?.conditions[0]?.message ?? '';
  }

  get used(): number {
    return this.cache.usedBy(testHost('h1')[1].id).get('VCPU') ?? 0;
  }

  get events(): readonly string[] {
    return [...this.cache.list('event')]
      .filter(({ value }) => value.spec.subject.kind === 'spare')
      .toSorted((a, b) => a.revision - b.revision)
      .map(({ value }) => value.spec.reason);
  }
}

const kinds = ['image', 'host', 'provider', 'allocation', 'task', 'spare', 'event'] as const;

function reloaded(cache: Cache): Cache {
  const entries = kinds.flatMap((kind): { revision: number; value: AnyRecord }[] => [...cache.list(kind)]);
  return testCache(entries.toSorted((a, b) => a.revision - b.revision).map(({ value }) => value));
}

describe('a spare', () => {
  it('is made, asked, held and released', () => {
    const scene = new Scene().create({ ready, ttlMs: 60_000 });
    expect(scene.status).toMatchObject({ phase: 'Provisioning', host: 'h1', attempt: 1, attemptAtMs: 1_000_000 });
    scene.report({ is: 'provisioned', address: '10.0.0.9' });
    expect(scene.status).toMatchObject({ phase: 'Checking', attempt: 1, address: '10.0.0.9' });
    scene.report({ is: 'ready', message: 'port 22 answers' });
    expect(scene.status).toMatchObject({ phase: 'Ready', attempt: 0, heldUntilMs: 1_060_000 });
    expect(scene.used).toBe(2);
    scene.after(60_000);
    expect(scene.status).toMatchObject({ phase: 'Releasing', attempt: 1 });
    expect(scene.used).toBe(2);
    scene.report({ is: 'released' });
    expect([scene.status?.phase, scene.used]).toEqual(['Released', 0]);
    expect(scene.events).toEqual(['Accepted', 'Provisioning', 'Provisioned', 'Ready', 'Expired', 'Released']);
    expect(scene.after(3_600_000).spare).toBeUndefined();
  });

  it('fails when no host has room, and says why', () => {
    const scene = new Scene().create({ cpus: 5 });
    expect([scene.status?.phase, scene.said]).toEqual(['Failed', 'No available nodes: 0 of 1 host: 1 InsufficientCpu']);
  });

  it('may wait for room', () => {
    const scene = new Scene().create({ cpus: 5, whenFull: 'wait' });
    expect(scene.status?.phase).toBe('Pending');
    expect(scene.release().status?.phase).toBe('Released');
  });

  it('fails when the wait for room takes too long', () => {
    const scene = new Scene().create({ cpus: 5, whenFull: 'wait', waitMs: 60_000 });
    expect(scene.after(59_999).status?.phase).toBe('Pending');
    expect(scene.after(1).status?.phase).toBe('Failed');
    expect(scene.said).toBe('No available nodes: 0 of 1 host: 1 InsufficientCpu');
    expect([...scene.cache.list('task')].map(({ value }) => value.status.phase)).toEqual(['Expired']);
  });

  it('keeps its room for longer than a task is held', () => {
    const day = 24 * 3_600_000;
    const scene = new Scene().create({ ttlMs: 30 * day, provisionMs: day }).after(day / 2);
    scene.report({ is: 'provisioned' }).after(30 * day - 1);
    expect([scene.status?.phase, scene.used]).toEqual(['Ready', 2]);
    expect(scene.after(1).status?.phase).toBe('Releasing');
    expect(scene.report({ is: 'released' }).used).toBe(0);
  });

  it('is released again when that takes too long', () => {
    const scene = new Scene().create().report({ is: 'provisioned' }).release().after(600_000);
    expect([scene.status?.phase, scene.said]).toEqual([
      'Releasing',
      'attempt 1 failed: it was not released within 600 s; it is tried again',
    ]);
    expect(scene.after(300_000).status).toMatchObject({ phase: 'Releasing', attempt: 2 });
  });

  it('is tried again later, and undone after the last attempt', () => {
    const scene = new Scene().create({ attemptsMax: 2 });
    scene.report({ is: 'failed', why: 'no power' });
    expect([scene.status?.attempt, scene.said]).toEqual([1, 'attempt 1 failed: no power; it is tried again']);
    scene.after(300_000);
    expect(scene.status).toMatchObject({ phase: 'Provisioning', attempt: 2 });
    scene.report({ is: 'failed', why: 'still none' });
    expect(scene.status).toMatchObject({ phase: 'Releasing', attempt: 1, failure: 'still none' });
    scene.report({ is: 'released' });
    expect([scene.status?.phase, scene.said, scene.used]).toEqual(['Failed', 'still none', 0]);
  });

  it.each<[string, (scene: Scene) => unknown, string, string]>([
    [
      'an attempt that is refused',
      (s) => s.report({ is: 'failed', why: 'no such playbook', refused: true }),
      'Releasing',
      'no such playbook',
    ],
    ['an attempt that takes too long', (s) => s.after(600_000), 'Releasing', 'it was not made within 600 s'],
    [
      'a machine that is never ready',
      (s) => s.report({ is: 'provisioned' }).after(60_000),
      'Releasing',
      'it was not ready within 60 s',
    ],
    [
      'a question that can never be answered',
      (s) => s.report({ is: 'provisioned' }).report({ is: 'failed', why: 'no such cluster' }),
      'Releasing',
      'no such cluster',
    ],
    [
      'what cannot be found out',
      (s) => s.report({ is: 'unknown', why: 'the service has no search' }),
      'Unknown',
      'the service has no search; look',
    ],
    ['a report of an attempt before', (s) => s.report({ is: 'provisioned' }, 7), 'Provisioning', 'it is made on h1'],
    ['a release by request', (s) => s.release(), 'Releasing', 'it is released by request'],
    ['a release by force', (s) => s.release(true), 'Released', 'it was released by force'],
  ])('takes %s', (_, act, phase, said) => {
    const scene = new Scene().create({ ready });
    act(scene);
    expect([scene.status?.phase, scene.said]).toEqual([phase, expect.stringContaining(said)]);
    expect(scene.used).toBe(phase === 'Released' || phase === 'Failed' ? 0 : 2);
  });

  it('is undone when its room is lost', () => {
    const scene = new Scene().create();
    const name = [...scene.cache.list('task')][0]?.value.metadata.name ?? '';
    commitPlan(scene.cache, deleteTask(scene.cache, { project: 'default', name }, scene.ctx).plan);
    expect(scene.settle().status).toMatchObject({
      phase: 'Releasing',
      failure: 'its room is gone: its task was deleted',
    });
    expect(scene.report({ is: 'released' }).status?.phase).toBe('Failed');
  });

  it('stays with its room while it cannot be released, until a person looks', () => {
    const scene = new Scene().create().release();
    for (let i = 0; i < 11; i++) scene.report({ is: 'failed', why: 'no answer' }).after(300_000);
    expect([scene.status?.phase, scene.status?.attempt]).toEqual(['Releasing', 12]);
    scene.report({ is: 'failed', why: 'no answer' });
    expect([scene.status?.phase, scene.used]).toEqual(['Unknown', 2]);
    expect(scene.release().status).toMatchObject({ phase: 'Releasing', attempt: 1 });
    expect(scene.release(true).status?.phase).toBe('Released');
  });

  it('goes on from what is written, whenever the one that decides is killed', () => {
    const life = (reload: boolean) => {
      const scene = new Scene(reload).create({ ready, attemptsMax: 2 });
      scene.report({ is: 'failed', why: 'no power' }).after(300_000);
      scene.report({ is: 'provisioned' }).report({ is: 'ready', message: 'it answers' }).after(60_000);
      return [...scene.report({ is: 'released' }).events, scene.status?.phase, scene.used];
    };
    expect(life(true)).toEqual(life(false));
    expect(life(true).at(-2)).toBe('Released');
  });

  it('is one of those that fit, when many are asked for at once', () => {
    const scene = new Scene();
    for (let i = 0; i < 100; i++) scene.create({ cpus: 2 }, `spare-${i}`);
    const phases = [...scene.cache.list('spare')].map(({ value }) => value.status.phase);
    expect(phases.filter((phase) => phase === 'Provisioning')).toHaveLength(2);
    expect(phases.filter((phase) => phase === 'Failed')).toHaveLength(98);
    expect(scene.used).toBe(4);
  });

  it.each<[Partial<SpareSpec>, string]>([
    [{ provisioner: 'vm' }, 'spec.image'],
    [{ ready: { timeoutMs: 1_000, periodMs: 1_000 } }, 'spec.ready'],
    [{ ready: { ...ready, http: { url: 'http://x/' } } }, 'spec.ready'],
    [{ placement: { pool: 'none-such' } }, 'spec.placement.pool'],
  ])('%j is refused', (spec, field) => {
    const scene = new Scene();
    expect(() => scene.create(spec)).toThrow(expect.objectContaining({ field }));
    expect([...scene.cache.list('task')]).toEqual([]);
  });
});

describe('a spare that is an instance of ours', () => {
  const at = keys.instance('default', 'metal-1');
  const made = () => new Scene().create({ provisioner: 'vm', image: 'tiny', ready });

  function becomes(scene: Scene, status: Partial<InstanceStatus>): Scene {
    const entry = scene.cache.get('instance', at);
    if (!entry) throw new Error('there is no instance');
    const value = { ...entry.value, status: { ...entry.value.status, ...status } };
    commitPlan(scene.cache, { changes: [{ key: at, ifRevision: entry.revision, value }] });
    return scene.settle();
  }
  const guest = { state: 'running' as const, ready: true, address: '10.0.0.7', ports: [], phases: [] };

  it('is ready with its guest, and released with it', () => {
    const scene = made();
    expect(scene.cache.get('instance', at)?.value.spec.image).toBe('tiny');
    expect(scene.status).toMatchObject({ phase: 'Provisioning', host: 'h1' });
    becomes(scene, { phase: 'Running', guest: { ...guest, ready: false } });
    expect(scene.status?.phase).toBe('Provisioning');
    becomes(scene, { guest });
    expect(scene.status).toMatchObject({ phase: 'Checking', address: '10.0.0.7', name: 'metal-1' });
    scene.report({ is: 'ready', message: 'port 22 answers' }).release();
    expect(scene.status?.phase).toBe('Releasing');
    const instance = scene.cache.get('instance', at)?.value;
    expect([instance?.metadata.deletionRequestedAtMs, scene.used]).toEqual([expect.any(Number), 2]);
    // The host reports that the guest is gone.
    commitPlan(scene.cache, { changes: releaseAllOf(scene.cache, instance?.metadata.id ?? '') });
    expect([scene.settle().status?.phase, scene.used]).toEqual(['Released', 0]);
  });

  it.each<[string, Partial<InstanceStatus>, string]>([
    ['fails', { phase: 'Failed' }, 'its instance is Failed'],
    ['ends', { phase: 'Exited' }, 'its instance is Exited'],
    ['is stopped', { phase: 'Stopped' }, 'its instance is Stopped'],
  ])('is released when the instance %s', (_, status, why) => {
    const scene = becomes(becomes(made(), { phase: 'Running', guest }), status);
    expect(scene.status).toMatchObject({ phase: 'Releasing', failure: expect.stringContaining(why) });
    expect(scene.cache.get('instance', at)?.value.metadata.deletionRequestedAtMs).toBeDefined();
  });

  it('is released when its guest does not boot in time', () => {
    const scene = made().after(600_000);
    expect(scene.status).toMatchObject({ phase: 'Releasing', failure: 'it was not made within 600 s' });
  });
});
