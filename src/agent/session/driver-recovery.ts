// Lets each driver find its guests again after the agent's start, and tries again while one cannot. It never touches a guest.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { Driver } from '../drivers/driver.ts';

export interface DriverRecoveryOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly stopping: AbortSignal;
  /** Runs what is not awaited by the agent's start. */
  readonly background: (run: () => Promise<void>) => void;
  /** A driver sees its guests from now on. */
  readonly onRecovered: (driver: Driver) => void;
}

const recoverRetry = { delayMsMin: 1000, delayMsMax: 60_000 };

export class DriverRecovery {
  readonly #options: DriverRecoveryOptions;
  readonly #ready = new Set<Driver>();
  /** Why a driver cannot find its guests again. */
  readonly #failures = new Map<Driver, string>();

  constructor(options: DriverRecoveryOptions) {
    this.#options = options;
  }

  isReady(driver: Driver): boolean {
    return this.#ready.has(driver);
  }

  get readyCount(): number {
    return this.#ready.size;
  }

  failureOf(driver: Driver): string | undefined {
    return this.#failures.get(driver);
  }

  /** The first attempt is awaited, those after it are made in the background. */
  async recover(driver: Driver): Promise<void> {
    if (await this.#attempt(driver)) return;
    this.#options.background(() => this.#tryAgain(driver));
  }

  async #tryAgain(driver: Driver): Promise<void> {
    const { clock, prng, stopping } = this.#options;
    for (let attempt = 0; !stopping.aborted; attempt++) {
      await sleep(clock, backoffMs(attempt, recoverRetry, prng), stopping);
      if (!stopping.aborted && (await this.#attempt(driver))) return;
    }
  }

  async #attempt(driver: Driver): Promise<boolean> {
    const { log, stopping, onRecovered } = this.#options;
    try {
      await driver.recover();
    } catch (error) {
      this.#failures.set(driver, describeError(error));
      log.error('a driver cannot find its guests again; trying again', {
        driver: driver.name,
        error: describeError(error),
      });
      return false;
    }
    if (stopping.aborted) return true;
    this.#ready.add(driver);
    onRecovered(driver);
    return true;
  }
}
