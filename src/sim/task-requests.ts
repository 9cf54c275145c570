// The messages of a task queue in one run: what was sent and what the broker has confirmed, kept outside everything under test.

import type { BrokerUse } from './world/broker/sim-broker.ts';

export const taskQueue = 'task.schedule';
export const placingProject = 'placing';

export const tasksUse: BrokerUse = {
  settingsOf: (prng) => ({
    url: 'amqp://broker',
    exchange: 'tasks',
    exchangeType: 'topic',
    queue: taskQueue,
    routingKey: taskQueue,
    resultExchange: 'tasks',
    deadLetterExchange: `${taskQueue}.dlx`,
    deadLetterQueue: `${taskQueue}.dlq`,
    project: placingProject,
    waitingMax: 1 + prng.below(64),
    namedBy: 'scheduleAmqpUrl',
    retry: { queue: `${taskQueue}.retry`, delayMs: 500 + prng.below(8_000), attemptsMax: 1 + prng.below(4) },
  }),
  exchangeType: 'topic',
  resultKey: 'task.result',
};

export interface SentTask {
  readonly isValid: boolean;
  /** What names it among the results: absent for what is no request. */
  readonly id: string | undefined;
  confirmed: boolean;
}

export class TaskRequests {
  /** By body. */
  readonly #sent = new Map<string, SentTask>();

  noteSent(text: string, sent: Omit<SentTask, 'confirmed'>): void {
    if (!this.#sent.has(text)) this.#sent.set(text, { ...sent, confirmed: false });
  }

  noteConfirmed(text: string): void {
    const sent = this.#sent.get(text);
    if (sent) sent.confirmed = true;
  }

  of(body: Buffer): SentTask | undefined {
    return this.#sent.get(body.toString());
  }

  all(): Iterable<readonly [body: string, sent: SentTask]> {
    return this.#sent;
  }
}
