import { expect, it } from 'vitest';
import { addRecord, commitPlan, testCache, testJob, testTask } from '../testing.ts';
import { keyOfId } from './ids.ts';
import { keys } from './keys.ts';

it('finds resources by id, also those that come, change and go later', () => {
  const [task, job] = [testTask('a'), testJob('a')];
  const cache = testCache([task]);
  expect(keyOfId(cache, 'task', task.metadata.id)).toBe(keys.task('default', 'a'));
  expect(keyOfId(cache, 'job', job.metadata.id)).toBeUndefined();
  addRecord(cache, job);
  addRecord(cache, { ...task, status: { ...task.status, phase: 'Failed' } });
  expect(keyOfId(cache, 'job', job.metadata.id)).toBe(keys.job('default', 'a'));
  expect(keyOfId(cache, 'task', task.metadata.id)).toBe(keys.task('default', 'a'));
  expect(keyOfId(cache, 'task', job.metadata.id)).toBeUndefined();
  const again = { ...task, metadata: { ...task.metadata, id: 'task_other' } };
  addRecord(cache, again);
  expect([task, again].map(({ metadata }) => keyOfId(cache, 'task', metadata.id))).toEqual([
    undefined,
    keys.task('default', 'a'),
  ]);
  const entry = cache.get('task', keys.task('default', 'a'));
  commitPlan(cache, { changes: [{ key: keys.task('default', 'a'), ifRevision: entry?.revision ?? 0, value: null }] });
  expect(keyOfId(cache, 'task', 'task_other')).toBeUndefined();
});
