// Plans of a workload on two hosts: which copies they name, and when their hash holds no longer.

import { beforeEach, describe, expect, it } from 'vitest';
import type { Workload } from '../../api/resources/workload.ts';
import { placement } from '../controllers/placement.ts';
import { workload as controller } from '../controllers/workloads/workload.ts';
import { scalePlanOf, scaleWorkload } from '../operations/workloads/scale.ts';
import { createWorkload, replaceWorkload } from '../operations/workloads/workload.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { commitPlan, testCache, testContext, testHost, testImage, testWorkloadSpec } from '../testing.ts';
import { planRollout, rolloutText } from './rollout.ts';
import { assertWorkloadPlan } from './workload-hash.ts';

const ctx = testContext();
const key = keys.workload('default', 'web');
let cache: Cache;

beforeEach(() => {
  const hosts = ['h1', 'h2'].flatMap((name) => testHost(name, { capacity: { VCPU: 16, MEMORY_MB: 65_536 } }));
  cache = testCache([testImage(), testImage('other'), ...hosts]);
  const input = { project: 'default', name: 'web', labels: {}, spec: testWorkloadSpec({ replicas: 3 }) };
  commitPlan(cache, createWorkload(cache, input, ctx).plan);
  settle();
});

/** Until each copy has its host. */
function settle(): void {
  for (const each of [controller, placement])
    for (const of of [...each.keys(cache)]) commitPlan(cache, each.reconcile(cache, of, ctx));
}

function present(): Workload {
  const found = cache.get('workload', key)?.value;
  if (!found) throw new Error('there is no workload');
  return found;
}

function change(spec: Partial<Workload['spec']>) {
  const before = present();
  const input = { project: 'default', name: 'web', labels: {}, spec: { ...before.spec, ...spec } };
  const { plan } = replaceWorkload(cache, input, ctx);
  const after = plan.changes.find((each) => each.key === key)?.value;
  return { plan, before, after: after?.kind === 'workload' ? after : before };
}

function withImage(image: string): Partial<Workload['spec']> {
  const { template } = present().spec;
  return { template: { ...template, spec: { ...template.spec, image } } };
}

const changes = [{ field: 'template.spec.image', before: 'tiny', after: 'other' }];

function updatePlan() {
  const { before, after } = change(withImage('other'));
  return planRollout(cache, { verb: 'update', before, after, changes }, ctx.nowMs);
}

const scaled = (replicas: number, apply?: string) =>
  scaleWorkload(cache, { project: 'default', name: 'web', replicas, ...(apply === undefined ? {} : { apply }) }, ctx);

describe('the plan of an update', () => {
  it('names the copies that are replaced, their hosts, and how many go at a time', () => {
    const plan = updatePlan();
    expect(plan).toMatchObject({ revision: { before: 1, after: 2 }, replaced: 3, kept: 0, surge: 1, unavailable: 0 });
    expect(plan.hosts.reduce((sum, { copies }) => sum + copies, 0)).toBe(3);
    expect(plan.copies.map(({ instance }) => instance.slice(0, 5))).toEqual(['web-0', 'web-1', 'web-2']);
    expect(plan.hash).toMatch(/^[0-9a-f]{32}$/);
  });

  it('is the same while nothing changes, and another for another copy', () => {
    const { hash } = updatePlan();
    expect(updatePlan().hash).toBe(hash);
    const [copy] = [...cache.list('instance')];
    if (!copy) throw new Error('there is no copy');
    const moved = { ...copy.value, status: { ...copy.value.status, host: 'h9' } };
    commitPlan(cache, { changes: [{ key: copy.key, ifRevision: copy.revision, value: moved }] });
    const now = updatePlan();
    expect(() =>
      assertWorkloadPlan(hash, {
        ...{ verb: 'update', workload: present(), hash: now.hash },
        copiesText: rolloutText(now),
      }),
    ).toThrow(/other copies are affected: now 3 replaced, on .*h9/);
  });

  it('removes what is too much when only the number falls', () => {
    const { before, after } = change({ replicas: 1 });
    const plan = planRollout(cache, { verb: 'update', before, after, changes: [] }, ctx.nowMs);
    expect(plan).toMatchObject({ replaced: 0, kept: 3, created: 0, replicas: { before: 3, after: 1 } });
    expect(plan.removed).toHaveLength(2);
  });
});

describe('the plan of another number', () => {
  it('is applied by its hash, and repeated without effect', () => {
    const { hash, remove } = scalePlanOf(cache, present(), 1, ctx.nowMs);
    expect(remove).toHaveLength(2);
    commitPlan(cache, scaled(1, hash).plan);
    expect(present().spec.replicas).toBe(1);
    expect(scaled(1, hash).changed).toBe(false);
  });

  it('says which part is another', () => {
    const { hash } = scalePlanOf(cache, present(), 1, ctx.nowMs);
    expect(() => scaled(2, hash)).toThrow(/the request is another/);
    expect(() => scaled(1, 'guessed-hash')).toThrow(/that plan is not known/);
    const [copy] = [...cache.list('instance')];
    if (!copy) throw new Error('there is no copy');
    const held = { ...copy.value, spec: { ...copy.value.spec, protected: true } };
    const byCost = scalePlanOf(cache, present(), 0, ctx.nowMs);
    commitPlan(cache, { changes: [{ key: copy.key, ifRevision: copy.revision, value: held }] });
    expect(() => scaled(0, byCost.hash)).toThrow(/other copies are affected: now web-1-\w+, web-2-\w+ removed/);
    commitPlan(cache, change(withImage('other')).plan);
    expect(() => scaled(1, hash)).toThrow(/it has revision 2 and replicas 3/);
  });
});
