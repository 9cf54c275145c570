// The engine's answer equals the full scan's with rules about neighbours: random groups, labels and histories, with
// hosts that change zone, leave and return, and instances that fail and stop.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Prng, seededPrng } from '../../../base/prng.ts';
import type { GroupSpec } from '../../../api/resources/group.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { AffinityRule } from '../../../api/resources/placement-rules.ts';
import { placement } from '../../controllers/placement.ts';
import { release } from '../../ledger/ledger.ts';
import type { Cache } from '../../state/cache.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testGroup,
  testHost,
  testImage,
  testInstance,
} from '../../testing.ts';
import { belongingOf } from '../neighbours/belonging.ts';
import { Engine } from './engine.ts';
import { type Fleet, fleetOf } from '../fleet.ts';
import { type Request, requestOf } from '../request.ts';
import { engineOf } from '../schedule.ts';
import { plainAnswer } from './test-full-scan.ts';

const apps = ['a', 'b', 'c'] as const;
const keysOfHosts = ['host', 'zone', 'rack'] as const;

function pick<T>(prng: Prng, all: readonly [T, ...T[]]): T {
  return all[prng.below(all.length)] ?? all[0];
}

function drawHost(prng: Prng, name: string) {
  const size = seededPrng(0, name);
  return testHost(name, {
    ready: !prng.chance(1, 10),
    spec: { paused: prng.chance(1, 10), ...(prng.chance(1, 2) ? { pool: 'ci' } : {}) },
    labels: {
      ...(prng.chance(5, 6) ? { zone: `z${prng.below(3)}` } : {}),
      ...(prng.chance(5, 6) ? { rack: `r${prng.below(5)}` } : {}),
      ...(prng.chance(1, 2) ? { disk: 'ssd' } : {}),
    },
    capacity: { VCPU: 4 + size.below(12), MEMORY_MB: 1024 * (4 + size.below(16)) },
  });
}

function drawRule(prng: Prng): AffinityRule {
  const required = prng.chance(1, 2);
  return {
    to: { app: pick(prng, apps), ...(prng.chance(1, 5) ? { tier: 'x' } : {}) },
    by: pick(prng, keysOfHosts),
    required,
    ...(required || prng.chance(1, 2) ? {} : { weight: 1 + prng.below(100) }),
  };
}

function drawPolicy(prng: Prng): GroupSpec {
  const rule = () => ({ by: pick(prng, keysOfHosts), required: prng.chance(1, 2) });
  return {
    description: '',
    ...(prng.chance(1, 3) ? { affinity: rule() } : {}),
    ...(prng.chance(1, 3) ? { antiAffinity: rule() } : {}),
    ...(prng.chance(1, 3) ? { spread: { ...rule(), maxSkew: 1 + prng.below(2) } } : {}),
    ...(prng.chance(1, 3) ? { maxPerHost: 1 + prng.below(3) } : {}),
  };
}

function drawInstance(prng: Prng, name: string) {
  const rules = (): AffinityRule[] => Array.from({ length: 1 + prng.below(2) }, () => drawRule(prng));
  const placementSpec: InstanceSpec['placement'] = {
    ...(prng.chance(1, 4) ? { group: `g${prng.below(3)}` } : {}),
    ...(prng.chance(1, 3) ? { affinity: rules() } : {}),
    ...(prng.chance(1, 3) ? { antiAffinity: rules() } : {}),
    ...(prng.chance(1, 3)
      ? {
          spread: [
            {
              by: pick(prng, keysOfHosts),
              maxSkew: 1 + prng.below(2),
              required: prng.chance(1, 2),
              ...(prng.chance(1, 2) ? { among: { app: pick(prng, apps) } } : {}),
            },
          ],
        }
      : {}),
    ...(prng.chance(1, 4) ? { maxPerHost: 1 + prng.below(2) } : {}),
    ...(prng.chance(1, 5) ? { hostLabels: { disk: 'ssd' } } : {}),
    ...(prng.chance(1, 6) ? { pool: 'ci' } : {}),
    profile: prng.chance(1, 2) ? 'distribute-load' : 'optimize-utilization',
  };
  return testInstance(
    name,
    { cpus: 1 + prng.below(2), memoryMiB: 512, placement: placementSpec },
    {},
    { labels: { app: pick(prng, apps), ...(prng.chance(1, 3) ? { tier: 'x' } : {}) } },
  );
}

/** An engine that walks only a few steps, so that small fleets reach the later strategies. */
const hastyEngineOf = defineFleetEngine();
function defineFleetEngine(): (fleet: Fleet) => Engine {
  const engines = new WeakMap<Fleet, Engine>();
  return (fleet) => {
    let engine = engines.get(fleet);
    if (!engine) engines.set(fleet, (engine = new Engine(fleet, { few: 1, most: () => 2, leaders: 2 })));
    return engine;
  };
}

function expectPlainAnswer(cache: Cache, request: Request): void {
  const fleet = fleetOf(cache);
  const expected = plainAnswer(request, fleet);
  for (const engine of [engineOf(cache), hastyEngineOf(fleet)]) {
    const choice = engine.choose(request);
    expect(choice && { host: fleet.names[choice.slot], score: choice.score }).toEqual(expected);
  }
}

function step(cache: Cache, prng: Prng, number: number, ctx: Context): void {
  switch (prng.below(10)) {
    case 0:
      for (const record of drawHost(prng, `h${prng.below(14)}`)) addRecord(cache, record);
      return;
    case 1: {
      const [host] = [...cache.list('host')].slice(prng.below(4));
      const revision = cache.revision + 1;
      if (host && prng.chance(1, 2)) cache.apply([{ key: host.key, value: null, revision }], revision);
      return;
    }
    case 2: {
      const [allocation] = [...cache.list('allocation')].slice(prng.below(5));
      if (!allocation) return;
      commitPlan(cache, { changes: release(allocation) });
      const instance = cache.instanceById(allocation.value.consumer.id)?.value;
      const phase = pick(prng, ['Failed', 'Exited', 'Stopped'] as const);
      if (instance) addRecord(cache, { ...instance, status: { ...instance.status, phase } });
      return;
    }
    case 3:
      addRecord(cache, testGroup(`g${prng.below(3)}`, drawPolicy(prng)));
      return;
    default: {
      const instance = drawInstance(prng, `i${number}`);
      const request = requestOf(cache, instance);
      for (let again = 0; again < 2; again++) expectPlainAnswer(cache, request);
      addRecord(cache, instance);
      commitPlan(cache, placement.reconcile(cache, keys.instance('default', `i${number}`), ctx));
    }
  }
}

/** The few requests that are repeated for large groups, each by instances of two apps. */
const largeGroups: readonly InstanceSpec['placement'][] = [
  { antiAffinity: [{ to: { app: 'a' }, by: 'host', required: true }] },
  { antiAffinity: [{ to: { app: 'a' }, by: 'host', required: false }] },
  { maxPerHost: 2 },
  { spread: [{ by: 'host', maxSkew: 1, required: true }] },
  { spread: [{ by: 'host', maxSkew: 1, required: false, among: { app: 'a' } }] },
];

/** Instances are created, placed, fail and change labels; hosts leave and return with their instances. */
function largeGroupStep(cache: Cache, prng: Prng, number: number, ctx: Context): void {
  const all = [...cache.list('instance')];
  const some = all[prng.below(Math.max(1, all.length))]?.value;
  switch (prng.below(10)) {
    case 0:
      if (some) addRecord(cache, { ...some, status: { ...some.status, phase: 'Failed' } });
      break;
    case 1:
      if (some) addRecord(cache, { ...some, metadata: { ...some.metadata, labels: { app: pick(prng, ['a', 'b']) } } });
      break;
    case 2: {
      const name = `h${prng.below(6)}`;
      const key = keys.host(name);
      const revision = cache.revision + 1;
      const provider = cache.providersOfHost(name)[0]?.value;
      if (cache.get('host', key)) cache.apply([{ key, value: null, revision }], revision);
      else if (provider) addRecord(cache, testHost(name)[0]);
      break;
    }
    default: {
      const meta = { labels: { app: pick(prng, ['a', 'b']) } };
      const spec = { cpus: 1, memoryMiB: 16, placement: largeGroups[prng.below(largeGroups.length)] ?? {} };
      const instance = testInstance(`i${number}`, spec, {}, meta);
      addRecord(cache, instance);
      commitPlan(cache, placement.reconcile(cache, keys.instance('default', `i${number}`), ctx));
    }
  }
  for (const app of ['a', 'b']) {
    for (const asked of largeGroups) {
      const instance = testInstance('asks', { cpus: 1, memoryMiB: 16, placement: asked }, {}, { labels: { app } });
      expectPlainAnswer(cache, requestOf(cache, instance));
    }
  }
}

/** A history with requests of one shape and unchanged hosts, so that the engine's caches are reused. */
function calmStep(cache: Cache, prng: Prng, number: number, ctx: Context): void {
  const draw = prng.below(12);
  if (draw === 0) {
    // One more host, without the labels that rules use.
    for (const record of testHost(`n${number}`, { capacity: { VCPU: 8, MEMORY_MB: 8192 } })) addRecord(cache, record);
    return;
  }
  if (draw < 4) {
    const [allocation] = [...cache.list('allocation')].slice(prng.below(9));
    if (allocation) commitPlan(cache, { changes: release(allocation) });
    return;
  }
  const { metadata, spec } = drawInstance(prng, `i${number}`);
  const { hostLabels: _labels, pool: _pool, ...rules } = spec.placement;
  const placementSpec = { ...rules, profile: 'optimize-utilization' as const };
  const instance = testInstance(metadata.name, { cpus: 1, memoryMiB: 512, placement: placementSpec }, {}, metadata);
  expectPlainAnswer(cache, requestOf(cache, instance));
  addRecord(cache, instance);
  commitPlan(cache, placement.reconcile(cache, keys.instance('default', `i${number}`), ctx));
}

describe('the engine, with rules about neighbours', () => {
  it('answers as the full scan does, for any groups and history', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([testImage(), testGroup('g0', drawPolicy(prng)), testGroup('g1', drawPolicy(prng))]);
        for (let i = 0; i < 6; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
        const ctx = testContext();
        for (let i = 0; i < 60; i++) step(cache, prng, i, ctx);
      }),
      { numRuns: 150 },
    );
  });

  it('answers so when one shape is asked for again and again', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([testImage(), testGroup('g0', drawPolicy(prng)), testGroup('g1', drawPolicy(prng))]);
        for (let i = 0; i < 12; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
        const ctx = testContext();
        for (let i = 0; i < 80; i++) calmStep(cache, prng, i, ctx);
      }),
      { numRuns: 60 },
    );
  });

  it('answers so for large groups', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const capacity = { VCPU: 12, MEMORY_MB: 8192 };
        const hosts = Array.from({ length: 6 }, (_, i) => testHost(`h${i}`, { capacity }));
        const cache = testCache([testImage(), ...hosts.flat()]);
        const ctx = testContext();
        for (let i = 0; i < 50; i++) largeGroupStep(cache, prng, i, ctx);
      }),
      { numRuns: 40 },
    );
  });

  it('answers so in trials, too', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([testImage(), testGroup('g0', drawPolicy(prng))]);
        for (let i = 0; i < 6; i++) for (const record of drawHost(prng, `h${i}`)) addRecord(cache, record);
        const ctx = testContext();
        for (let i = 0; i < 20; i++) step(cache, prng, i, ctx);
        const fleet = fleetOf(cache);
        const request = requestOf(cache, drawInstance(prng, 'tried'));
        const before = plainAnswer(request, fleet);
        fleet.tentatively(() => {
          for (let i = 0; i < 4; i++) {
            const slot = prng.below(fleet.length);
            if (fleet.hosts[slot]) fleet.groups.try(slot, belongingOf(drawInstance(prng, 'other')), 1);
            for (let again = 0; again < 2; again++) expectPlainAnswer(cache, request);
          }
        });
        expect(plainAnswer(request, fleet)).toEqual(before);
      }),
      { numRuns: 60 },
    );
  });
});
