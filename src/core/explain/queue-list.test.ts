import { describe, expect, it } from 'vitest';
import type { Job } from '../../api/resources/job.ts';
import { placement } from '../controllers/placement.ts';
import { release } from '../ledger/ledger.ts';
import { keys } from '../state/keys.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testImage,
  testInstance,
  testJob,
} from '../testing.ts';
import { listQueue } from './queue-list.ts';

const ctx = testContext();

describe('the queue for people', () => {
  it('tells how many of a gang fit at once today, when room came that is not enough', () => {
    const cache = testCache([testImage(), ...testHost('h1', { capacity: { VCPU: 2, MEMORY_MB: 8192 } })]);
    const reconcile = (name: string): void =>
      commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
    for (const name of ['x', 'y']) {
      addRecord(cache, testInstance(name, { cpus: 1, memoryMiB: 16 }));
      reconcile(name);
    }
    const spec = { cpus: 1, memoryMiB: 16, gang: { name: 'g', size: 2 } };
    for (const [i, name] of ['a', 'b'].entries()) addRecord(cache, testInstance(name, spec, {}, { createdAtMs: i }));
    reconcile('a');
    const messages = (): string[] => listQueue(cache, { nowMs: 10, limit: 10 }).items.map(({ message }) => message);
    expect(messages()).toEqual(
      Array.from('ab', () => 'gang g: 0 of 2 fit at once; then a: 0 of 1 host: 1 InsufficientCpu'),
    );
    const [held] = cache.list('allocation');
    if (held) commitPlan(cache, { changes: release(held) });
    reconcile('a');
    expect(messages()).toEqual(
      Array.from('ab', () => 'gang g: 1 of 2 fit at once; then b: 0 of 1 host: 1 InsufficientCpu'),
    );
  });

  it('tells when the instance of a job may start', () => {
    const cache = testCache([testImage()]);
    const instances = ['job-1', 'job-2', 'other'];
    for (const [i, name] of instances.entries()) {
      addRecord(cache, testInstance(name, {}, {}, { createdAtMs: i }));
      commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
    }
    for (const instance of ['job-1', 'job-2']) addRecord(cache, testJob(`of-${instance}`, {}, { instance }));
    const startOf = ({ status }: Job): number | undefined => (status.instance === 'job-1' ? 7_000 : undefined);
    const { items } = listQueue(cache, { nowMs: 10, limit: 10, startOf });
    expect(items.map(({ instance, expectedStartMs }) => [instance, expectedStartMs])).toEqual([
      ['job-1', 7_000],
      ['job-2', undefined],
      ['other', undefined],
    ]);
  });
});
