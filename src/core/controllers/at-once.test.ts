import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { createInstance } from '../operations/instance.ts';
import { queueOf } from '../queue/queue.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import type { Policy } from '../state/context.ts';
import { addRecord, commitPlan, testContext, testFleet, testInstance } from '../testing.ts';
import { placedAtOnce } from './at-once.ts';
import { placement } from './placement.ts';

const host = (cpus: number, labels = {}) => ({ capacity: { VCPU: cpus, MEMORY_MB: 16_384 }, labels });

let made = 0;
const ctxOf = (policy: Partial<Policy> = {}) => testContext({ policy, newId: (prefix) => `${prefix}_${++made}` });
const inputOf = (name: string, spec: Partial<InstanceSpec>) => ({
  project: 'default',
  name,
  labels: {},
  spec: testInstance(name, { cpus: 1, memoryMiB: 512, ...spec }).spec,
});

function create(cache: Cache, name: string, spec: Partial<InstanceSpec> = {}, policy: Partial<Policy> = {}) {
  const ctx = ctxOf(policy);
  return placedAtOnce(cache, createInstance(cache, inputOf(name, spec), ctx), ctx);
}

const statusOf = (cache: Cache, name: string) => cache.get('instance', keys.instance('default', name))?.value.status;

describe('a create that nobody waits before', () => {
  it('comes with its place, its room and its event in one Plan', () => {
    const cache = testFleet({ h1: host(4) });
    const { plan, key } = create(cache, 'web');
    expect(plan.changes.map((change) => [change.value?.kind, change.ifRevision])).toEqual([
      ['instance', 0],
      ['provider', expect.any(Number)],
      ['allocation', 0],
      ['event', 0],
    ]);
    expect(plan.conditions?.map((condition) => condition.key)).toEqual([keys.host('h1')]);
    commitPlan(cache, plan);
    expect(cache.get('instance', key)?.value.status).toMatchObject({ phase: 'Scheduled', host: 'h1', incarnation: 1 });
    expect([...cache.allocationsOnHost('h1')]).toHaveLength(1);
    expect([...cache.pendingInstanceKeys()]).toEqual([]);
  });

  it('gets the place that the controller would choose in the next moment', () => {
    const someHost = fc.record({ cpus: fc.integer({ min: 0, max: 6 }), zone: fc.constantFrom('a', 'b') });
    const wish = fc.record({ cpus: fc.integer({ min: 1, max: 4 }), zone: fc.constantFrom('a', 'b', undefined) });
    fc.assert(
      fc.property(
        fc.array(someHost, { minLength: 1, maxLength: 6 }),
        fc.array(wish, { maxLength: 12 }),
        (hosts, wishes) => {
          const fleet = () =>
            testFleet(Object.fromEntries(hosts.map(({ cpus, zone }, i) => [`h${i}`, host(cpus, { zone })])));
          const [atOnce, inTurn] = [fleet(), fleet()];
          for (const [i, { cpus, zone }] of wishes.entries()) {
            const hostLabels: Record<string, string> = zone === undefined ? {} : { zone };
            const spec = { cpus, placement: { hostLabels } };
            commitPlan(atOnce, create(atOnce, `w${i}`, spec).plan);
            const { plan, key } = createInstance(inTurn, inputOf(`w${i}`, spec), ctxOf());
            commitPlan(inTurn, plan);
            commitPlan(inTurn, placement.reconcile(inTurn, key, ctxOf()));
            expect(statusOf(atOnce, `w${i}`)?.host).toBe(statusOf(inTurn, `w${i}`)?.host);
          }
        },
      ),
    );
  });

  it.each<[string, Partial<InstanceSpec>, Partial<Policy>]>([
    ['asks for more than there is', { cpus: 5 }, {}],
    ['shall not run yet', { powerState: 'stopped' }, {}],
    ['is one of a gang', { gang: { name: 'g', size: 2 } }, {}],
    ['would pass a limit', {}, { maxConcurrency: 0 }],
  ])('is left as it is when it %s', (_, spec, policy) => {
    const cache = testFleet({ h1: host(4) });
    const { plan } = create(cache, 'web', spec, policy);
    expect(plan.changes.map(({ value }) => value?.kind)).not.toContain('allocation');
  });

  it('passes the gate of a limit, and once where two limits count the same', () => {
    const policy = { maxConcurrency: 5, concurrencyLabel: 'ci=yes', capacityMap: { 'ci=yes': 4 } };
    const cache = testFleet({ h1: host(4) });
    const ctx = ctxOf(policy);
    const input = { ...inputOf('web', {}), labels: { ci: 'yes' } };
    const { plan } = placedAtOnce(cache, createInstance(cache, input, ctx), ctx);
    expect(plan.changes.filter(({ value }) => value?.kind === 'gate')).toHaveLength(1);
    commitPlan(cache, plan);
  });

  it('is left to wait behind whoever is due', () => {
    const cache = testFleet({ h1: host(4) });
    addRecord(cache, testInstance('first'));
    queueOf(cache).add(keys.instance('default', 'first'));
    commitPlan(cache, create(cache, 'second').plan);
    expect(statusOf(cache, 'second')).toMatchObject({ phase: 'Pending' });
    expect([...cache.pendingInstanceKeys()]).toHaveLength(2);
  });

  it('is placed though others wait for what it does not need', () => {
    const cache = testFleet({ h1: host(4) });
    addRecord(cache, testInstance('large', { cpus: 64 }));
    commitPlan(cache, create(cache, 'small').plan);
    expect(statusOf(cache, 'small')).toMatchObject({ host: 'h1' });
  });
});
