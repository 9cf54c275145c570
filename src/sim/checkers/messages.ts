// Invariant 4, of messages: a request that the broker has becomes one job; it is acknowledged only when its job or its dead
// letter is durable; an ended job has one result, of one name and one body, which is confirmed or openly unrouted at rest.

import { isFinal, type Job } from '../../api/resources/job.ts';
import { keys } from '../../core/state/keys.ts';
import { deadLetterId } from '../../server/intake/amqp/dead-letter.ts';
import type { Commit } from '../history.ts';
import type { MessageEvent } from '../world/broker/broker-parts.ts';
import { deadLetterQueue, jobsQueue } from '../world/broker/sim-broker.ts';
import type { Checker, Facts, MessageFacts } from './checker.ts';

export const messagesChecker = (facts: Facts): Checker =>
  facts.messages === undefined ? { invariant: 4 } : new MessagesChecker(facts, facts.messages);

const project = 'default';
const resultKey = 'jobresult.v1';

class MessagesChecker implements Checker {
  readonly invariant = 4;
  readonly #facts: Facts;
  readonly #messages: MessageFacts;
  /** Ids of the jobs that a request had. */
  readonly #jobs = new Map<string, Set<string>>();
  /** By message_id. */
  readonly #results = new Map<string, string>();

  constructor(facts: Facts, messages: MessageFacts) {
    this.#facts = facts;
    this.#messages = messages;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const { before, after } of events) {
      const was = before?.kind === 'job' ? before : undefined;
      const is = after?.kind === 'job' ? after : undefined;
      const fault = (is && this.#faultOfJob(is)) ?? faultOfResult(was, is);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  onMessage({ kind, envelope, body, queues }: MessageEvent): string | undefined {
    if (kind === 'acknowledged') return queues.includes(jobsQueue) ? this.#faultOfAcknowledged(body) : undefined;
    return envelope.routingKey === resultKey || envelope.type === resultKey
      ? this.#faultOfSent(envelope.messageId ?? '', body.toString())
      : undefined;
  }

  *unrest(): Iterable<string> {
    const { state } = this.#facts;
    const { requests, broker } = this.#messages;
    const waits = new Set<string | undefined>();
    for (const { body } of broker.ready(jobsQueue)) waits.add(requests.of(body)?.requestId);
    for (const id of requests.accepted())
      if (!this.#jobs.has(id) && !waits.has(id)) yield `request ${id} was accepted, and has no job`;
    let waiting = 0;
    for (const job of state.list('job')) {
      if (job.spec.request === undefined) continue;
      if (job.status.phase === 'Queued' || job.status.phase === 'Placing') waiting += 1;
      const fault = this.#unrestOfJob(job);
      if (fault !== undefined) yield `job ${job.metadata.name} ${fault}`;
    }
    const [first] = broker.ready(jobsQueue);
    if (first && waiting < broker.settings.waitingMax)
      yield `a message delivered ${first.deliveries} times stays in the queue though ${waiting} jobs wait: ${first.body.toString()}`;
  }

  #faultOfJob({ spec: { request }, metadata }: Job): string | undefined {
    if (request === undefined) return undefined;
    const known = this.#jobs.get(request.requestId) ?? new Set();
    this.#jobs.set(request.requestId, known.add(metadata.id));
    return known.size > 1 ? `request ${request.requestId} has made the jobs ${[...known].join(' and ')}` : undefined;
  }

  #faultOfAcknowledged(body: Buffer): string | undefined {
    const { broker, requests } = this.#messages;
    const sent = requests.of(body);
    if (broker.stored(deadLetterQueue, deadLetterId(body))) return undefined;
    const what = `the message ${body.toString()} was acknowledged`;
    if (sent?.kind === 'invalid') return `${what}, and is not among the dead letters`;
    const key = keys.job(project, `req-${sent?.requestId}`);
    if (this.#facts.state.written(key).length === 0) return `${what} before its job was durable`;
    const commit = this.#facts.state.get('job', key)?.spec.repo?.commit;
    return commit === undefined || commit === sent?.commit ? undefined : `${what}, and its id is another request's`;
  }

  #faultOfSent(messageId: string, body: string): string | undefined {
    const known = this.#results.get(messageId);
    if (known !== undefined && known !== body) return `result ${messageId} was sent as ${known} and as ${body}`;
    this.#results.set(messageId, body);
    const { request_id: id }: { readonly request_id?: unknown } = JSON.parse(body);
    for (const [other, text] of this.#results)
      if (other !== messageId && text.includes(`"request_id":${JSON.stringify(id)}`))
        return `the result of request ${String(id)} was sent as ${other} and as ${messageId}`;
    return undefined;
  }

  #unrestOfJob({ spec: { request }, status: { phase, result } }: Job): string | undefined {
    const { broker } = this.#messages;
    if (!isFinal(phase)) return undefined;
    if (result === undefined) return 'has ended without a result';
    if (result.exchange === 'waiting' || result.reply === 'waiting') return 'has a result that is not sent';
    if (result.exchange === 'confirmed' && !broker.storedResult(result.messageId))
      return 'has a result that is called confirmed, and no queue had it';
    if (result.reply === 'confirmed' && !broker.stored(request?.replyTo ?? '', result.messageId))
      return 'has an answer that is called confirmed, and its queue never had it';
    if (result.exchange === 'unrouted' && broker.resultsBound)
      return 'has a result that is not sent, and a queue waits';
    return undefined;
  }
}

/** A result is written once, and goes with its job only when it was sent. */
function faultOfResult(before: Job | undefined, after: Job | undefined): string | undefined {
  const result = before?.status.result;
  if (before === undefined || result === undefined) return undefined;
  const { name, id } = before.metadata;
  const now = after?.metadata.id === id ? after.status.result : undefined;
  if (after?.metadata.id !== id)
    return result.exchange === 'waiting' ? `job ${name} was removed before its result was sent` : undefined;
  if (now?.messageId !== result.messageId || now.body !== result.body) return `the result of job ${name} has changed`;
  return result.exchange === 'confirmed' && now.exchange !== 'confirmed'
    ? `the result of job ${name} was confirmed, and is ${now.exchange}`
    : undefined;
}
