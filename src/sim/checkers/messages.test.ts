import { describe, expect, it } from 'vitest';
import type { Job, JobResultDelivery } from '../../api/resources/job.ts';
import { testJob } from '../../core/testing.ts';
import { deadLetterId } from '../../server/intake/amqp/dead-letter.ts';
import { JobRequests } from '../job-requests.ts';
import { testHistory } from '../test-history.ts';
import { deadLetterQueue, jobsQueue } from '../world/broker/sim-broker.ts';
import type { Checker, MessageFacts } from './checker.ts';
import { messagesChecker } from './messages.ts';

const requestId = '00000000-0000-4000-8000-000000000001';
const commit = 'c0ffee'.padEnd(40, '0');
const text = JSON.stringify({ request_id: requestId, commit_sha: commit });
const invalid = JSON.stringify({ request_id: 'seven' });
const request = { requestId, source: 'manual', submittedAt: '2026-01-01T00:00:00Z', digest: 'd' } as const;
const repo = { url: 'http://git.test/app.git', commit };
const result: JobResultDelivery = {
  messageId: 'jobresult.1',
  body: `{"request_id":"${requestId}"}`,
  exchange: 'waiting',
};

function job(status: Partial<Job['status']> = {}, id = 'job_1'): Job {
  return testJob(`req-${requestId}`, { repo, request }, status, { id });
}

function scene(broker: Partial<MessageFacts['broker']> = {}) {
  const requests = new JobRequests();
  requests.noteSent('valid', text);
  requests.noteSent('invalid', invalid);
  let checker: Checker | undefined;
  const history = testHistory((facts) => {
    const idle = { ready: () => [], stored: () => false, storedResult: () => false, resultsBound: true };
    const settings = { waitingMax: 1 } as MessageFacts['broker']['settings']; // of which it reads no more
    checker = messagesChecker({ ...facts, messages: { requests, broker: { ...idle, settings, ...broker } } });
    return checker;
  });
  const say = (kind: 'acknowledged' | 'published', body: string, messageId = 'x') => {
    const [queue, routingKey] = kind === 'acknowledged' ? [jobsQueue, 'jobrequest.v1'] : ['results', 'jobresult.v1'];
    const envelope = { exchange: 'solstice.jobs', routingKey, messageId };
    return checker?.onMessage?.({ kind, envelope, body: Buffer.from(body), queues: [queue] });
  };
  return { ...history, requests, say };
}

describe('a message of the job queue', () => {
  it('is acknowledged when its job is durable', () => {
    const { commit: write, say } = scene();
    write(job());
    expect(say('acknowledged', text)).toBeUndefined();
  });

  it('is acknowledged when its dead letter is stored', () => {
    const stored = (queue: string, id: string): boolean =>
      queue === deadLetterQueue && id === deadLetterId(Buffer.from(invalid));
    expect(scene({ stored }).say('acknowledged', invalid)).toBeUndefined();
  });

  it.each([
    ['before its job is durable', text, /before its job was durable/],
    ['without a dead letter', invalid, /is not among the dead letters/],
  ])('is at fault when it is acknowledged %s', (_, body, fault) =>
    expect(scene().say('acknowledged', body)).toMatch(fault),
  );

  it('is at fault when it is acknowledged for the job of another body', () => {
    const { commit: write, requests, say } = scene();
    const other = JSON.stringify({ request_id: requestId, commit_sha: 'f'.repeat(40) });
    requests.noteSent('conflicting', other);
    write(job());
    expect(say('acknowledged', other)).toMatch(/its id is another request's/);
  });

  it('that the broker has confirmed has a job at rest, or waits in the queue', () => {
    const idle = scene();
    idle.requests.noteConfirmed(text);
    expect(idle.unrest()).toEqual([`request ${requestId} was accepted, and has no job`]);
    idle.commit(job({ phase: 'Queued' }));
    expect(idle.unrest()).toEqual([]);
  });

  it('does not stay in the queue when no job waits', () => {
    const envelope = { exchange: '', routingKey: '' };
    const ready = (queue: string) =>
      queue === jobsQueue ? [{ envelope, body: Buffer.from(text), deliveries: 9 }] : [];
    const busy = scene({ ready });
    expect(busy.unrest()).toEqual([`a message delivered 9 times stays in the queue though 0 jobs wait: ${text}`]);
    busy.commit(job({ phase: 'Queued' }));
    expect(busy.unrest()).toEqual([]);
  });
});

describe('a request', () => {
  it('has one job', () => {
    const { commit: write } = scene();
    write(job());
    expect(write(job({}, 'job_2'))).toBe(`request ${requestId} has made the jobs job_1 and job_2`);
  });
});

describe('the result of a job', () => {
  const ended = (more: Partial<JobResultDelivery> = {}): Job =>
    job({ phase: 'Succeeded', result: { ...result, ...more } });

  it.each<[string, Job, string | undefined, Partial<MessageFacts['broker']>?]>([
    ['confirmed', ended({ exchange: 'confirmed' }), undefined, { storedResult: () => true }],
    ['unrouted', ended({ exchange: 'unrouted' }), undefined, { resultsBound: false }],
    ['not there', job({ phase: 'Failed' }), 'has ended without a result'],
    ['not sent', ended(), 'has a result that is not sent'],
    ['not sent to reply_to', ended({ reply: 'waiting' }), 'has a result that is not sent'],
    [
      'kept though a queue is bound',
      ended({ exchange: 'unrouted' }),
      'has a result that is not sent, and a queue waits',
    ],
    [
      'called confirmed to reply_to',
      ended({ exchange: 'confirmed', reply: 'confirmed' }),
      'has an answer that is called confirmed, and its queue never had it',
      { storedResult: () => true },
    ],
    [
      'called confirmed',
      ended({ exchange: 'confirmed' }),
      'has a result that is called confirmed, and no queue had it',
    ],
  ])('at rest: %s', (_, record, fault, broker) => {
    const { commit: write, unrest } = scene(broker);
    write(record);
    expect(unrest()).toEqual(fault === undefined ? [] : [`job ${record.metadata.name} ${fault}`]);
  });

  it('is not made twice', () => {
    const { commit: write } = scene();
    write(ended());
    expect(write(ended({ body: '{}' }))).toMatch(/has changed$/);
  });

  it('is confirmed for good', () => {
    const { commit: write } = scene();
    write(ended({ exchange: 'confirmed' }));
    expect(write(ended())).toMatch(/was confirmed, and is waiting$/);
  });

  it('does not go with its job before it was sent', () => {
    const { commit: write } = scene();
    write(ended());
    expect(write(`jobs/default/req-${requestId}`)).toMatch(/was removed before its result was sent$/);
  });

  it('may be sent twice, with one body and one name', () => {
    const { say } = scene();
    expect(say('published', result.body, 'jobresult.1')).toBeUndefined();
    expect(say('published', result.body, 'jobresult.1')).toBeUndefined();
    expect(say('published', `{"request_id":"${requestId}","more":1}`, 'jobresult.1')).toMatch(/was sent as/);
    expect(say('published', result.body, 'jobresult.2')).toMatch(/was sent as jobresult.1 and as jobresult.2$/);
  });
});
