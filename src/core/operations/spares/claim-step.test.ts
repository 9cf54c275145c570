// What a server learns when it begins a step: whether a call may have been made before.

import { describe, expect, it } from 'vitest';
import { keys } from '../../state/keys.ts';
import { commitPlan, testCache, testSpare } from '../../testing.ts';
import { claimStep } from './claim-step.ts';

const made = testSpare('metal-1', {}, { phase: 'Provisioning', attempt: 1, attemptAtMs: 1 });
const step = {
  key: keys.spare('default', 'metal-1'),
  id: made.metadata.id,
  phase: 'Provisioning' as const,
  attempt: 1,
};
const former = { key: keys.leader, ifRevision: 3 };
const next = { key: keys.leader, ifRevision: 244 };

const scene = () => testCache([made]);
const claim = (cache: ReturnType<typeof scene>, fence = former) => {
  const { is, plan } = claimStep(cache, { step, fence });
  expect(plan.conditions).toEqual([fence]);
  commitPlan(cache, { changes: plan.changes }); // whether the fence holds is for the store to say
  return is;
};

describe('a step is begun', () => {
  it('by the first server: no call was made', () => {
    expect(claim(scene())).toBe('fresh');
  });

  it('by the same server again, after a write whose outcome it did not learn: no call was made', () => {
    const cache = scene();
    expect([claim(cache), claim(cache)]).toEqual(['fresh', 'fresh']);
  });

  it('by the next server, also again after a write whose outcome it did not learn: a call may have been made', () => {
    const cache = scene();
    expect([claim(cache), claim(cache, next), claim(cache, next)]).toEqual(['fresh', 'resumed', 'resumed']);
  });
});
