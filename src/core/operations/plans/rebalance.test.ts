import { describe, expect, it } from 'vitest';
import { parse } from '../../../api/parse.ts';
import { RebalanceOptions } from '../../../api/plans/rebalance.ts';
import { World } from '../../controllers/hosts/test-drained-fleet.ts';
import { planRebalance } from '../../plans/rebalance.ts';
import { isDraining } from '../../state/conditions.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testWorkloadSpec } from '../../testing.ts';
import { beginRebalance } from './rebalance.ts';

const options = (changed: Partial<RebalanceOptions> = {}): RebalanceOptions => ({
  ...parse(RebalanceOptions, {}, 'options'),
  ...changed,
});
const hourMs = 3_600_000;

/** One copy on each of four hosts, of 8 CPUs each, that all of it fits on one. */
function spreadOut(): World {
  const world = new World(['a', 'b', 'c', 'd']);
  const { template } = testWorkloadSpec();
  const spec = { ...template.spec, cpus: 1, memoryMiB: 1_024, placement: { profile: 'distribute-load' as const } };
  world.workload({ replicas: 4, template: { ...template, spec } });
  return world;
}

const used = (world: World): string[] => ['a', 'b', 'c', 'd'].filter((host) => world.on(host).length > 0);

describe('a rebalance', () => {
  it('leaves alone what was placed a short time ago', () => {
    const world = spreadOut();
    expect(used(world)).toHaveLength(4);
    expect(planRebalance(world.cache, options(), world.ctx()).moves).toBe(0);
    expect(planRebalance(world.cache, options({ coolDownMs: 0 }), world.ctx()).moves).toBeGreaterThan(0);
  });

  it('empties hosts within its budget, keeps the copies ready, and opens the hosts again', () => {
    const world = spreadOut();
    world.nowMs += 2 * hourMs;
    const plan = planRebalance(world.cache, options({ budget: 2 }), world.ctx());
    expect([plan.moves, plan.hosts.length, plan.inUse]).toEqual([2, 2, { before: 4, after: 2 }]);
    const emptied = plan.hosts.map(({ host }) => host);
    for (const { guests } of plan.hosts) for (const { target } of guests) expect(emptied).not.toContain(target);
    const { plan: begun } = beginRebalance(
      world.cache,
      { options: options({ budget: 2 }), hash: plan.hash },
      world.ctx(),
    );
    commitPlan(world.cache, begun);
    world.settle(() => expect(world.readyCount()).toBeGreaterThanOrEqual(3));
    expect(used(world)).toHaveLength(2);
    for (const host of emptied) {
      expect(world.drain(host)?.phase).toBe('Drained');
      expect(isDraining(world.cache.get('host', keys.host(host))?.value)).toBe(false);
    }
  });

  it('leaves hosts alone that are used more than the threshold', () => {
    const world = spreadOut();
    world.nowMs += 2 * hourMs;
    expect(planRebalance(world.cache, options({ thresholdPercent: 1 }), world.ctx()).moves).toBe(0);
  });

  it('lists what could leave only by a migration, and does not touch it', () => {
    const world = new World(['a', 'b']);
    for (const host of ['a', 'b'])
      world.instance(`on-${host}`, { cpus: 1, memoryMiB: 1_024, placement: { hostLabels: { host } } });
    world.nowMs += 2 * hourMs;
    const plan = planRebalance(world.cache, options(), world.ctx());
    expect([plan.moves, plan.needMigration.length]).toEqual([0, 1]);
  });

  it('moves instances where the options permit it, and never protected ones', () => {
    const offer = (name: string) => {
      const entry = world.cache.get('host', keys.host(name));
      if (!entry) throw new Error(`there is a host ${name}`);
      const drivers = [{ name: 'fake', available: true, offers: ['migration' as const] }];
      const value = { ...entry.value, status: { ...entry.value.status, drivers } };
      commitPlan(world.cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value }] });
    };
    const world = new World(['a', 'b']);
    for (const name of ['a', 'b']) offer(name);
    world.instance('kept', { cpus: 1, memoryMiB: 1_024, protected: true, placement: { hostLabels: { host: 'a' } } });
    world.instance('free', { cpus: 1, memoryMiB: 1_024, placement: { profile: 'distribute-load' } });
    world.nowMs += 2 * hourMs;
    const { hosts } = planRebalance(world.cache, options({ moves: 'cold' }), world.ctx());
    expect(hosts).toMatchObject([{ host: 'b', guests: [{ action: 'move', target: 'a' }] }]);
    expect(planRebalance(world.cache, options({ moves: 'live' }), world.ctx()).moves).toBe(0);
  });

  it('moves nothing to an idle host', () => {
    const world = new World(['a', 'b', 'c']);
    const { template } = testWorkloadSpec();
    const spec = { ...template.spec, cpus: 1, memoryMiB: 1_024, placement: { profile: 'distribute-load' as const } };
    world.workload({ replicas: 2, template: { ...template, spec } });
    world.nowMs += 2 * hourMs;
    expect(planRebalance(world.cache, options(), world.ctx()).moves).toBe(0);
  });

  it('is refused when the plan is another by now', () => {
    const world = spreadOut();
    world.nowMs += 2 * hourMs;
    const { hash } = planRebalance(world.cache, options(), world.ctx());
    world.instance('new', { cpus: 1, memoryMiB: 1_024, placement: { hostLabels: { host: 'd' } } });
    world.instance('newer', { cpus: 1, memoryMiB: 1_024, placement: { hostLabels: { host: 'c' } } });
    expect(() => beginRebalance(world.cache, { options: options(), hash }, world.ctx())).toThrow(
      'no longer as it was shown',
    );
  });
});
