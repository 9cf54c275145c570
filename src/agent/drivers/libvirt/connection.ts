// The one connection to libvirt that all guests of this host share. When the daemon goes away, the agent reconnects until the daemon is back;
// meanwhile nothing is concluded about any guest. Decides nothing about guests, and stores nothing of them.
//
//   away ─ connected ─► standing ─ closed by either side ─► away (logged) ─► ...

import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { Libvirt } from './libvirt.ts';
import { type LibvirtOptions, openLibvirt } from './open-libvirt.ts';
import type { LibvirtAddress } from './wire/libvirt-uri.ts';
import { LibvirtError } from './wire/rpc.ts';

/** News for the supervision of a guest: that it should look, and what cannot be looked up later. */
export type News =
  /** Something happened to the guest. */
  | { readonly kind: 'look' }
  /** There is a new connection, and events before it may have been missed. */
  | { readonly kind: 'connected' }
  /** The guest got an error from its disk, and runs on. */
  | { readonly kind: 'disk-error-reported' };

export interface Connection {
  /**
   * Asks over the shared connection, and once more over the next one if the connection ends meanwhile: for calls that may be repeated and are
   * answered at once. Throws `LibvirtError` from libvirt, and `DriverError` `HypervisorFailed` when libvirt is away for longer than `patienceMs`.
   */
  ask<Result>(act: (libvirt: Libvirt) => Promise<Result>, patienceMs?: number): Promise<Result>;
  /** Asks over a connection of its own: for calls that take long or may hang, because a QEMU that hangs must not affect other guests. */
  apart<Result>(act: (libvirt: Libvirt) => Promise<Result>): Promise<Result>;
  /** Passes on news of one guest until the returned function is called. */
  watch(uuid: string, listener: (news: News) => void): () => void;
  /** Calls no longer wait for libvirt to come back; calls that libvirt is carrying out continue. */
  stopWaiting(): void;
  close(): void;
}

const retry = { delayMsMin: 100, delayMsMax: 5000 };
/** A daemon that restarts is back within a second, on a host with many guests within a few seconds. */
const patienceMsDefault = 15_000;

interface ConnectionOptions {
  readonly address: LibvirtAddress;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

export function createConnection(options: ConnectionOptions): Connection {
  return new SharedConnection(options);
}

class SharedConnection implements Connection {
  readonly #options: ConnectionOptions;
  readonly #listeners = new Map<string, Set<(news: News) => void>>();
  readonly #closing = new AbortController();
  /** Aborts when nothing waits for libvirt to come back any more. */
  readonly #patience = new AbortController();
  #standing: Libvirt | undefined;
  #lastError = 'it was not looked for yet';
  #arrival = Promise.withResolvers<void>();
  #holding = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  async ask<Result>(act: (libvirt: Libvirt) => Promise<Result>, patienceMs = patienceMsDefault): Promise<Result> {
    const session = await this.#arrived(patienceMs);
    try {
      return await act(session);
    } catch (error) {
      if (!isLost(error)) throw error;
      await session.closed;
    }
    return act(await this.#arrived(patienceMs));
  }

  async apart<Result>(act: (libvirt: Libvirt) => Promise<Result>): Promise<Result> {
    const session = await this.#openApart();
    try {
      return await act(session);
    } finally {
      session.close();
    }
  }

  watch(uuid: string, listener: (news: News) => void): () => void {
    const of = this.#listeners.get(uuid) ?? new Set();
    this.#listeners.set(uuid, of.add(listener));
    return () => {
      of.delete(listener);
      if (of.size === 0 && this.#listeners.get(uuid) === of) this.#listeners.delete(uuid);
    };
  }

  stopWaiting(): void {
    this.#patience.abort();
  }

  close(): void {
    this.#patience.abort();
    this.#closing.abort();
    this.#standing?.close();
  }

  #notify(uuid: string, news: News): void {
    for (const listener of this.#listeners.get(uuid) ?? []) listener(news);
  }

  /** Connects, and connects again after each loss, until `close`. */
  async #hold(): Promise<void> {
    const { clock, prng, log } = this.#options;
    const { signal } = this.#closing;
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const session = await this.#open({ events: true });
        if (signal.aborted) return session.close();
        attempt = 0;
        await this.#stand(session);
        if (signal.aborted) return;
        log.warn('libvirt went away; its guests run on, and it is looked for again', { error: this.#lastError });
      } catch (error) {
        this.#lastError = describeError(error);
        log.debug('libvirt does not answer', { error: this.#lastError });
      }
      await sleep(clock, backoffMs(attempt, retry, prng), signal);
    }
  }

  /** Resolves when this connection has ended. */
  async #stand(session: Libvirt): Promise<void> {
    this.#standing = session;
    this.#options.log.debug('connected to libvirt');
    this.#arrival.resolve();
    for (const uuid of this.#listeners.keys()) this.#notify(uuid, { kind: 'connected' });
    this.#lastError = await session.closed;
    this.#standing = undefined;
    this.#arrival = Promise.withResolvers();
  }

  /** Opens a connection over the first socket that lets the agent in. */
  async #open({ events }: { readonly events: boolean }): Promise<Libvirt> {
    const { address, clock } = this.#options;
    const refusals: string[] = [];
    for (const path of address.sockets) {
      try {
        return await openLibvirt({ path, uri: address.uri, clock, ...(events ? this.#eventListeners() : {}) });
      } catch (error) {
        refusals.push(describeError(error));
      }
    }
    throw new LibvirtError(refusals.join('; '));
  }

  #eventListeners(): Pick<LibvirtOptions, 'onLifecycle' | 'onDiskError'> {
    return {
      onLifecycle: ({ domain }) => this.#notify(domain.uuid, { kind: 'look' }),
      onDiskError: ({ domain, action }) =>
        this.#notify(domain.uuid, { kind: action === 'reported' ? 'disk-error-reported' : 'look' }),
    };
  }

  async #arrived(patienceMs: number): Promise<Libvirt> {
    if (!this.#holding) {
      this.#holding = true;
      void this.#hold();
    }
    if (this.#standing === undefined && !this.#patience.signal.aborted) {
      const limit = new AbortController();
      const waited = AbortSignal.any([limit.signal, this.#patience.signal]);
      await Promise.race([this.#arrival.promise, sleep(this.#options.clock, patienceMs, waited)]);
      limit.abort();
    }
    if (this.#standing !== undefined) return this.#standing;
    throw this.#noAnswer();
  }

  /** A daemon that shuts down may refuse new connections while the shared connection still stands: then the next daemon is waited for. */
  async #openApart(): Promise<Libvirt> {
    const { clock, prng, log } = this.#options;
    const { signal } = this.#patience;
    const untilMs = clock.monotonicMs() + patienceMsDefault;
    for (let attempt = 0; ; attempt++) {
      await this.#arrived(Math.max(0, untilMs - clock.monotonicMs()));
      try {
        return await this.#open({ events: false });
      } catch (error) {
        log.debug('libvirt accepts no connection', { error: describeError(error) });
        if (clock.monotonicMs() >= untilMs || signal.aborted) throw this.#noAnswer();
      }
      await sleep(clock, backoffMs(attempt, retry, prng), signal);
    }
  }

  #noAnswer(): DriverError {
    return this.#patience.signal.aborted
      ? new DriverError('Aborted', 'libvirt is not asked any more: the driver is closed')
      : new DriverError(
          'HypervisorFailed',
          `libvirt does not answer: ${this.#lastError}; start it (systemctl start libvirtd), or install the package libvirt-daemon-system`,
        );
  }
}

/** The connection ended, so it is unknown whether the call was carried out. */
export const isLost = (error: unknown): boolean => error instanceof LibvirtError && error.code === undefined;

/** The error of a call to libvirt as the driver reports it. */
export function driverErrorOf(what: string, error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  return new DriverError('HypervisorFailed', `cannot ${what}: ${describeError(error)}`, error);
}
