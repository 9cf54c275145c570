import { describe, expect, it } from 'vitest';
import { fingerprint } from '../../../base/hash.ts';
import { testTask } from '../../../core/testing.ts';
import { deadLetterId } from '../../../server/intake/amqp/dead-letter.ts';
import { sha256 } from '../../../server/intake/amqp/job-taker.ts';
import { seededPrng } from '../../../base/prng.ts';
import { taskQueue, TaskRequests, tasksUse } from '../../task-requests.ts';
import { testHistory } from '../../test-history.ts';
import type { Checker } from '../checker.ts';
import { taskMessagesChecker } from './task-messages.ts';

const text = '{"task_id":"r","requested_cpu":1,"requested_memory":64}';
const invalid = '{"task_id":"bad"}';
const settings = { ...tasksUse.settingsOf(seededPrng(1)), retry: { queue: 'retry', delayMs: 1, attemptsMax: 3 } };

function scene(stored: (queue: string, id: string) => boolean = () => false) {
  const requests = new TaskRequests();
  requests.noteSent(text, { isValid: true, id: 'r' });
  requests.noteSent(invalid, { isValid: false, id: undefined });
  let checker: Checker | undefined;
  const history = testHistory((facts) => {
    checker = taskMessagesChecker({
      ...facts,
      taskMessages: { requests, broker: { ready: () => [], stored, settings } },
    });
    return checker;
  });
  const say = (kind: 'acknowledged' | 'published', body: string, queue: string, attempt?: number) => {
    const headers = attempt === undefined ? {} : { headers: { 'x-berth-attempt': attempt } };
    const envelope = { exchange: 'tasks', routingKey: queue, ...headers };
    return checker?.onTaskMessage?.({ kind, envelope, body: Buffer.from(body), queues: [queue] });
  };
  return { ...history, requests, say };
}

/** Placed for an attempt of the request. */
function placed(attempt: number, id: string) {
  const task = testTask(
    `schedule-${fingerprint(`amqp:${sha256('r')}:${attempt}`)}`,
    {},
    { phase: 'Placed', host: 'h1' },
  );
  return { ...task, metadata: { ...task.metadata, id } };
}

const result = (id: string, name = 'h1') => JSON.stringify({ task_id: 'r', id, status: 'completed', result: { name } });

describe('a message of the task queue', () => {
  it('is not acknowledged before anything follows it', () => {
    expect(scene().say('acknowledged', text, taskQueue)).toMatch(/without a result, another attempt or a dead letter/);
  });

  it('is acknowledged after its result, its next attempt, or its dead letter', () => {
    const answered = scene();
    answered.commit(placed(1, 'task_1'));
    answered.say('published', result('task_1'), 'results');
    const retried = scene();
    retried.say('published', text, 'retry', 2);
    const buried = scene((_, id) => id === deadLetterId(Buffer.from(text)));
    for (const { say } of [answered, retried, buried]) expect(say('acknowledged', text, taskQueue)).toBeUndefined();
    expect(retried.say('acknowledged', text, taskQueue, 2)).toMatch(/without a result/);
  });
});

describe('a request', () => {
  it('is placed once in all its attempts', () => {
    const { commit } = scene();
    expect(commit(placed(1, 'task_1'))).toBeUndefined();
    expect(commit(placed(1, 'task_1'))).toBeUndefined();
    expect(commit(placed(3, 'task_2'))).toMatch(/request r was placed as task_1 and as task_2/);
  });

  it('has one result', () => {
    const { commit, say } = scene();
    commit(placed(1, 'task_1'));
    expect(say('published', result('task_1'), 'results')).toBeUndefined();
    expect(say('published', result('task_1', 'h2'), 'results')).toMatch(/was answered h1 and h2/);
    expect(say('published', result('task_9'), 'results')).toMatch(/task_9, which was not placed for it/);
  });

  it('is answered at rest, and what is none is among the dead letters', () => {
    const { requests, unrest } = scene();
    requests.noteConfirmed(text);
    requests.noteConfirmed(invalid);
    expect(unrest()).toEqual([
      'request r was accepted, and has no result',
      `the message ${invalid} is not among the dead letters`,
    ]);
  });
});
