// What every action of a fake driver works with: its world, one queue per guest, and the end of the driver. A closed
// driver is a dead agent: it must not touch the world again, at whatever step it stood.

import { type Clock, sleep } from '../../../base/clock.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { type FakeGuest, slowness } from './fake-guest.ts';
import type { FakeWorld } from './world.ts';

export class Hands {
  readonly world: FakeWorld;
  readonly host: string;
  readonly clock: Clock;
  readonly #prng: Prng;
  readonly #queues = new Map<string, Promise<void>>(); // operations on one guest follow one another
  readonly #progress = new Map<string, string>();
  readonly #listeners = new Set<(instanceId: string) => void>();
  readonly #closing = new AbortController();
  readonly #unwatch: () => void;

  constructor(parts: { readonly world: FakeWorld; readonly host: string; readonly prng: Prng }) {
    this.world = parts.world;
    this.host = parts.host;
    this.clock = parts.world.clock;
    this.#prng = parts.prng;
    this.#unwatch = parts.world.onChange(parts.host, (instanceId) => this.#notify(instanceId));
  }

  /** Aborts when the driver is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Runs `act` after all earlier operations on this guest. */
  inLine<Result>(instanceId: string, act: () => Promise<Result>): Promise<Result> {
    const result = (this.#queues.get(instanceId) ?? Promise.resolve()).then(() => {
      this.throwIfClosed(instanceId);
      return act();
    });
    const queue = result.then(
      () => {},
      () => {}, // the caller gets the error
    );
    this.#queues.set(instanceId, queue);
    void queue.then(() => {
      if (this.#queues.get(instanceId) === queue) this.#queues.delete(instanceId);
    });
    return result;
  }

  throwIfClosed(instanceId: string): void {
    if (this.closing.aborted)
      throw new DriverError('Aborted', `nothing more is done to ${instanceId}: the driver is closed`);
  }

  /** The guest, or `NoSuchGuest`. */
  here(verb: string, instanceId: string): FakeGuest {
    const guest = this.world.guest(this.host, instanceId);
    if (guest === undefined)
      throw new DriverError('NoSuchGuest', `cannot ${verb} ${instanceId}: there is no such guest on this host`);
    return guest;
  }

  /** The guest, if its record can be read. */
  intact(verb: string, instanceId: string): FakeGuest {
    const guest = this.here(verb, instanceId);
    if (guest.damaged) throw recordDamaged(verb, instanceId);
    return guest;
  }

  /** Up to a quarter more or less, so that guests do not march in step. */
  spread(durationMs: number): number {
    return durationMs === 0 ? 0 : Math.max(1, Math.round((durationMs * (75 + this.#prng.below(51))) / 100));
  }

  /** Waits as long as a step of this guest takes. */
  pause(guest: FakeGuest, durationMs: number, signal: AbortSignal): Promise<void> {
    return sleep(this.clock, this.spread(durationMs * slowness(guest)), signal);
  }

  progress(instanceId: string): string | undefined {
    return this.#progress.get(instanceId);
  }

  setProgress(instanceId: string, text: string | undefined): void {
    if (text === undefined) this.#progress.delete(instanceId);
    else this.#progress.set(instanceId, text);
    this.#notify(instanceId);
  }

  watch(listener: (instanceId: string) => void, signal: AbortSignal): void {
    if (signal.aborted) return;
    const each = (instanceId: string): void => listener(instanceId); // a function of its own, because one listener may watch twice
    this.#listeners.add(each);
    signal.addEventListener('abort', () => this.#listeners.delete(each), { once: true });
  }

  close(): void {
    this.#closing.abort();
    this.#unwatch();
    this.#listeners.clear();
  }

  #notify(instanceId: string): void {
    for (const listener of this.#listeners) listener(instanceId);
  }
}

export const recordDamaged = (verb: string, instanceId: string): DriverError =>
  new DriverError('Internal', `cannot ${verb} ${instanceId}: the record of the guest that is here is damaged`);
