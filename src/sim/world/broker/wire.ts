// One connection from its begin to its break. Words keep their order each way, and take their time.

import type { Prng } from '../../../base/prng.ts';
import type { ProcessClock } from '../process-clock.ts';
import type { Timeline } from '../timeline.ts';
import type { FalseBroker } from './false-broker.ts';

export interface LinkWeather {
  /** One way. */
  readonly delayMs: () => number;
  /** Whether the connection breaks at this moment. */
  readonly breaks: (at: 'delivery' | 'acknowledgement' | 'confirm') => boolean;
  /** How much later than usual this confirm comes. */
  readonly confirmLateMs: () => number;
}

export interface LinkOptions {
  readonly broker: FalseBroker;
  /** Whether the broker can be reached. */
  readonly reachable: () => boolean;
  readonly timeline: Timeline;
  /** Of the process whose connection it is. */
  readonly clock: ProcessClock;
  readonly prng: Prng;
  readonly weather: LinkWeather;
}

export class Wire {
  readonly #options: LinkOptions;
  /** The connection breaks now. */
  readonly break: () => void;
  readonly #atBroker = new Set<() => void>();
  readonly #atClient = new Set<() => void>();
  #broken = { atBroker: false, atClient: false };
  #lastMs = { toBroker: 0, toClient: 0 };

  constructor(options: LinkOptions, breakNow: () => void) {
    this.#options = options;
    this.break = breakNow;
  }

  get usable(): boolean {
    return !this.#broken.atClient;
  }

  /** The broker hears it after all that was said before. */
  toBroker(hear: () => void): void {
    if (this.#broken.atClient) return;
    this.#options.timeline.schedule(this.#waitMs('toBroker'), () => {
      if (!this.#broken.atBroker) hear();
    });
  }

  toClient(hear: () => void): void {
    if (this.#broken.atBroker) return;
    this.#options.clock.deliver(this.#waitMs('toClient'), () => {
      if (!this.#broken.atClient && !this.#broken.atBroker) hear();
    });
  }

  onBreak(side: 'atBroker' | 'atClient', act: () => void): void {
    (side === 'atBroker' ? this.#atBroker : this.#atClient).add(act);
  }

  breakAtBroker(): void {
    if (this.#broken.atBroker) return;
    this.#broken.atBroker = true;
    for (const act of this.#atBroker) act();
  }

  breakAtClient(): void {
    if (this.#broken.atClient) return;
    this.#broken.atClient = true;
    for (const act of this.#atClient) act();
  }

  #waitMs(way: 'toBroker' | 'toClient'): number {
    const { timeline, weather } = this.#options;
    const arrivalMs = Math.max(this.#lastMs[way] + 0.001, timeline.nowMs + weather.delayMs());
    this.#lastMs[way] = arrivalMs;
    return arrivalMs - timeline.nowMs;
  }
}
