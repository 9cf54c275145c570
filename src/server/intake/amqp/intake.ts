// Messages of a queue become jobs, or tasks: a Taker says which. A message is acknowledged when its job is durable, or when a copy of it is
// in the dead-letter queue; until then the broker keeps it. Handlers never throw and never wait for a job.
//
//   connecting → consuming ⇄ paused       paused: the consumer is cancelled while jobs wait for a place
//        ↑___________|__________|         a closed channel, a deleted queue, a store that cannot write: all begins again

import { backoffMs } from '../../../base/backoff.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Decider } from '../../decide.ts';
import { Acknowledgements } from './acknowledgements.ts';
import type { AmqpSettings } from './amqp-settings.ts';
import { type BrokerChannel, type BrokerLink, type BrokerMessage, replyCodeOf } from './broker.ts';
import type { ConfirmedPublisher } from './confirmed-publisher.ts';
import { deadLetterOf } from './dead-letter.ts';
import { bytesOf } from './message-bytes.ts';
import { declareTopology } from './topology.ts';
import type { StartTaker, Taker } from './taker.ts';

export interface IntakeParts {
  readonly settings: AmqpSettings;
  readonly decider: Decider;
  readonly log: Logger;
  readonly connection: BrokerLink;
  /** On a connection of its own. */
  readonly publisher: ConfirmedPublisher;
  readonly taker: StartTaker;
}

/** A refused message waits unacknowledged for a broker that is blocked, while others pass; brokers allow 30 minutes. */
const heldMsMax = 300_000;
const finishWithinMs = 5_000;
const retryDelay = { delayMsMin: 250, delayMsMax: 15_000 };

export class Intake {
  readonly #parts: IntakeParts;
  readonly #taker: Taker;
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #session: Session | undefined;
  #trouble: string | undefined;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#taker = parts.taker(() => this.#session?.look());
  }

  /** Declares exchanges and queues. Throws `InvalidRequest` naming the variable when the broker refuses them. */
  async start(): Promise<void> {
    const { connection, settings, log } = this.#parts;
    const failure = await connection.first;
    if (failure !== undefined && isRefusal(failure))
      throw new ApiError(
        'InvalidRequest',
        `${settings.namedBy ?? 'AMQP_URL'}: the broker refuses the connection: ${describeError(failure)}`,
        {
          field: settings.namedBy ?? 'amqpUrl',
          cause: failure,
        },
      );
    if (failure === undefined) {
      await declareTopology(connection, settings).catch((error: unknown) => {
        if (error instanceof ApiError) throw error;
        this.#trouble = describeError(error);
        log.warn('exchanges and queues could not be declared; it is tried again', { error: this.#trouble });
      });
    }
    this.#running = this.#run();
  }

  /** Why no messages are taken now; undefined: they are, or may be when there are any. */
  get trouble(): string | undefined {
    return this.#parts.connection.trouble ?? this.#trouble;
  }

  /** Jobs of messages that wait for a place. */
  get waiting(): number {
    return this.#taker.waiting;
  }

  get paused(): boolean {
    return this.#session?.paused ?? false;
  }

  /** Takes no further message, and finishes those that it has, if that takes no more than a few seconds. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#taker.stop();
    const finished = new AbortController();
    await Promise.race([
      this.#session?.stop().catch(() => undefined), // the broker takes back what is not acknowledged
      sleep(this.#parts.decider.clock, finishWithinMs, finished.signal),
    ]);
    finished.abort();
  }

  /** Resolves after `stop`, once its connection is closed. */
  async ended(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    const { decider, log } = this.#parts;
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      try {
        await this.#consume(() => {
          attempt = 0;
          this.#trouble = undefined;
        });
        this.#trouble = 'the broker ended the consumer';
      } catch (error) {
        this.#trouble = describeError(error);
      }
      if (signal.aborted) return;
      log.warn('intake of messages was interrupted; it begins again', { reason: this.#trouble });
      await sleep(decider.clock, backoffMs(attempt, retryDelay, decider.prng), signal);
    }
  }

  /** Until the channel closes. Rejects with the reason, if it is known. */
  async #consume(begun: () => void): Promise<void> {
    const { connection, settings } = this.#parts;
    await declareTopology(connection, settings);
    const session = new Session(this.#parts, await connection.acquire(), this.#taker);
    this.#session = session;
    if (this.#stopped.signal.aborted) await session.stop();
    try {
      await session.run(begun);
    } finally {
      this.#session = undefined;
    }
  }
}

function isRefusal(error: Error): boolean {
  return ['ACCESS_REFUSED', 'NOT_ALLOWED'].includes(replyCodeOf(error) ?? '');
}

/** One channel, from its first consumer to its end. */
class Session {
  readonly #parts: IntakeParts;
  readonly #channel: BrokerChannel;
  readonly #taker: Taker;
  readonly #closed: Promise<void>;
  readonly #underWay = new Set<Promise<void>>();
  readonly #acknowledged: Acknowledgements;
  #consumerTag: string | undefined;
  /** Consumers are begun and cancelled one after the other. */
  #turning: Promise<void> | undefined;
  #stopping = false;
  #failure: Error | undefined;

  constructor(parts: IntakeParts, channel: BrokerChannel, taker: Taker) {
    this.#parts = parts;
    this.#channel = channel;
    this.#taker = taker;
    this.#acknowledged = new Acknowledgements(channel, (run) => parts.connection.afterTurn(run));
    this.#closed = new Promise((resolve) => channel.on('close', resolve));
    channel.on('basic.cancel', () => {
      this.#consumerTag = undefined;
      this.#fail(new Error('the broker cancelled the consumer: its queue was deleted, or its host is gone'));
    });
  }

  get paused(): boolean {
    return this.#consumerTag === undefined;
  }

  async run(begun: () => void): Promise<void> {
    const { waitingMax } = this.#parts.settings;
    await this.#channel.basicQos({ prefetchCount: waitingMax });
    begun();
    this.look();
    await this.#closed;
    await Promise.all(this.#underWay);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Begins or cancels the consumer, as the number of waiting jobs asks. */
  look(): void {
    this.#turning ??= this.#turn()
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#turning = undefined;
        if (this.#mustTurn) this.look(); // asked for since the last look
      });
  }

  /** Takes no further message, finishes those that it has, and closes. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.look();
    await this.#turning;
    await Promise.all(this.#underWay);
    this.#acknowledged.flush();
    await this.#channel.close();
  }

  async #turn(): Promise<void> {
    while (this.#mustTurn) {
      if (this.#wanted) await this.#begin();
      else await this.#cancel();
    }
  }

  get #mustTurn(): boolean {
    return this.#channel.active && this.#wanted === this.paused;
  }

  get #wanted(): boolean {
    return !this.#stopping && this.#taker.waiting < this.#parts.settings.waitingMax;
  }

  async #begin(): Promise<void> {
    const { queue } = this.#parts.settings;
    const { consumerTag } = await this.#channel.basicConsume({ queue }, (message) => {
      const taking = this.#take(message).finally(() => this.#underWay.delete(taking));
      this.#underWay.add(taking);
    });
    this.#consumerTag = consumerTag;
  }

  async #cancel(): Promise<void> {
    const consumerTag = this.#consumerTag;
    if (consumerTag === undefined) return;
    await this.#channel.basicCancel({ consumerTag });
    this.#consumerTag = undefined;
    this.#parts.log.debug('intake pauses: enough jobs wait for a place', { waiting: this.#taker.waiting });
  }

  /** Never throws. A message that cannot be stored now goes back with the channel. */
  async #take(message: BrokerMessage): Promise<void> {
    try {
      await this.#taker.take(message);
      this.#acknowledged.add(message.deliveryTag);
    } catch (error) {
      const refusal = this.#taker.refusalOf(error);
      if (refusal === undefined) return this.#fail(error);
      if (!(error instanceof ApiError))
        this.#parts.log.error('a message met an internal error', { error: describeError(error), cause: error });
      await this.#bury(message, refusal);
    }
  }

  async #bury(message: BrokerMessage, refusal: { readonly reason: string; readonly message: string }): Promise<void> {
    const { publisher, settings, log } = this.#parts;
    try {
      const copy = deadLetterOf(message, refusal, settings.deadLetterExchange);
      const fate = await publisher.publish(copy, bytesOf(message), { readyWithinMs: heldMsMax });
      if (fate === 'unrouted') throw new Error(`no queue is bound to exchange "${settings.deadLetterExchange}"`);
      this.#acknowledged.add(message.deliveryTag);
      log.warn('a message was refused', { reason: refusal.reason, why: refusal.message, deadLetter: copy.messageId });
    } catch (error) {
      this.#fail(new Error(`a refused message cannot be moved to the dead letters: ${describeError(error)}`));
    }
  }

  /** The broker takes back what is not acknowledged. */
  #fail(error: unknown): void {
    this.#acknowledged.flush();
    this.#failure ??= error instanceof Error ? error : new Error(String(error));
    void this.#channel.close();
  }
}
