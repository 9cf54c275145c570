// Changes that explain suggests do help: they are applied, and the instance (or all of its gang) is placed.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import type { NearestChange } from '../../api/explanation.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { type Prng, seededPrng } from '../../base/prng.ts';
import { placement } from '../controllers/placement.ts';
import { releaseAllOf } from '../ledger/ledger.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../testing.ts';
import { explain } from './explain.ts';

const ctx = testContext();
const hostOptions = (prng: Prng) => {
  const labels: Record<string, string> = prng.chance(1, 5) ? {} : { zone: `z${prng.below(3)}` };
  const pool = prng.chance(1, 4) ? { pool: 'ci' } : {};
  const paused = prng.chance(1, 6) ? { paused: true } : {};
  return {
    capacity: { VCPU: 2 + 2 * prng.below(3), MEMORY_MB: 8192 },
    labels,
    spec: { ...pool, ...paused },
    ready: !prng.chance(1, 8),
  };
};

function spec(prng: Prng): Partial<InstanceSpec> {
  const to = { app: 'a' };
  const placements: readonly InstanceSpec['placement'][] = [
    {},
    {},
    { pool: 'ci' },
    { hostLabels: { zone: 'z1' } },
    { spread: [{ by: 'zone', maxSkew: 1, required: true }] },
    { antiAffinity: [{ to, by: 'host', required: true }], spread: [{ by: 'zone', maxSkew: 1, required: true }] },
    { antiAffinity: [{ to, by: 'zone', required: true }] },
    { affinity: [{ to, by: 'zone', required: true }] },
    { maxPerHost: 1 },
  ];
  return { cpus: 1 + prng.below(4), memoryMiB: 512, placement: placements[prng.below(placements.length)] ?? {} };
}

function isPlaced(cache: Cache, name: string): boolean {
  return cache.get('instance', keys.instance('default', name))?.value.status.host !== undefined;
}

/** The world of a seed, new each time: hosts, placed instances, and those that wait together. */
function world(seed: number) {
  const prng = seededPrng(seed);
  const hosts = new Map<string, ReturnType<typeof hostOptions>>(
    Array.from({ length: 1 + prng.below(6) }, (_, i) => [`h${i}`, hostOptions(prng)] as const),
  );
  const cache = testCache([testImage(), ...[...hosts].flatMap(([name, options]) => testHost(name, options))]);
  const labelled = () => (prng.chance(1, 2) ? { app: 'a' } : { app: 'b' });
  for (let i = 0; i < 12; i++) {
    const one = testInstance(`x${i}`, spec(prng), {}, { labels: labelled(), id: `inst_x${i}` });
    addRecord(cache, one);
    commitPlan(cache, placement.reconcile(cache, keys.instance('default', `x${i}`), ctx));
    if (!isPlaced(cache, `x${i}`))
      cache.apply(
        [{ key: keys.instance('default', `x${i}`), value: null, revision: cache.revision + 1 }],
        cache.revision + 1,
      );
  }
  const size = 1 + prng.below(4);
  const alike = spec(prng);
  const labels = labelled();
  for (let i = 0; i < size; i++) {
    const asked = prng.chance(1, 3) ? spec(prng) : alike;
    addRecord(
      cache,
      testInstance(
        `w${i}`,
        { ...asked, ...(size === 1 ? {} : { gang: { name: 'g', size } }) },
        {},
        { createdAtMs: i, labels, id: `inst_w${i}` },
      ),
    );
  }
  return { cache, hosts, size };
}

/** Applies the suggested change. False for kinds that are not tested here. */
function follow(
  { cache, hosts }: ReturnType<typeof world>,
  { change, message, hosts: where, instances }: NearestChange,
): boolean {
  const [host = ''] = where;
  switch (change) {
    case 'AddHost': {
      const count = Number(/^(\d+) more hosts/.exec(message)?.[1] ?? 1);
      for (let i = 0; i < count; i++)
        for (const record of testHost(`new${i}`, hosts.get(host))) addRecord(cache, record);
      return true;
    }
    case 'ResumeHost':
    case 'HostBack': {
      const old = cache.get('host', keys.host(host))?.value;
      const options = hosts.get(host);
      if (!old || !options) return false;
      const { paused, ...rest } = options.spec;
      const [changed] = testHost(
        host,
        change === 'HostBack' ? { ...options, ready: true } : { ...options, spec: rest },
      );
      addRecord(cache, changed);
      return paused === true || change === 'HostBack';
    }
    case 'InstancesEnd':
      for (const each of instances ?? []) {
        const key = `instances/${each}`;
        const gone = cache.get('instance', key);
        if (!gone) return false;
        commitPlan(cache, {
          changes: [...releaseAllOf(cache, gone.value.metadata.id), { key, ifRevision: gone.revision, value: null }],
        });
      }
      return true;
    default:
      return false;
  }
}

it('what is said to help does', () => {
  const followed = new Map<string, number>();
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const { cache, size } = world(seed);
      const first = cache.get('instance', keys.instance('default', 'w0'))?.value ?? expect.unreachable();
      const { nearest = [], summary } = explain(cache, first);
      for (const change of nearest) {
        const again = world(seed);
        if (!follow(again, change)) continue;
        const kind = `${change.change} ${size > 1 ? 'gang' : 'one'}`;
        followed.set(kind, (followed.get(kind) ?? 0) + 1);
        commitPlan(again.cache, placement.reconcile(again.cache, keys.instance('default', 'w0'), ctx));
        for (let i = 0; i < size; i++)
          expect({ change: change.message, summary, who: i, placed: isPlaced(again.cache, `w${i}`) }).toMatchObject({
            placed: true,
          });
      }
    }),
    { numRuns: 200 },
  );
  // Of each of four kinds, for an instance and for a gang.
  expect(followed.size).toBeGreaterThan(4);
});
