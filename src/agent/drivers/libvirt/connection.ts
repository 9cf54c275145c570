// The one connection to libvirt that all guests of this host share. When the daemon goes away it is looked for again until it is back;
// meanwhile nothing is concluded about any guest. Decides nothing about guests, and keeps nothing of them.
//
//   away ─ connected ─► standing ─ closed by either side ─► away (told in the log) ─► ...

import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { type Libvirt, openLibvirt } from './libvirt.ts';
import type { LibvirtAddress } from './wire/libvirt-uri.ts';
import { LibvirtError } from './wire/rpc.ts';

/** What a guest's follower is told: only that it should look, and what cannot be looked up later. */
export type News =
  /** Something happened to it. */
  | { readonly kind: 'look' }
  /** A new connection stands, and anything may have happened before. */
  | { readonly kind: 'connected' }
  /** It could not use its disk, was told so, and runs on. */
  | { readonly kind: 'disk-error-reported' };

export interface Connection {
  /**
   * Asks over the shared connection, and once more over the next one when that ends meanwhile: for what can be repeated, and is answered at
   * once. Throws `LibvirtError` as libvirt does, and `DriverError` `HypervisorFailed` when libvirt is away for longer than `patienceMs`.
   */
  ask<Result>(act: (libvirt: Libvirt) => Promise<Result>, patienceMs?: number): Promise<Result>;
  /** Over a connection of its own: for what takes long or may hang, as one QEMU's trouble must not become that of other guests. */
  apart<Result>(act: (libvirt: Libvirt) => Promise<Result>): Promise<Result>;
  /** Tells of one guest, until the answer is called. */
  watch(uuid: string, listener: (news: News) => void): () => void;
  /** Whoever waits for libvirt to come back waits no longer; what is under way goes on. */
  stopWaiting(): void;
  close(): void;
}

const retry = { delayMsMin: 100, delayMsMax: 5000 };
/** A daemon that is started anew is back within a second, on a host with many guests within a few. */
const patienceMsDefault = 15_000;

export function createConnection(options: {
  readonly address: LibvirtAddress;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}): Connection {
  const { address, clock, prng, log } = options;
  const listeners = new Map<string, Set<(news: News) => void>>();
  const closing = new AbortController();
  const patience = new AbortController();
  let standing: Libvirt | undefined;
  let lastError = 'it was not looked for yet';
  let arrival = Promise.withResolvers<void>();
  let holding: Promise<void> | undefined;

  const tell = (uuid: string, news: News): void => {
    for (const listener of listeners.get(uuid) ?? []) listener(news);
  };

  const openAny = async (events: boolean): Promise<Libvirt> => {
    const refusals: string[] = [];
    for (const path of address.sockets) {
      try {
        return await openLibvirt({
          path,
          uri: address.uri,
          clock,
          ...(events
            ? {
                onLifecycle: ({ domain }) => tell(domain.uuid, { kind: 'look' }),
                onDiskError: ({ domain, action }) =>
                  tell(domain.uuid, { kind: action === 'reported' ? 'disk-error-reported' : 'look' }),
              }
            : {}),
        });
      } catch (error) {
        refusals.push(describeError(error));
      }
    }
    throw new LibvirtError(refusals.join('; '));
  };

  const hold = async (): Promise<void> => {
    for (let attempt = 0; !closing.signal.aborted; attempt++) {
      try {
        const session = await openAny(true);
        if (closing.signal.aborted) return session.close();
        standing = session;
        attempt = 0;
        log.debug('connected to libvirt');
        arrival.resolve();
        for (const uuid of listeners.keys()) tell(uuid, { kind: 'connected' });
        lastError = await session.closed;
        standing = undefined;
        arrival = Promise.withResolvers();
        if (closing.signal.aborted) return;
        log.warn('libvirt went away; its guests run on, and it is looked for again', { error: lastError });
      } catch (error) {
        lastError = describeError(error);
        log.debug('libvirt does not answer', { error: lastError });
      }
      await sleep(clock, backoffMs(attempt, retry, prng), closing.signal);
    }
  };

  const arrived = async (patienceMs: number): Promise<Libvirt> => {
    holding ??= hold();
    if (standing === undefined && !patience.signal.aborted) {
      const limit = new AbortController();
      const waited = AbortSignal.any([limit.signal, patience.signal]);
      await Promise.race([arrival.promise, sleep(clock, patienceMs, waited)]);
      limit.abort();
    }
    if (standing !== undefined) return standing;
    throw noAnswer();
  };

  const noAnswer = (): DriverError =>
    patience.signal.aborted
      ? new DriverError('Aborted', 'libvirt is not asked any more: the driver is closed')
      : new DriverError(
          'HypervisorFailed',
          `libvirt does not answer: ${lastError}; start it (systemctl start libvirtd), or install the package libvirt-daemon-system`,
        );

  /** A daemon that is going away may let nobody in while the shared connection still stands: then the next one does. */
  const openApart = async (): Promise<Libvirt> => {
    const untilMs = clock.monotonicMs() + patienceMsDefault;
    for (let attempt = 0; ; attempt++) {
      await arrived(Math.max(0, untilMs - clock.monotonicMs()));
      try {
        return await openAny(false);
      } catch (error) {
        log.debug('libvirt lets nobody in', { error: describeError(error) });
        if (clock.monotonicMs() >= untilMs || patience.signal.aborted) throw noAnswer();
      }
      await sleep(clock, backoffMs(attempt, retry, prng), patience.signal);
    }
  };

  return {
    async ask(act, patienceMs = patienceMsDefault) {
      const session = await arrived(patienceMs);
      try {
        return await act(session);
      } catch (error) {
        if (!isLost(error)) throw error;
        await session.closed;
      }
      return act(await arrived(patienceMs));
    },
    async apart(act) {
      const session = await openApart();
      try {
        return await act(session);
      } finally {
        session.close();
      }
    },
    watch(uuid, listener) {
      const of = listeners.get(uuid) ?? new Set();
      listeners.set(uuid, of.add(listener));
      return () => {
        of.delete(listener);
        if (of.size === 0 && listeners.get(uuid) === of) listeners.delete(uuid);
      };
    },
    stopWaiting: () => patience.abort(),
    close() {
      patience.abort();
      closing.abort();
      standing?.close();
    },
  };
}

/** The connection ended, so it is unknown whether the call was carried out. */
export const isLost = (error: unknown): boolean => error instanceof LibvirtError && error.code === undefined;

/** The error of a call to libvirt as the driver reports it. */
export function driverErrorOf(what: string, error: unknown): DriverError {
  if (error instanceof DriverError) return error;
  return new DriverError('HypervisorFailed', `cannot ${what}: ${describeError(error)}`, error);
}
