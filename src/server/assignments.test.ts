import { expect, it } from 'vitest';
import { createManualClock } from '../base/manual-clock.ts';
import type { Allocation } from '../core/state/records.ts';
import { keyOf } from '../core/state/keys.ts';
import { testCache, testHost, testInstance } from '../core/testing.ts';
import { Assignments } from './assignments.ts';

it('begins with what is durably held, also where a release of it is under way', async () => {
  const [host, provider] = testHost('h1');
  const instance = testInstance('a', {}, { phase: 'Running', host: 'h1', incarnation: 1 });
  const allocation: Allocation = {
    kind: 'allocation',
    consumer: { id: instance.metadata.id, incarnation: 1, project: 'default', name: 'a' },
    host: 'h1',
    amounts: { [provider.id]: { VCPU: 1 } },
    driver: 'fake',
  };
  const cache = testCache([host, provider, instance, allocation]);
  cache.assume({ changes: [{ key: keyOf(allocation), ifRevision: cache.revision, value: null }] });
  const assignments = new Assignments({ cache, clock: createManualClock() });
  const left = new AbortController();
  for await (const event of assignments.stream('h1', host.status.epoch, 1000, left.signal)) {
    expect(event).toMatchObject({ type: 'sync', assignments: [{ instanceId: instance.metadata.id, incarnation: 1 }] });
    left.abort();
    break;
  }
});
