import { expect, it } from 'vitest';
import { placement } from '../../controllers/placement.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';
import { requestOf } from '../request.ts';
import { schedule, summarize } from '../schedule.ts';

it('a host takes no more instances than its operator allows', () => {
  const cache = testCache([testImage(), ...testHost('h1', { spec: { instancesMax: 2 } })]);
  const ctx = testContext();
  for (const name of ['a', 'b', 'c']) {
    addRecord(cache, testInstance(name));
    commitPlan(cache, placement.reconcile(cache, `instances/default/${name}`, ctx));
  }
  const answer = schedule(cache, requestOf(cache, testInstance('c')));
  expect(answer.placed ? '' : summarize(answer)).toBe('0 of 1 host: 1 InstancesMax');
  expect(cache.heldOnHost('h1')).toBe(2);
});
