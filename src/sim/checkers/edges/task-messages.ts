// Invariant 4, of the task queue: a message is acknowledged only when its result, its next attempt or its dead letter is at the broker; one
// request is placed at most once, in all its attempts; each has a result at rest, and all results of one tell of one host.

import { fingerprint } from '../../../base/hash.ts';
import type { Task } from '../../../api/resources/task.ts';
import { sha256 } from '../../../server/intake/amqp/job-taker.ts';
import { deadLetterId } from '../../../server/intake/amqp/dead-letter.ts';
import type { Commit } from '../../history.ts';
import { taskQueue } from '../../task-requests.ts';
import type { MessageEvent } from '../../world/broker/broker-parts.ts';
import type { Checker, Facts, TaskMessageFacts } from '../checker.ts';

export const taskMessagesChecker = (facts: Facts): Checker =>
  facts.taskMessages === undefined ? { invariant: 4 } : new TaskMessagesChecker(facts.taskMessages);

interface Result {
  readonly task_id: string;
  readonly id?: string;
  readonly status: 'completed' | 'failed' | 'processing';
  readonly result?: { readonly name: string };
}

const attemptHeader = 'x-berth-attempt';

class TaskMessagesChecker implements Checker {
  readonly invariant = 4;
  readonly #messages: TaskMessageFacts;
  /** By `task_id` of the request. */
  readonly #results = new Map<string, Result>();
  /** Attempts for which the broker has a message, by body. */
  readonly #attempts = new Map<string, Set<number>>();
  /** By name of the task: the request that it is for. */
  readonly #requestOf = new Map<string, string>();
  /** By request: the id of the task that was placed for it. */
  readonly #placed = new Map<string, string>();

  constructor(messages: TaskMessageFacts) {
    this.#messages = messages;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const { after } of events) {
      const fault = after?.kind === 'task' && after.status.phase === 'Placed' ? this.#faultOfPlaced(after) : undefined;
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  onTaskMessage({ kind, envelope, body, queues }: MessageEvent): string | undefined {
    if (kind === 'acknowledged')
      return queues.includes(taskQueue) ? this.#faultOfAcknowledged(body, envelope) : undefined;
    const known = this.#messages.requests.of(body);
    if (known === undefined) return this.#faultOfResult(body.toString());
    if (queues.some((queue) => queue === taskQueue || queue === this.#messages.broker.settings.retry?.queue))
      this.#attempts.set(body.toString(), (this.#attempts.get(body.toString()) ?? new Set()).add(attemptOf(envelope)));
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { broker, requests } = this.#messages;
    const { queue, retry } = broker.settings;
    for (const [text, { isValid, id, confirmed }] of requests.all()) {
      if (!confirmed) continue;
      if (!isValid && !this.#isDead(Buffer.from(text))) yield `the message ${text} is not among the dead letters`;
      if (id !== undefined && !this.#results.has(id)) yield `request ${id} was accepted, and has no result`;
    }
    for (const name of [queue, retry?.queue ?? ''])
      for (const { body } of broker.ready(name)) yield `a message stays in ${name}: ${body.toString()}`;
  }

  #isDead(body: Buffer): boolean {
    const { broker } = this.#messages;
    return broker.stored(broker.settings.deadLetterQueue, deadLetterId(body));
  }

  #faultOfAcknowledged(body: Buffer, envelope: MessageEvent['envelope']): string | undefined {
    if (this.#isDead(body)) return undefined;
    const text = body.toString();
    const { task_id: id = '' }: Partial<Result> = JSON.parse(text);
    if (this.#results.has(id)) return undefined;
    if (this.#attempts.get(text)?.has(attemptOf(envelope) + 1)) return undefined;
    return `the message ${text} was acknowledged without a result, another attempt or a dead letter`;
  }

  #faultOfResult(text: string): string | undefined {
    const result: Result = JSON.parse(text);
    const known = this.#results.get(result.task_id);
    this.#results.set(result.task_id, known ?? result);
    if (result.status === 'processing') return `the result of ${result.task_id} is that it is processed`;
    if (result.status === 'completed' && this.#placed.get(result.task_id) !== result.id)
      return `the result of ${result.task_id} is task ${result.id}, which was not placed for it`;
    if (known?.result === undefined || result.result === undefined) return undefined;
    return known.result.name === result.result.name
      ? undefined
      : `request ${result.task_id} was answered ${known.result.name} and ${result.result.name}`;
  }

  #faultOfPlaced({ metadata: { id, name } }: Task): string | undefined {
    const request = this.#requestNamed(name);
    if (request === undefined) return undefined;
    const known = this.#placed.get(request);
    this.#placed.set(request, id);
    return known === undefined || known === id ? undefined : `request ${request} was placed as ${known} and as ${id}`;
  }

  /** The name of a task is made of its request and the attempt. */
  #requestNamed(name: string): string | undefined {
    if (!name.startsWith('schedule-')) return undefined;
    const { broker, requests } = this.#messages;
    const attemptsMax = broker.settings.retry?.attemptsMax ?? 1;
    for (const [, { id }] of requests.all()) {
      if (id === undefined || this.#requestOf.has(nameOf(id, 1))) continue;
      for (let attempt = 1; attempt <= attemptsMax; attempt++) this.#requestOf.set(nameOf(id, attempt), id);
    }
    return this.#requestOf.get(name);
  }
}

function nameOf(request: string, attempt: number): string {
  return `schedule-${fingerprint(`amqp:${sha256(request)}:${attempt}`)}`;
}

function attemptOf({ headers }: MessageEvent['envelope']): number {
  const told = headers?.[attemptHeader];
  return typeof told === 'number' ? told : 1;
}
