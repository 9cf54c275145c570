// Finds the address of a guest where libvirt can know it: leases of a network of libvirt's, the guest agent, the host's table of
// neighbours. A guest that says none of it has none. What a guest says of itself is shown, and believed in nothing else.

import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { macAddress } from '../guest-life/guest-files.ts';
import { addressOf } from '../guest-life/ways-in/interface-addresses.ts';
import type { Connection } from './connection.ts';
import { readLiveDomain, userNetwork } from './domain/domain-xml.ts';
import type { Domain } from './libvirt.ts';

export interface GuestAddress {
  /** As it is now, or was a few seconds ago. Undefined: unknown. */
  current(): Promise<string | undefined>;
  /** Calls `listener` as soon as it is known, and at each change. `sure`: its source, or the guest, confirms it now; otherwise it was seen once. */
  onFound(listener: (address: string, sure: boolean) => void): void;
}

interface Found {
  readonly address: string;
  readonly sure: boolean;
}

const knownForMs = 10_000; // a lease changes in minutes at the soonest
const knownLookMs = 30_000; // of all guests of the host
const unknownForMs = 1000; // many may ask at once
const retry = { delayMsMin: 1000, delayMsMax: 15_000 }; // a guest may get its address late, or run for months without any; asking costs milliseconds

export function guestAddress(options: {
  readonly connection: Connection;
  readonly domain: Domain;
  readonly network: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Aborts when the guest is no longer watched. */
  readonly signal: AbortSignal;
}): GuestAddress {
  const { clock, prng, log, signal } = options;
  let last: { readonly found: Found | undefined; readonly untilMs: number } | undefined;
  let asking: Promise<Found | undefined> | undefined;

  const ask = async (): Promise<Found | undefined> => {
    const found = await findAddress(options).catch((error: unknown) => {
      log.debug('cannot ask for the address of a guest', { error: describeError(error) });
      return undefined;
    });
    last = { found, untilMs: clock.monotonicMs() + (found === undefined ? unknownForMs : knownForMs) };
    return found;
  };
  const current = async (): Promise<Found | undefined> => {
    if (last !== undefined && clock.monotonicMs() < last.untilMs) return last.found;
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    return asking;
  };
  const search = async (listener: (address: string, sure: boolean) => void): Promise<void> => {
    let told: string | undefined;
    for (let attempt = 0; !signal.aborted; attempt++) {
      await sleep(clock, told === undefined ? backoffMs(attempt, retry, prng) : knownLookMs, signal);
      const found = signal.aborted ? undefined : await current();
      if (found === undefined || signal.aborted) continue;
      if (found.address !== told) listener(found.address, found.sure);
      told = found.address;
      if (options.network === userNetwork) return; // it never has another there
    }
  };
  return { current: async () => (await current())?.address, onFound: (listener) => void search(listener) };
}

async function findAddress({
  connection,
  domain,
  network,
}: {
  readonly connection: Connection;
  readonly domain: Domain;
  readonly network: string;
}): Promise<Found | undefined> {
  const card = macAddress(domain.uuid);
  if (network !== userNetwork) {
    const leased = addressOf(await connection.ask((libvirt) => libvirt.addresses(domain, 'lease')), card);
    if (leased !== undefined) return { address: leased, sure: true };
  }
  // Asked only where there is one: each time that there is none libvirt writes an error into its log.
  const live = readLiveDomain(await connection.ask((libvirt) => libvirt.xml(domain)));
  if (live.guestAgentConnected) {
    const told = await connection.apart((libvirt) => libvirt.addresses(domain, 'agent')).catch(() => []); // it may hang: then the neighbours
    const address = addressOf(told, card);
    if (address !== undefined) return { address, sure: true };
  }
  if (network === userNetwork) return undefined;
  const heard = addressOf(await connection.ask((libvirt) => libvirt.addresses(domain, 'arp')), card);
  return heard === undefined ? undefined : { address: heard, sure: false };
}
