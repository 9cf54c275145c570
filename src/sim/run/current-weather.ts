// The weather as it is now: calm or stormy, as the scenario has both; and a store that crawls for the control planes.

import type { Scenario } from '../scenario.ts';
import type { Weather } from '../world/weather.ts';

export class CurrentWeather {
  readonly #kinds: Scenario['weather'];
  #now: Weather;
  #crawlMsMean: number | undefined;

  constructor(kinds: Scenario['weather']) {
    this.#kinds = kinds;
    this.#now = kinds.calm;
  }

  get now(): Weather {
    return this.#now;
  }

  get stormy(): boolean {
    return this.#now === this.#kinds.stormy;
  }

  become(kind: 'calm' | 'stormy'): void {
    this.#now = this.#kinds[kind];
  }

  /** The latency of the store for control planes; undefined: as the weather has it. */
  crawl(latencyMsMean: number | undefined): void {
    this.#crawlMsMean = latencyMsMean;
  }

  /** The store as control planes reach it. */
  get serverStore(): Weather['store'] {
    const { store } = this.#now;
    return this.#crawlMsMean === undefined ? store : { ...store, latencyMsMean: this.#crawlMsMean };
  }
}
