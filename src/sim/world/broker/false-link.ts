// A connection of one false process to the false broker. Words take their time and keep their order; when the connection
// breaks, those on their way are lost, and each side notices in its own time. It connects again by itself.

import { sleep } from '../../../base/clock.ts';
import type { BrokerChannel, BrokerLink } from '../../../server/intake/amqp/broker.ts';
import { brokerError } from './broker-parts.ts';
import { FalseChannel } from './false-channel.ts';
import { type LinkOptions, Wire } from './wire.ts';

const connectWithinMs = 20_000;
const noticeMsMax = 3_000;

export class FalseLink implements BrokerLink {
  readonly options: LinkOptions;
  readonly first: Promise<Error | undefined>;
  readonly #first = Promise.withResolvers<Error | undefined>();
  readonly #waiting = new Set<(wire: Wire) => void>();
  readonly #wantFine = new Set<() => void>();
  #wire: Wire | undefined;
  #trouble: string | undefined = 'not connected yet';
  #closed = false;

  constructor(options: LinkOptions) {
    this.options = options;
    this.first = this.#first.promise;
    this.#connect();
  }

  get trouble(): string | undefined {
    return this.#trouble;
  }

  async fine(withinMs: number): Promise<boolean> {
    if (this.#trouble === undefined) return true;
    const stop = new AbortController();
    const resume = (): void => stop.abort();
    this.#wantFine.add(resume);
    await sleep(this.options.clock, withinMs, stop.signal);
    this.#wantFine.delete(resume);
    return this.#trouble === undefined;
  }

  async acquire(): Promise<BrokerChannel> {
    const wire = this.#wire ?? (await this.#connected());
    const channel = new FalseChannel(wire, this.options);
    await channel.opened;
    return channel;
  }

  afterTurn(run: () => void): void {
    this.options.clock.setTimer(0, run);
  }

  close(): Promise<void> {
    this.#closed = true;
    for (const resume of this.#wantFine) resume();
    this.break();
    return Promise.resolve();
  }

  /** The broker notices at once, the client later, if it lives. */
  break(): void {
    const wire = this.#wire;
    if (wire === undefined) return;
    wire.breakAtBroker();
    const { clock, prng } = this.options;
    clock.deliver(prng.below(noticeMsMax), () => this.#lost(wire));
  }

  /** The process is gone; the broker notices later. */
  die(): void {
    const wire = this.#wire;
    const { timeline, prng } = this.options;
    this.#closed = true;
    timeline.schedule(prng.below(noticeMsMax), () => wire?.breakAtBroker());
  }

  #lost(wire: Wire): void {
    wire.breakAtClient();
    if (this.#wire !== wire) return;
    this.#wire = undefined;
    this.#trouble = 'the broker cannot be reached: the connection broke';
    this.#connectLater();
  }

  #connectLater(): void {
    const { clock, prng } = this.options;
    if (!this.#closed) clock.setTimer(500 + prng.below(2_000), () => this.#connect());
  }

  #connect(): void {
    const { clock, weather, reachable } = this.options;
    if (this.#closed) return;
    clock.deliver(2 * weather.delayMs(), () => {
      if (this.#closed) return;
      if (!reachable()) {
        this.#trouble = 'the broker cannot be reached: connection refused';
        this.#first.resolve(new Error('connection refused'));
        return this.#connectLater();
      }
      const wire = new Wire(this.options, () => this.break());
      this.#wire = wire;
      this.#trouble = undefined;
      this.#first.resolve(undefined);
      for (const resume of this.#wantFine) resume();
      for (const take of this.#waiting) take(wire);
      this.#waiting.clear();
    });
  }

  #connected(): Promise<Wire> {
    return new Promise((resolve, reject) => {
      const take = (wire: Wire): void => {
        timer.cancel();
        resolve(wire);
      };
      this.#waiting.add(take);
      const timer = this.options.clock.setTimer(connectWithinMs, () => {
        this.#waiting.delete(take);
        reject(brokerError('CONN_TIMEOUT', 'no connection to the broker'));
      });
    });
  }
}
