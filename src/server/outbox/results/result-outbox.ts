// Publishes the results of jobs: to the result exchange, and to the queue that the request names. Level-triggered from
// the records, which have the final bytes: a result is due until its copies are confirmed or given up. The leader sends;
// a former one may send the same once more.

import { sleep, type Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Job, JobResultDelivery } from '../../../api/resources/job.ts';
import {
  type Delivered,
  isResultDue,
  jobResultVersion,
  recordDelivery,
} from '../../../core/operations/jobs/job-result.ts';
import { keys, prefixOf } from '../../../core/state/keys.ts';
import { type Decider, decideAndCommit } from '../../decide.ts';
import type { ConfirmedPublisher } from '../../intake/amqp/confirmed-publisher.ts';

export interface ResultOutboxParts {
  readonly decider: Decider;
  readonly log: Logger;
  readonly leads: () => boolean;
  readonly publisher: ConfirmedPublisher;
  /** Where results go. */
  readonly exchange: string;
}

/** Also how soon a new leader begins. */
const lookEveryMs = 1_000;
/** Retry delay of results that the exchange cannot route: an operator has to bind a queue first. */
const unroutedRetryMs = 60_000;
const failureRetryMs = 5_000;
/** With the intake's 5 s this is less than a server has to stop. */
const finishWithinMs = 2_000;
/** The broker confirms many at once. */
const sendingMax = 128;

export class ResultOutbox {
  readonly #parts: ResultOutboxParts;
  /** Keys of jobs whose result is due. */
  readonly #due = new Set<string>();
  readonly #sending = new Map<string, Promise<void>>();
  /** By key: not before this time, on the monotonic clock. */
  readonly #restUntilMs = new Map<string, number>();
  readonly #unrouted = new Set<string>();
  #forget: (() => void) | undefined;
  #timer: Timer | undefined;
  #stopped = false;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  /** More are due than are sent at once. */
  #full = false;

  constructor(parts: ResultOutboxParts) {
    this.#parts = parts;
  }

  start(): void {
    const { cache } = this.#parts.decider;
    const prefix = prefixOf('job');
    for (const { key, value } of cache.listCommitted('job')) this.#note(key, value);
    this.#forget = cache.onCommitted((key) => {
      if (!key.startsWith(prefix)) return;
      this.#note(key, cache.committed('job', key)?.value);
      if (this.#due.has(key)) this.#look(0);
    });
    this.#look(0);
  }

  /** Waits for what is being sent, for a short time: a blocked broker confirms nothing, and what is due stays due. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#forget?.();
    this.#timer?.cancel();
    const sent = new AbortController();
    await Promise.race([
      Promise.all(this.#sending.values()),
      sleep(this.#parts.decider.clock, finishWithinMs, sent.signal),
    ]);
    sent.abort();
  }

  /** Results that the broker has no queue for. */
  get unrouted(): number {
    return this.#unrouted.size;
  }

  #note(key: string, job: Job | undefined): void {
    const result = job?.status.result;
    if (result && isResultDue(result)) this.#due.add(key);
    else {
      this.#due.delete(key);
      this.#restUntilMs.delete(key);
    }
    if (result?.exchange === 'unrouted') this.#unrouted.add(key);
    else this.#unrouted.delete(key);
  }

  #look(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer?.cancel();
    this.#timer = this.#parts.decider.clock.setTimer(delayMs, () => this.#sendDue(), { background: true });
  }

  #sendDue(): void {
    const nowMs = this.#parts.decider.clock.monotonicMs();
    this.#full = false;
    if (this.#parts.leads() && this.#parts.publisher.trouble === undefined) {
      for (const key of this.#due) {
        if (this.#sending.size >= sendingMax) {
          this.#full = true;
          break;
        }
        if (this.#sending.has(key) || (this.#restUntilMs.get(key) ?? 0) > nowMs) continue;
        this.#sending.set(key, this.#send(key));
      }
    }
    if (this.#due.size > 0) this.#look(lookEveryMs);
  }

  /** Never throws. */
  async #send(key: string): Promise<void> {
    const { decider } = this.#parts;
    try {
      // A repetition of the same look must find the record as it is durable, not as it will be.
      const job = decider.cache.committed('job', key)?.value;
      const result = job?.status.result;
      if (job && result && isResultDue(result)) await this.#deliver(job, result);
    } catch (error) {
      this.#rest(key, failureRetryMs);
      this.#tell(error);
    } finally {
      this.#sending.delete(key);
      if (this.#full || (this.#due.has(key) && !this.#restUntilMs.has(key))) this.#look(0);
    }
  }

  /** Many fail for one reason. */
  #tell(error: unknown): void {
    const nowMs = this.#parts.decider.clock.monotonicMs();
    if (nowMs < this.#toldAtMs + failureRetryMs) return;
    this.#toldAtMs = nowMs;
    this.#parts.log.warn('results could not be published; they are tried again', {
      due: this.#due.size,
      error: describeError(error),
    });
  }

  async #deliver(job: Job, result: JobResultDelivery): Promise<void> {
    const { decider } = this.#parts;
    const { project, name } = job.metadata;
    const [toExchange, toReply] = await Promise.allSettled([this.#toExchange(job, result), this.#toReply(job, result)]);
    const exchange = toExchange.status === 'fulfilled' ? toExchange.value : undefined;
    const reply = toReply.status === 'fulfilled' ? toReply.value : undefined;
    const delivered: Delivered = {
      project,
      name,
      messageId: result.messageId,
      ...(exchange === undefined ? {} : { exchange }),
      ...(reply === undefined ? {} : { reply }),
    };
    if (exchange === 'unrouted') this.#rest(keys.job(project, name), unroutedRetryMs);
    await decideAndCommit(decider, (snapshot) => recordDelivery(snapshot, delivered));
    for (const outcome of [toExchange, toReply]) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async #toExchange(
    job: Job,
    { exchange, messageId, body }: JobResultDelivery,
  ): Promise<'confirmed' | 'unrouted' | undefined> {
    if (exchange === 'confirmed' || exchange === 'dropped') return undefined;
    const { publisher, exchange: to } = this.#parts;
    return publisher.publish(
      {
        exchange: to,
        routingKey: jobResultVersion,
        messageId,
        contentType: 'application/json',
        type: jobResultVersion,
        ...traceOf(job),
      },
      Buffer.from(body),
    );
  }

  /** A queue that is gone was its requester's, who no longer waits. */
  async #toReply(
    job: Job,
    { reply, messageId, body }: JobResultDelivery,
  ): Promise<'confirmed' | 'dropped' | undefined> {
    const { replyTo, correlationId } = job.spec.request ?? {};
    if (reply !== 'waiting' || replyTo === undefined) return undefined;
    const fate = await this.#parts.publisher.publish(
      {
        exchange: '',
        routingKey: replyTo,
        messageId,
        contentType: 'application/json',
        type: jobResultVersion,
        ...(correlationId === undefined ? {} : { correlationId }),
        ...traceOf(job),
      },
      Buffer.from(body),
    );
    return fate === 'confirmed' ? 'confirmed' : 'dropped';
  }

  #rest(key: string, ms: number): void {
    this.#restUntilMs.set(key, this.#parts.decider.clock.monotonicMs() + ms);
  }
}

/** What comes of a job is part of the trace of its request. */
function traceOf({ metadata: { traceParent } }: Job): { readonly headers?: { readonly traceparent: string } } {
  return traceParent === undefined ? {} : { headers: { traceparent: traceParent } };
}
