// The task queue of one control plane: requests to /schedule over a broker, and their results. It is loaded only when
// configured.

import { placeOfBroker } from './amqp-settings.ts';
import type { PartReport } from '../../outside.ts';
import type { BrokerLink, OpenLink } from './broker.ts';
import { ConfirmedPublisher } from './confirmed-publisher.ts';
import { Intake } from './intake.ts';
import { TaskTaker, type TaskTakerParts } from './task-taker.ts';
import { declareTopology } from './topology.ts';

export interface TaskQueueParts extends Omit<TaskTakerParts, 'publisher'> {
  readonly open: OpenLink;
}

export class TaskQueue {
  readonly #consuming: BrokerLink;
  readonly #publisher: ConfirmedPublisher;
  readonly #intake: Intake;
  readonly #place: string;

  private constructor(parts: TaskQueueParts) {
    const { settings, decider, open } = parts;
    this.#place = placeOfBroker(settings.url);
    const log = parts.log.with({ broker: this.#place });
    this.#consuming = open('berth task queue');
    const publishing = open('berth task results');
    const prepare = (): Promise<void> => declareTopology(publishing, settings);
    const publisher = new ConfirmedPublisher({ connection: publishing, clock: decider.clock, prepare });
    this.#publisher = publisher;
    const taker = (): TaskTaker => new TaskTaker({ ...parts, log, publisher });
    this.#intake = new Intake({ settings, decider, log, taker, connection: this.#consuming, publisher });
  }

  /** Throws `InvalidRequest` naming the setting when the broker refuses; one that is not reached is tried again. */
  static async start(parts: TaskQueueParts): Promise<TaskQueue> {
    const queue = new TaskQueue(parts);
    try {
      await queue.#intake.start();
      return queue;
    } catch (error) {
      await queue.stop();
      throw error;
    }
  }

  report(): readonly PartReport[] {
    const trouble = this.#intake.trouble ?? this.#publisher.trouble;
    const ok = trouble === undefined;
    return [{ name: 'task queue', ok, message: trouble ?? `consumes from ${this.#place}` }];
  }

  /** Messages that are not taken stay in the queue. */
  stopIntake(): Promise<void> {
    return this.#intake.stop();
  }

  async stop(): Promise<void> {
    await this.#intake.stop();
    await Promise.all([this.#consuming.close(), this.#publisher.close()]);
    await this.#intake.ended();
  }
}
