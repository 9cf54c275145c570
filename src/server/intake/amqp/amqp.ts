// Everything of the broker in one control plane: intake, results, dead letters. It is loaded only when a broker is
// configured; what it cannot do now it does later, and says so in /readyz?verbose.

import type { Logger } from '../../../base/log.ts';
import type { AuditParts } from '../../audit/trail.ts';
import type { Decider } from '../../decide.ts';
import { ResultOutbox } from '../../outbox/results/result-outbox.ts';
import type { PartReport } from '../../outside.ts';
import { type AmqpSettings, placeOfBroker } from './amqp-settings.ts';
import type { BrokerLink, OpenLink } from './broker.ts';
import { ConfirmedPublisher } from './confirmed-publisher.ts';
import { DeadLetters } from './dead-letters.ts';
import { Intake } from './intake.ts';
import { JobTaker } from './job-taker.ts';
import { declareTopology } from './topology.ts';

export interface AmqpParts {
  readonly settings: AmqpSettings;
  readonly decider: Decider;
  readonly log: Logger;
  readonly open: OpenLink;
  /** Whether this control plane sends the results. */
  readonly leads: () => boolean;
  readonly audit?: AuditParts | undefined;
}

export class Amqp {
  readonly #consuming: BrokerLink;
  readonly #publisher: ConfirmedPublisher;
  readonly #intake: Intake;
  readonly #results: ResultOutbox;
  readonly #place: string;
  readonly deadLetters: DeadLetters;

  private constructor(parts: AmqpParts, connections: { consuming: BrokerLink; publishing: BrokerLink }) {
    const { settings, decider, leads, audit } = parts;
    const { consuming, publishing } = connections;
    const log = parts.log.with({ broker: placeOfBroker(settings.url) });
    this.#consuming = consuming;
    this.#place = placeOfBroker(settings.url);
    this.#publisher = new ConfirmedPublisher({
      connection: publishing,
      clock: decider.clock,
      prepare: () => declareTopology(publishing, settings),
    });
    this.#intake = new Intake({
      settings,
      decider,
      log,
      taker: (changed) => new JobTaker({ settings, decider, log, audit }, changed),
      connection: consuming,
      publisher: this.#publisher,
    });
    const { resultExchange } = settings;
    this.#results = new ResultOutbox({ decider, log, leads, publisher: this.#publisher, exchange: resultExchange });
    this.deadLetters = new DeadLetters({ settings, connection: consuming, publisher: this.#publisher });
  }

  /** Throws `InvalidRequest` naming the variable when the broker refuses; one that is not reached is tried again. */
  static async start(parts: AmqpParts): Promise<Amqp> {
    const { open } = parts;
    const amqp = new Amqp(parts, { consuming: open('berth intake'), publishing: open('berth results') });
    try {
      await amqp.#intake.start();
      amqp.#results.start();
      return amqp;
    } catch (error) {
      await amqp.stop();
      throw error;
    }
  }

  report(): readonly PartReport[] {
    const { trouble, paused, waiting } = this.#intake;
    const { unrouted } = this.#results;
    const told =
      this.#publisher.trouble ?? (unrouted > 0 ? `${unrouted} results have no queue that takes them` : undefined);
    const pause = paused ? `paused: ${waiting} jobs wait for a place` : undefined;
    return [
      reportOf('amqp intake', trouble, pause ?? `consumes from ${this.#place}`),
      reportOf('amqp results', told, 'no result waits for a queue'),
    ];
  }

  /** Messages that are not taken stay in the queue, for other control planes or for later. */
  stopIntake(): Promise<void> {
    return this.#intake.stop();
  }

  async stop(): Promise<void> {
    await this.#intake.stop();
    await this.#results.stop();
    await Promise.all([this.#consuming.close(), this.#publisher.close()]);
    await this.#intake.ended();
  }
}

function reportOf(name: string, trouble: string | undefined, fine: string): PartReport {
  return { name, ok: trouble === undefined, message: trouble ?? fine };
}
