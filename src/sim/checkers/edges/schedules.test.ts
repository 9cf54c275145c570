import { describe, expect, it } from 'vitest';
import type { Task } from '../../../api/resources/task.ts';
import { testCache, testTask } from '../../../core/testing.ts';
import { testHistory } from '../../test-history.ts';
import { schedulesChecker } from './schedules.ts';

function task(status: Partial<Task['status']>, id = 'task_1', spec: Partial<Task['spec']> = {}): Task {
  const made = testTask('schedule-1', spec, status);
  return { ...made, metadata: { ...made.metadata, id } };
}

const scene = () =>
  testHistory((facts) =>
    schedulesChecker({ ...facts, servers: () => [{ name: 'server-1', cache: testCache([]), wallMs: () => 5 }] }),
  );

const key = 'tasks/default/schedule-1';
const placed = { phase: 'Placed', host: 'h1', heldUntilMs: 9 } as const;

describe('a task of /schedule', () => {
  it.each<[string, Task, Task | string, RegExp]>([
    ['is one', task({}), task({}, 'task_2'), /one request has made the tasks task_1 and task_2/],
    ['does not go back', task(placed), task({}), /was Placed, and is Pending/],
    ['does not move', task(placed), task({ ...placed, host: 'h2' }), /has moved from h1 to h2/],
    ['ends once', task({ phase: 'Failed' }), task({ phase: 'Expired' }), /has ended twice/],
    ['stays while it holds room', task(placed), key, /was removed while it was Placed/],
  ])('%s', (_, first, second, fault) => {
    const { commit } = scene();
    expect(commit(first)).toBeUndefined();
    expect(commit(second)).toMatch(fault);
  });

  it('may be placed, end and go', () => {
    const { commit } = scene();
    expect([task({}), task(placed), task({ ...placed, phase: 'Expired' }), key].map((each) => commit(each))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});

describe('at rest', () => {
  it.each<[string, Task, RegExp[]]>([
    ['may hold its room', task(placed), []],
    ['holds none when its time is over', task({ ...placed, heldUntilMs: 4 }), [/is over, and it holds its room/]],
    ['does not wait where it may not', task({}, 'task_1', { whenFull: 'fail' }), [/may not wait, and does/]],
    ['may wait', task({}, 'task_1', { whenFull: 'wait' }), []],
  ])('a task %s', (_, is, faults) => {
    const { commit, unrest } = scene();
    commit(is);
    expect(unrest()).toEqual(faults.map((fault) => expect.stringMatching(fault)));
  });

  it('what was answered is there, and what was released holds nothing', () => {
    const { commit, unrest, intents } = scene();
    intents.schedules.set('task_1', { key: 'a', released: true });
    intents.schedules.set('task_2', { key: 'b', released: false });
    commit(task(placed));
    expect(unrest()).toEqual([
      expect.stringContaining('answered with task_2, and no commit made it'),
      expect.stringContaining('was released, and is Placed'),
    ]);
  });
});
