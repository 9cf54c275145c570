import { describe, expect, it } from 'vitest';
import { whyClosed, whyRefused } from '../../state/cluster-state.ts';
import { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { AnyRecord, Cluster } from '../../state/records.ts';
import { recordsVersion } from '../../state/upgrade.ts';
import { testContext, testInstance } from '../../testing.ts';
import { openCluster } from './cluster.ts';

const secrets = { tokenSecret: 's'.repeat(43), operatorDigest: 'd'.repeat(64) };

const stored = (more: Partial<Cluster> = {}): Cluster => ({
  kind: 'cluster',
  recordsVersion: recordsVersion - 1,
  epoch: 'epoch_1',
  createdAtMs: 1,
  ...secrets,
  ...more,
});

const led: AnyRecord = { kind: 'leader', holder: 'old', term: 7 };

function cacheOf(records: Readonly<Record<string, AnyRecord>>): Cache {
  const cache = new Cache(() => 0);
  const entries = Object.entries(records);
  cache.apply(
    entries.map(([key, value], i) => ({ key, value, revision: i + 1 })),
    entries.length,
  );
  return cache;
}

const create: Plan = { changes: [{ key: 'instances/default/a', ifRevision: 0, value: testInstance('a') }] };

describe('a store of an earlier form', () => {
  const cache = cacheOf({ [keys.cluster]: stored(), [keys.leader]: led });

  it('is marked, and the term of the server that leads ends with it', () => {
    const { plan, cluster } = openCluster(cache, secrets, testContext());
    expect(cluster.recordsVersion).toBe(recordsVersion);
    expect(plan.changes).toEqual([
      { key: keys.cluster, ifRevision: 1, value: cluster },
      { key: keys.leader, ifRevision: 2, value: { kind: 'leader', holder: '', term: 7 } },
    ]);
  });

  it('takes no other Plan before, so that no server reads a form that it does not know', () => {
    expect(whyClosed(cache)).toMatch(/has not marked the store/);
    expect(whyRefused(create, cache)).toMatch(/has not marked the store/);
    expect(whyRefused(openCluster(cache, secrets, testContext()).plan, cache)).toBeUndefined();
  });
});

it.each<[string, Partial<Cluster>, RegExp | undefined]>([
  ['takes Plans once it is marked', { recordsVersion }, undefined],
  ['refuses those of a server before the mark', { recordsVersion: recordsVersion + 1 }, /a newer Berth/],
  ['refuses all while it is restored', { closed: { by: 'restore', why: 'a restore', sinceMs: 1 } }, /^a restore$/],
])('a store %s', (_, more, why) => {
  const cache = cacheOf({ [keys.cluster]: stored({ recordsVersion, ...more }), [keys.leader]: led });
  const mark: Plan = { changes: [{ key: keys.cluster, ifRevision: 1, value: stored({ recordsVersion }) }] };
  for (const plan of [create, mark])
    if (why === undefined) expect(whyRefused(plan, cache)).toBeUndefined();
    else expect(whyRefused(plan, cache)).toMatch(why);
  if (why !== undefined) expect(() => openCluster(cache, secrets, testContext())).toThrow(/newer|restore/);
});

it('leaves the leader alone when the admin token alone changes its form', () => {
  const text = 't'.repeat(43);
  const { operatorDigest: _, ...rest } = stored({ recordsVersion, operatorToken: text });
  const cache = cacheOf({ [keys.cluster]: rest, [keys.leader]: led });
  const { plan } = openCluster(cache, { ...secrets, digestOf: () => 'x'.repeat(64) }, testContext());
  expect(plan.changes.map(({ key }) => key)).toEqual([keys.cluster]);
});
