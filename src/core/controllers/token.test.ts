import { describe, expect, it } from 'vitest';
import { ownerOf, testToken } from '../access/testing.ts';
import type { Cache } from '../state/cache.ts';
import type { AnyRecord } from '../state/records.ts';
import { commitPlan, testCache, testContext, testInstance } from '../testing.ts';
import { expiredKeptMs, token } from './token.ts';

const instance = testInstance('web');
const share = { instance: 'web', instanceId: instance.metadata.id, verbs: ['console' as const] };
const records: readonly AnyRecord[] = [
  instance,
  testToken('share', { project: 'default', share }),
  testToken('maker'),
  testToken('made', { owner: ownerOf('maker') }),
  testToken('short', { expiresAtMs: 1000 }),
];

function reconcileAll(cache: Cache, nowMs: number): string[] {
  for (const key of [...token.keys(cache)]) commitPlan(cache, token.reconcile(cache, key, testContext({ nowMs })));
  return Array.from(cache.list('token'), ({ value }) => value.metadata.name);
}

/** Deletes a record, and tells which keys the controller is woken for. */
function remove(cache: Cache, kind: 'instance' | 'token', key: string): string[] {
  const woken: string[] = [];
  cache.onChange((change) => void woken.push(...token.wakes(change, cache)));
  const revision = cache.get(kind, key)?.revision ?? 0;
  commitPlan(cache, { changes: [{ key, ifRevision: revision, value: null }] });
  return woken;
}

describe('tokens', () => {
  it('stay while they open something', () => {
    expect(reconcileAll(testCache(records), 999)).toEqual(['share', 'maker', 'made', 'short']);
  });

  it('of an instance end with it', () => {
    const cache = testCache(records);
    expect(remove(cache, 'instance', 'instances/default/web')).toEqual(['tokens/share']);
    expect(reconcileAll(cache, 999)).toEqual(['maker', 'made', 'short']);
  });

  it('end with the token that made them', () => {
    const cache = testCache(records);
    expect(remove(cache, 'token', 'tokens/maker')).toEqual(['tokens/made']);
    expect(reconcileAll(cache, 999)).toEqual(['share', 'short']);
  });

  it('are shown for a day after they have expired', () => {
    const cache = testCache(records);
    expect(reconcileAll(cache, 999 + expiredKeptMs)).toContain('short');
    expect(reconcileAll(cache, 1000 + expiredKeptMs)).not.toContain('short');
  });
});
