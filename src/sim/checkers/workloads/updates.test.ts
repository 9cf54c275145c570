// The checker of updates on crafted histories.

import { describe, expect, it } from 'vitest';
import type { Instance } from '../../../api/resources/instance.ts';
import type { Workload } from '../../../api/resources/workload.ts';
import { testGuest, testHost, testInstance, testWorkloadSpec } from '../../../core/testing.ts';
import { testHistory } from '../../test-history.ts';
import { updatesChecker } from './updates.ts';

const [host] = testHost('h1');
const workload = (replicas: number): Workload => ({
  kind: 'workload',
  schemaVersion: 1,
  metadata: { ...testInstance('web').metadata, id: 'work_1' },
  spec: testWorkloadSpec({
    replicas,
    strategy: { ...testWorkloadSpec().strategy, minHealthyMs: 0, maxSurge: 1, maxUnavailable: 0 },
  }),
  status: { revision: 1, conditions: [], failures: [], copies: 0, updated: 0, ready: 0, available: 0, wanted: 0 },
});
const copy = (name: string, status: Partial<Instance['status']> = {}): Instance =>
  testInstance(
    name,
    {},
    {
      phase: 'Running',
      host: 'h1',
      guest: testGuest({ ready: true }),
      workload: { name: 'web', id: 'work_1', revision: 1, ordinal: 0 },
      ...status,
    },
  );
const leaving = (of: Instance): Instance => ({ ...of, metadata: { ...of.metadata, deletionRequestedAtMs: 1 } });
const history = () => testHistory((facts) => updatesChecker({ ...facts, calmUpdates: true }));

describe('during an update', () => {
  it('sees a copy above replicas and surge', () => {
    const { commit } = history();
    expect(commit(host, workload(1), copy('a'), copy('b'))).toBeUndefined();
    expect(commit(copy('c'))).toBe('workload web has 3 copies after it created one; 2 are allowed');
  });

  it('counts a copy that leaves while it has a host', () => {
    const { commit } = history();
    expect(commit(host, workload(1), copy('a'), copy('b'))).toBeUndefined();
    expect(commit(leaving(copy('a')))).toBeUndefined();
    expect(commit(copy('c'))).toMatch('has 3 copies');
  });

  it('sees that too few ready copies are left', () => {
    const { commit } = history();
    commit(host, workload(2), copy('a'), copy('b'));
    expect(commit(leaving(copy('a')))).toBe('workload web removed ready copy a, and 1 are left; 2 are to be ready');
  });

  it('allows what held before the workload was scaled in the same commit', () => {
    const { commit } = history();
    commit(host, workload(2));
    expect(commit(copy('a'), copy('b'), workload(0))).toBeUndefined();
    expect(commit(leaving(copy('a')), workload(2))).toBeUndefined();
  });
});
