// Holds a connection to the runner of one guest while the guest is up and has something to say, and opens it again whenever it breaks.

import { backoffMs } from '../../../base/backoff.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { Driver } from '../../drivers/driver.ts';
import type { AgentCommand, GuestFrame, StreamOffsets } from '../protocol.ts';
import type { KeeperOptions } from './keeper-options.ts';
import { RunnerTalk } from './runner-talk.ts';

export interface ConnectionOptions
  extends Pick<KeeperOptions, 'instanceId' | 'clock' | 'prng' | 'log' | 'randomSecret'> {
  readonly offsets: () => StreamOffsets;
  readonly take: (frames: readonly GuestFrame[]) => Promise<void>;
  /** A connection is over, and all that came over it was taken. */
  readonly closed: () => Promise<void>;
}

const retry = { delayMsMin: 50, delayMsMax: 3000 };

export class RunConnection {
  readonly #options: ConnectionOptions;
  readonly #closing = new AbortController();
  #driver: Driver | undefined;
  #talk: RunnerTalk | undefined;
  #broken: AbortController | undefined;
  #held: Promise<void> | undefined;
  #over = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  get talking(): boolean {
    return this.#talk !== undefined;
  }

  /** The guest is up. */
  open(driver: Driver): void {
    this.#driver = driver;
    if (this.#over || this.#closing.signal.aborted) return;
    this.#held ??= this.#hold().finally(() => (this.#held = undefined));
  }

  /** The guest is not up: what it wrote is still read. */
  pause(): void {
    this.#driver = undefined;
  }

  say(command: AgentCommand): void {
    this.#talk?.say(command);
  }

  hello(): void {
    this.#talk?.hello();
  }

  breakOff(): void {
    this.#broken?.abort();
  }

  /** The last word: the connection is left open for the guest to hear it, and is not opened again. */
  bye(power: 'off' | 'stay'): void {
    if (this.#talk === undefined || this.#over) return;
    this.#over = true;
    this.#talk.rest();
    this.say({ kind: 'bye', power });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#held;
  }

  async #hold(): Promise<void> {
    const { clock, prng, log, instanceId, closed } = this.#options;
    for (let attempt = 0; this.#driver !== undefined && !this.#over && !this.#closing.signal.aborted; attempt++) {
      try {
        await this.#converse(this.#driver, () => (attempt = 0));
      } catch (error) {
        log.debug('no connection to the runner of a guest', { instance: instanceId, error: describeError(error) });
      }
      this.#talk = undefined;
      await closed();
      await sleep(clock, backoffMs(attempt, retry, prng), this.#closing.signal);
    }
  }

  async #converse(driver: Driver, heard: () => void): Promise<void> {
    const { instanceId, clock, randomSecret, offsets, take } = this.#options;
    const port = await driver.access?.openRunner?.(instanceId);
    if (port === undefined) throw new Error(`driver "${driver.name}" has no port for runners`);
    this.#broken = new AbortController();
    this.#talk = new RunnerTalk({ port, clock, randomSecret, offsets });
    const signal = AbortSignal.any([this.#broken.signal, this.#closing.signal]);
    await this.#talk.run(async (frames) => {
      await take(frames);
      if (!signal.aborted) heard(); // a disk that is full is not asked again at once
    }, signal);
  }
}
