import { describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { PoolSpec } from '../../../api/resources/pool.ts';
import { seededPrng } from '../../../base/prng.ts';
import { createPool, replacePool } from '../../operations/pool.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testWorkloadSpec } from '../../testing.ts';
import { rebalance } from './rebalance.ts';
import { World } from './test-drained-fleet.ts';

const hourMs = 3_600_000;
const hosts = ['a', 'b', 'c', 'd'];

/** Its hosts are of no pool, as those of the pool `default`. */
class Scheduled extends World {
  /** One copy on each of four hosts, of 8 CPUs each, that all of it fits on one. */
  constructor(schedule: Record<string, unknown> = {}) {
    super(hosts);
    const { template } = testWorkloadSpec();
    const spec = { ...template.spec, cpus: 1, memoryMiB: 1_024, placement: { profile: 'distribute-load' as const } };
    this.workload({ replicas: 4, template: { ...template, spec } });
    commitPlan(this.cache, createPool(this.cache, this.#input(schedule), this.ctx()).plan);
  }

  replace(schedule: Record<string, unknown>): void {
    commitPlan(this.cache, replacePool(this.cache, this.#input(schedule), this.ctx()).plan);
  }

  #input(schedule: Record<string, unknown>) {
    const spec = parse(PoolSpec, { rebalance: { cron: '0 * * * *', coolDownMs: 0, ...schedule } }, 'spec');
    return { project: '', name: 'default', labels: {}, spec };
  }

  /** At the next full hour and `lateMs`. */
  hour(lateMs = 0) {
    this.nowMs = this.nowMs - (this.nowMs % hourMs) + hourMs + lateMs;
    const plan = rebalance.reconcile(this.cache, keys.pool('default'), this.ctx());
    commitPlan(this.cache, plan);
    return this.status?.last;
  }

  get status() {
    return this.cache.get('pool', keys.pool('default'))?.value.status.rebalance;
  }

  events = (): string[] =>
    Array.from(this.cache.list('event'), ({ value }) => value.spec.reason).filter((each) => each.startsWith('Rebal'));
  used = (): number => hosts.filter((host) => this.on(host).length > 0).length;
}

describe('the schedule of a pool', () => {
  it('shows a plan once, and moves nothing', () => {
    const world = new Scheduled();
    expect(world.hour()).toMatchObject({ outcome: 'Suggested', moves: 3, hosts: ['b', 'c', 'd'] });
    expect(world.hour()).toMatchObject({ outcome: 'Suggested' });
    expect([world.events(), world.used()]).toEqual([['RebalanceSuggested'], 4]);
  });

  it('decides on each time once', () => {
    const world = new Scheduled({ mode: 'apply' });
    world.hour();
    expect(rebalance.reconcile(world.cache, keys.pool('default'), world.ctx()).changes).toEqual([]);
  });

  it('carries its plan out, keeps the copies ready, and then has nothing to do', () => {
    const world = new Scheduled({ mode: 'apply' });
    expect(world.hour()).toMatchObject({ outcome: 'Started', moves: 3 });
    world.settle(() => expect(world.readyCount()).toBeGreaterThanOrEqual(3));
    expect(world.used()).toBe(1);
    expect(world.hour()).toMatchObject({ outcome: 'Nothing' });
    expect(world.events()).toEqual(['RebalanceStarted']);
  });

  it('waits for the moves of its last plan', () => {
    const world = new Scheduled({ mode: 'apply', budget: 1 });
    world.hour();
    expect(world.hour()).toMatchObject({
      outcome: 'Skipped',
      message: expect.stringContaining('its moves have not ended'),
    });
  });

  it('leaves instances alone that were placed within the cool-down', () => {
    const world = new Scheduled({ mode: 'apply', budget: 1, coolDownMs: 24 * hourMs });
    expect(world.hour()).toMatchObject({ outcome: 'Nothing' });
    world.nowMs += 24 * hourMs;
    expect(world.hour()).toMatchObject({ outcome: 'Started' });
  });

  it('plans nothing that empties fewer hosts than asked for', () => {
    expect(new Scheduled({ emptiedMin: 4 }).hour()).toMatchObject({ outcome: 'Nothing' });
    expect(new Scheduled({ emptiedMin: 3 }).hour()).toMatchObject({ outcome: 'Suggested' });
  });

  it('does not make up a time that it missed by much', () => {
    expect(new Scheduled({ mode: 'apply' }).hour(1_800_000)).toMatchObject({
      outcome: 'Skipped',
      message: 'it was missed by 30 min, and is not made up',
    });
  });

  it('plans nothing while a host is not connected', () => {
    const world = new Scheduled({ mode: 'apply' });
    const entry = world.cache.get('host', keys.host('d'));
    if (!entry) throw new Error('there is a host d');
    const conditions = [{ type: 'Ready', status: 'False', reason: 'Silent', message: '', sinceMs: 0 } as const];
    const value = { ...entry.value, status: { ...entry.value.status, conditions } };
    commitPlan(world.cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value }] });
    expect(world.hour()).toMatchObject({ outcome: 'Skipped', message: 'host d is Unknown' });
  });

  it('makes no plans while it is paused, and makes up none of them', () => {
    const world = new Scheduled({ mode: 'apply', paused: true });
    expect(world.hour()).toBeUndefined();
    expect(world.status?.nextMs).toBeUndefined();
    world.nowMs += 60_000;
    world.replace({ mode: 'apply' });
    expect(rebalance.reconcile(world.cache, keys.pool('default'), world.ctx()).changes).toEqual([]);
    expect(world.hour()).toMatchObject({ outcome: 'Started' });
  });

  it('keeps what its last time decided when the pool changes', () => {
    const world = new Scheduled();
    world.hour();
    world.replace({ mode: 'apply' });
    expect(world.status?.last).toMatchObject({ outcome: 'Suggested' });
  });

  it.each([
    ['spec.rebalance.cron', { cron: '61 * * * *' }],
    ['spec.rebalance.timeZone', { timeZone: 'Nowhere' }],
  ])('is refused by name: %s', (field, schedule) => {
    expect(() => new Scheduled(schedule)).toThrow(field);
  });
});

describe('repeated rebalances', () => {
  it('come to an end: each uses fewer hosts, and none moves an instance back', () => {
    for (let seed = 1; seed <= 15; seed++) {
      const prng = seededPrng(seed, 'rebalance');
      const world = new World(hosts);
      for (let i = 0; i < 4; i++) {
        const { template } = testWorkloadSpec();
        const profile = prng.chance(1, 2) ? ('distribute-load' as const) : ('best-fit' as const);
        const spec = { ...template.spec, cpus: 1 + prng.below(3), memoryMiB: 1_024, placement: { profile } };
        world.workload({ replicas: 1 + prng.below(3), template: { ...template, spec } }, `web-${i}`);
      }
      const used = (): number => hosts.filter((host) => world.on(host).length > 0).length;
      const rebalanceSpec = { cron: '0 * * * *', mode: 'apply', coolDownMs: 0, thresholdPercent: 100 };
      const spec = parse(PoolSpec, { rebalance: rebalanceSpec }, 'spec');
      commitPlan(
        world.cache,
        createPool(world.cache, { project: '', name: 'default', labels: {}, spec }, world.ctx()).plan,
      );
      let outcome: string | undefined;
      for (let hour = 0; hour < hosts.length + 1 && outcome !== 'Nothing'; hour++) {
        const before = used();
        world.nowMs = world.nowMs - (world.nowMs % hourMs) + hourMs;
        commitPlan(world.cache, rebalance.reconcile(world.cache, keys.pool('default'), world.ctx()));
        world.settle();
        outcome = world.cache.get('pool', keys.pool('default'))?.value.status.rebalance?.last?.outcome;
        if (outcome === 'Started') expect(used(), `seed ${seed}`).toBeLessThan(before);
      }
      expect(outcome, `seed ${seed}`).toBe('Nothing');
    }
  });
});
