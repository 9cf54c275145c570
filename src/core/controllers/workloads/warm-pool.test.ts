// Warm pools on a small fleet: what is created, claimed and replaced as guests become ready, fail, and grow old.

import { describe, expect, it } from 'vitest';
import type { ClaimSpec } from '../../../api/routes/warm-pools.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { WarmPoolSpec } from '../../../api/resources/warm-pool.ts';
import { claimWarmGuest } from '../../operations/warm-pools/claim.ts';
import { beginDrain, showDrainPlan } from '../../operations/plans/host-drain.ts';
import { createWarmPool, deleteWarmPool, replaceWarmPool } from '../../operations/warm-pools/warm-pool.ts';
import { keys } from '../../state/keys.ts';
import {
  commitPlan,
  testCache,
  testContext,
  testGuest,
  testHost,
  testImage,
  testInstance,
  testProject,
} from '../../testing.ts';
import { drain } from '../hosts/drain.ts';
import { garbage } from '../garbage.ts';
import { placement } from '../placement.ts';
import { options } from '../hosts/test-drained-fleet.ts';
import { warmPool } from './warm-pool.ts';
import { settle } from './test-settle.ts';

const key = keys.warmPool('default', 'ci');

const template = { labels: { app: 'ci' }, spec: testInstance('', { cpus: 1, memoryMiB: 256 }).spec };

class Scene {
  readonly cache;
  #nowMs = 1_000_000;
  readonly #ctx = testContext();
  /** The phase that a guest comes to. */
  phaseOf: (instance: Instance) => Instance['status']['phase'] | undefined = () => 'Running';

  constructor(...more: Parameters<typeof testCache>[0]) {
    const drivers = [{ name: 'fake', available: true, runs: true, suspends: true }];
    const hosts = ['h1', 'h2'].flatMap((name) =>
      testHost(name, { capacity: { VCPU: 16, MEMORY_MB: 65_536, DISK_GB: 100 }, status: { drivers } }),
    );
    this.cache = testCache([testImage(), testImage('other'), ...hosts, ...more]);
  }

  get ctx() {
    return { ...this.#ctx, nowMs: this.#nowMs };
  }

  create(spec: Partial<WarmPoolSpec> = {}): this {
    const input = { project: 'default', name: 'ci', labels: {}, spec: specOf(spec) };
    commitPlan(this.cache, createWarmPool(this.cache, input, this.ctx).plan);
    return this.settle();
  }

  replace(spec: Partial<WarmPoolSpec>): this {
    const input = { project: 'default', name: 'ci', labels: {}, spec: specOf(spec) };
    commitPlan(this.cache, replaceWarmPool(this.cache, input, this.ctx).plan);
    return this;
  }

  claim(spec: Partial<ClaimSpec> = {}, idempotencyKey?: string): Instance {
    const input = {
      ...{ project: 'default', name: 'ci', labels: { build: '7' } },
      spec: { coldStart: true, ...spec },
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    };
    const { plan, key: at } = claimWarmGuest(this.cache, input, this.ctx);
    commitPlan(this.cache, plan);
    const instance = this.cache.get('instance', at)?.value;
    if (!instance) throw new Error('nothing was claimed');
    return instance;
  }

  /** Controllers and hosts act until nothing changes. */
  settle(): this {
    settle(this.cache, { controllers: [warmPool, placement, garbage], ctx: this.ctx, agents: () => this.#agents() });
    return this;
  }

  /** Guests start, suspend and go at once. */
  #agents(): boolean {
    let changed = false;
    for (const { key: at, value, revision } of [...this.cache.list('instance')]) {
      const { status, spec } = value;
      const put = (phase: Instance['status']['phase']): void => {
        const ready = phase === 'Running' || phase === 'Suspended';
        const now = { phase, guest: testGuest({ ready }), ...(ready ? { readyAtMs: this.#nowMs } : {}) };
        this.put(at, revision, { ...value, status: { ...status, ...now } });
        changed = true;
      };
      if (value.metadata.deletionRequestedAtMs !== undefined) {
        const allocation = this.cache.get('allocation', keys.allocation(value.metadata.id, status.incarnation));
        if (!allocation) continue;
        commitPlan(this.cache, { changes: [{ key: allocation.key, ifRevision: allocation.revision, value: null }] });
        changed = true;
      } else if (status.phase === 'Scheduled') {
        const phase = this.phaseOf(value);
        if (phase !== undefined) put(phase);
      } else if (status.phase === 'Running' && spec.powerState === 'suspended') put('Suspended');
      else if (status.phase === 'Suspended' && spec.powerState === 'running') put('Running');
    }
    return changed;
  }

  put(at: string, ifRevision: number, value: Instance): void {
    commitPlan(this.cache, { changes: [{ key: at, ifRevision, value }] });
  }

  after(ms: number): this {
    this.#nowMs += ms;
    return this.settle();
  }

  get guests(): readonly Instance[] {
    return [...this.cache.list('instance')]
      .map(({ value }) => value)
      .filter(({ metadata, status }) => metadata.deletionRequestedAtMs === undefined && status.warmPool !== undefined);
  }

  get status() {
    return this.cache.get('warmPool', key)?.value.status;
  }
}

function specOf(spec: Partial<WarmPoolSpec>): WarmPoolSpec {
  return { template, size: 2, state: 'running', ...spec };
}

describe('a warm pool', () => {
  it('replaces its guests elsewhere when their host is drained, and the plan says so', () => {
    const scene = new Scene().create({ size: 2 });
    const { cache, ctx } = scene;
    const host = scene.guests[0]?.status.host ?? '';
    const there = scene.guests.filter(({ status }) => status.host === host).length;
    const input = { host, options };
    const { plan, shown } = showDrainPlan(cache, input, ctx);
    expect(shown.guests.map(({ action, reasons: [why] }) => [action, why?.code])).toEqual(
      Array.from({ length: there }, () => ['replace', 'WarmPool']),
    );
    commitPlan(cache, plan);
    commitPlan(cache, beginDrain(cache, { ...input, hash: shown.hash }, ctx).plan);
    for (let step = 0; step < 4; step++) {
      commitPlan(cache, drain.reconcile(cache, keys.hostPlan(host), ctx));
      scene.settle();
    }
    expect(cache.get('hostPlan', keys.hostPlan(host))?.value.phase).toBe('Drained');
    expect(scene.guests.map(({ status }) => status.host)).not.toContain(host);
    expect(scene.guests).toHaveLength(2);
  });

  it('keeps as many guests ready as it says, and writes nothing then', () => {
    const scene = new Scene().create();
    expect(scene.guests.map(({ metadata }) => metadata.labels)).toEqual(
      Array.from({ length: 2 }, () => ({ app: 'ci', 'berth/warm-pool': 'ci' })),
    );
    expect(scene.status).toMatchObject({ wanted: 2, guests: 2, ready: 2, hits: 0, misses: 0 });
    expect(warmPool.reconcile(scene.cache, key, scene.ctx).changes).toEqual([]);
  });

  it('gives one to a claim, and makes another', () => {
    const scene = new Scene().create();
    const before = scene.guests.map(({ metadata }) => metadata.id);
    const claimed = scene.claim({ ttlMs: 60_000 });
    expect(before).toContain(claimed.metadata.id);
    expect(claimed).toMatchObject({
      metadata: { labels: { app: 'ci', build: '7', 'berth/warm-pool': 'ci' } },
      spec: { expiresAtMs: scene.ctx.nowMs + 60_000 },
      status: { phase: 'Running', claimed: { pool: 'ci', warm: true } },
    });
    expect(scene.settle().guests.map(({ metadata }) => metadata.id)).not.toContain(claimed.metadata.id);
    expect(scene.status).toMatchObject({ guests: 2, ready: 2, hits: 1, misses: 0 });
  });

  it('gives no guest twice, and the same for a repeated request', () => {
    const scene = new Scene().create();
    const [one, again, other] = [scene.claim({}, 'k1'), scene.claim({}, 'k1'), scene.claim({}, 'k2')];
    expect([again.metadata.id, other.metadata.id === one.metadata.id]).toEqual([one.metadata.id, false]);
    expect(scene.status).toMatchObject({ hits: 2 });
  });

  it('creates an instance when none is ready, or refuses', () => {
    const scene = new Scene();
    scene.phaseOf = () => undefined;
    scene.create();
    expect(() => scene.claim({ coldStart: false })).toThrow('has no guest that is ready; 0 of 2 guests are ready');
    expect(scene.claim().status).toMatchObject({ phase: 'Pending', claimed: { warm: false } });
    expect(scene.settle().status).toMatchObject({ hits: 0, misses: 1, guests: 2 });
  });

  it('gives no guest of a host that is not ready', () => {
    const scene = new Scene().create({ size: 1 });
    const [guest] = scene.guests;
    const host = scene.cache.get('host', keys.host(guest?.status.host ?? ''));
    if (!host) throw new Error('it is on no host');
    const conditions = host.value.status.conditions.map((each) => ({ ...each, status: 'False' as const }));
    const dead = { ...host.value, status: { ...host.value.status, conditions } };
    commitPlan(scene.cache, { changes: [{ key: host.key, ifRevision: host.revision, value: dead }] });
    expect(scene.claim().status.claimed?.warm).toBe(false);
  });

  it('suspends guests that wait, and a claim resumes one', () => {
    const scene = new Scene().create({ state: 'suspended' });
    expect(scene.guests.map(({ status }) => status.phase)).toEqual(['Suspended', 'Suspended']);
    const { spec, status } = scene.claim();
    expect([spec.powerState, status.claimed?.warm]).toEqual(['running', true]);
  });

  it('replaces a guest that failed, later each time', () => {
    const scene = new Scene();
    scene.phaseOf = () => 'Failed';
    scene.create({ size: 1 });
    expect(scene.guests).toEqual([]);
    expect(scene.after(9_999).status?.failures?.count).toBe(1);
    expect(scene.after(1).status?.failures?.count).toBe(2);
    scene.phaseOf = () => 'Running';
    expect(scene.after(19_999).guests).toHaveLength(0);
    expect(scene.after(1).guests).toHaveLength(1);
    expect(scene.status?.failures).toBeUndefined();
  });

  it('replaces guests of a former template, and has a ready one all the time', () => {
    const scene = new Scene().create();
    scene.phaseOf = () => undefined;
    scene.replace({ template: { ...template, spec: { ...template.spec, image: 'other' } } }).settle();
    const images = () => scene.guests.map(({ spec }) => spec.image).toSorted();
    expect(images()).toEqual(['other', 'tiny', 'tiny']);
    expect(scene.claim().spec.image).toBe('tiny');
    scene.phaseOf = () => 'Running';
    for (const { value, key: at, revision } of [...scene.cache.list('instance')])
      if (value.status.phase === 'Scheduled')
        scene.put(at, revision, {
          ...value,
          status: { ...value.status, phase: 'Running', guest: testGuest({ ready: true }) },
        });
    expect(scene.settle() && images()).toEqual(['other', 'other']);
  });

  it('replaces guests that are too old', () => {
    const scene = new Scene().create({ maxAgeMs: 60_000 });
    const before = scene.guests.map(({ metadata }) => metadata.id);
    expect(scene.after(59_999).guests.map(({ metadata }) => metadata.id)).toEqual(before);
    scene.after(1);
    expect(scene.guests.filter(({ metadata }) => before.includes(metadata.id))).toEqual([]);
    expect(scene.status).toMatchObject({ guests: 2, ready: 2 });
  });

  it('keeps no more than its budget has room for', () => {
    const scene = new Scene().create({ size: 5, budget: { VCPU: 3 } });
    expect([scene.guests.length, scene.status?.conditions[0]?.message]).toEqual([
      3,
      '3 of 3 guests are ready; the budget has no room for 5: spec.budget.VCPU is 3, and a guest asks for 1',
    ]);
    // Without room for one more, one guest goes before its replacement comes.
    scene.replace({ size: 5, budget: { VCPU: 3 }, template: { ...template, labels: { app: 'new' } } }).settle();
    expect(scene.guests.map(({ metadata }) => metadata.labels['app'])).toEqual(['new', 'new', 'new']);
  });

  it('creates a guest only if the removal of another one holds, which is not committed yet', () => {
    const scene = new Scene().create();
    const entry = [...scene.cache.list('instance')][0];
    if (!entry) throw new Error('there is no guest');
    scene.cache.assume({ changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] });
    const plan = warmPool.reconcile(scene.cache, key, scene.ctx);
    expect(plan.changes.some(({ value }) => value?.kind === 'instance')).toBe(true);
    expect(plan.conditions).toEqual([{ key: entry.key, ifRevision: 0 }]);
  });

  it('follows its schedule', () => {
    const scene = new Scene().create({
      size: 0,
      schedule: { timeZone: 'UTC', windows: [{ from: '20 0 * * *', to: '30 0 * * *', size: 2 }] },
    });
    expect(scene.guests).toHaveLength(0); // 00:16:40
    expect(scene.after(200_000).guests).toHaveLength(2); // 00:20:00
    expect(scene.after(600_000).guests).toHaveLength(0);
  });

  it('says when a quota refuses a guest', () => {
    const scene = new Scene(testProject('default', { quota: { VCPU: 1 } })).create();
    expect([scene.guests.length, scene.status?.conditions[0]?.message]).toEqual([
      1,
      expect.stringContaining('a guest is refused: project'),
    ]);
  });

  it('takes along the guests that wait when it is deleted, and leaves the claimed ones', () => {
    const scene = new Scene().create();
    const { metadata } = scene.claim();
    commitPlan(scene.cache, deleteWarmPool(scene.cache, { project: 'default', name: 'ci' }, scene.ctx).plan);
    scene.settle();
    expect([scene.status, [...scene.cache.list('instance')].map(({ value }) => value.metadata.id)]).toEqual([
      undefined,
      [metadata.id],
    ]);
  });

  const schedule = (timeZone: string, from: string) => ({ timeZone, windows: [{ from, to: '0 9 * * *', size: 1 }] });
  it.each<[string, Partial<WarmPoolSpec>, string]>([
    [
      'an unknown image',
      { template: { ...template, spec: { ...template.spec, image: 'no' } } },
      'spec.template.spec.image',
    ],
    [
      'a lifetime in the template',
      { template: { ...template, spec: { ...template.spec, ttlMs: 5_000 } } },
      'spec.template.spec.ttlMs',
    ],
    ['a budget of an unknown class', { budget: { CPU: 8 } }, 'spec.budget.CPU'],
    ['an unknown time zone', { schedule: schedule('Mars/Olympus', '0 8 * * *') }, 'spec.schedule.timeZone'],
    ['no time', { schedule: schedule('UTC', '0 8 * *') }, 'spec.schedule.windows[0].from'],
    ['a day that never comes', { schedule: schedule('UTC', '0 8 30 2 *') }, 'spec.schedule.windows[0].from'],
  ])('refuses %s', (_, spec, field) => {
    expect(() => new Scene().create(spec)).toThrow(expect.objectContaining({ field }));
  });
});
