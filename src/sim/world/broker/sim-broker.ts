// The broker of a run, and what goes wrong with it in the storm: it restarts, connections break at any point, confirms are
// late or lost, the queue of the results comes late or never. It has random numbers of its own.

import type { Prng } from '../../../base/prng.ts';
import type { AmqpSettings } from '../../../server/intake/amqp/amqp-settings.ts';
import type { Tally } from '../../batch/tally.ts';
import type { ProcessClock } from '../process-clock.ts';
import type { Timeline } from '../timeline.ts';
import type { MessageEvent, StoredMessage } from './broker-parts.ts';
import { FalseBroker } from './false-broker.ts';
import { FalseLink } from './false-link.ts';
import type { LinkWeather } from './wire.ts';

export const jobsQueue = 'solstice.jobs.v1';
export const deadLetterQueue = 'solstice.jobs.v1.dlq';
export const answersQueue = 'answers';
const resultsQueue = 'results';

/** What is taken from the broker. */
export interface BrokerUse {
  readonly settingsOf: (prng: Prng) => AmqpSettings;
  readonly exchangeType: 'direct' | 'topic';
  /** Of the results. */
  readonly resultKey: string;
}

export const jobsUse: BrokerUse = {
  settingsOf: (prng) => ({
    url: 'amqp://broker',
    exchange: 'solstice.jobs',
    queue: jobsQueue,
    routingKey: 'jobrequest.v1',
    resultExchange: 'solstice.jobs',
    deadLetterExchange: 'solstice.dlx',
    deadLetterQueue,
    project: 'default',
    waitingMax: 1 + prng.below(4),
  }),
  exchangeType: 'direct',
  resultKey: 'jobresult.v1',
};

export interface SimBrokerOptions {
  readonly use: BrokerUse;
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly stormy: () => boolean;
  readonly tally: Tally;
  readonly trace: (line: () => string) => void;
  readonly onMessage: (event: MessageEvent) => void;
}

const troubleMsMax = 12_000;
const awayMsMax = 8_000;
const confirmLateMsMax = 45_000;
/** One in this many. */
const rates = { delivery: 50, acknowledgement: 25, confirm: 20, late: 12 } as const;

export class SimBroker {
  readonly settings: AmqpSettings;
  readonly #options: SimBrokerOptions;
  readonly #broker: FalseBroker;
  readonly #links = new Set<FalseLink>();
  readonly #prng: Prng;
  /** Names of messages that a queue has, by queue. */
  readonly #stored = new Map<string, Set<string>>();
  #awayUntilMs = 0;
  #resultsBound = false;

  constructor(options: SimBrokerOptions) {
    this.#options = options;
    this.#prng = options.prng;
    this.#broker = new FalseBroker({
      onPublished: (message, queues) => this.#published(message, queues),
      onAcknowledged: ({ envelope, body }, queue) =>
        options.onMessage({ kind: 'acknowledged', envelope, body, queues: [queue] }),
    });
    this.settings = options.use.settingsOf(this.#prng);
    this.#broker.declareExchange(this.settings.exchange, options.use.exchangeType);
    this.#broker.declareQueue(answersQueue, '{}');
    if (this.#prng.chance(2, 3)) this.#bindResults();
    this.#nextTrouble();
  }

  /** Of a process that lives by this clock. */
  link(clock: ProcessClock): FalseLink {
    const { timeline } = this.#options;
    const link = new FalseLink({
      broker: this.#broker,
      reachable: () => timeline.nowMs >= this.#awayUntilMs,
      timeline,
      clock,
      prng: this.#prng.split(),
      weather: this.#weatherOf(this.#prng.split()),
    });
    this.#links.add(link);
    return link;
  }

  /** Its process is gone, or has closed it. */
  forget(link: FalseLink): void {
    this.#links.delete(link);
    link.die();
  }

  ready(queue: string): readonly StoredMessage[] {
    return this.#broker.ready(queue);
  }

  /** Whether a message of this name was ever stored in this queue. */
  stored(queue: string, messageId: string): boolean {
    return this.#stored.get(queue)?.has(messageId) ?? false;
  }

  storedResult(messageId: string): boolean {
    return this.stored(resultsQueue, messageId);
  }

  get resultsBound(): boolean {
    return this.#resultsBound;
  }

  #published(message: StoredMessage, queues: readonly string[]): void {
    const { envelope, body } = message;
    const { retry } = this.settings;
    if (retry && queues.includes(retry.queue))
      this.#options.timeline.schedule(retry.delayMs, () => this.#broker.expire(retry.queue, message));
    for (const queue of queues) {
      const names = this.#stored.get(queue) ?? new Set();
      this.#stored.set(queue, names.add(envelope.messageId ?? ''));
    }
    if (queues.length === 0) this.#options.tally.hit('broker-unrouted');
    this.#options.onMessage({ kind: 'published', envelope, body, queues });
  }

  #bindResults(): void {
    this.#broker.declareQueue(resultsQueue, '{}');
    const { exchange } = this.settings;
    this.#broker.bind({ queue: resultsQueue, exchange, routingKey: this.#options.use.resultKey });
    this.#resultsBound = true;
  }

  #weatherOf(prng: Prng): LinkWeather {
    const { stormy, tally } = this.#options;
    return {
      delayMs: () => 1 + prng.below(stormy() && prng.chance(1, 50) ? 2_000 : 8),
      breaks: (at) => {
        const broken = stormy() && prng.chance(1, rates[at]);
        if (broken) tally.hit(`broker-${at}-lost`);
        return broken;
      },
      confirmLateMs: () => {
        const late = stormy() && prng.chance(1, rates.late) ? 1 + prng.below(confirmLateMsMax) : 0;
        if (late > 0) tally.hit('broker-confirm-late');
        return late;
      },
    };
  }

  /** Nothing goes wrong before and after the storm, but it is looked for all the same. */
  #nextTrouble(): void {
    const { timeline, stormy } = this.#options;
    timeline.schedule(1_000 + this.#prng.below(troubleMsMax), () => {
      if (stormy()) this.#trouble();
      this.#nextTrouble();
    });
  }

  #trouble(): void {
    const { timeline, tally, trace } = this.#options;
    const draw = this.#prng.below(10);
    if (draw < 3) {
      const awayMs = this.#prng.below(awayMsMax);
      this.#awayUntilMs = timeline.nowMs + awayMs;
      tally.hit('broker-restarted');
      trace(() => `the broker restarts and is away for ${awayMs} ms`);
      for (const link of this.#links) link.break();
    } else if (draw < 9) {
      const links = [...this.#links];
      links[this.#prng.below(Math.max(1, links.length))]?.break();
      trace(() => 'a connection to the broker breaks');
    } else if (!this.#resultsBound) this.#bindResults();
  }
}
