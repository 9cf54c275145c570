// Which addresses readiness probes may reach. Users choose them, and the server asks from its own network: without a guard they would reach
// what only the server can. Allowed are the spare itself, the open network, and what the configuration adds.

import type { lookup as dnsLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { addressKind } from '../../../base/net/address-kind.ts';
import { checkedLookup } from '../../../base/net/checked-lookup.ts';
import { type AllowedSubnet, allowedSubnet, isAllowed } from '../../outbox/webhooks/receiver-guard.ts';

export interface GuardedPlace {
  /** As in a URL, without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** Address or name of the spare; a probe may reach it although it is not of the open network. */
  readonly ownAddress: string | undefined;
}

export class ProbeGuard {
  readonly #allowed: readonly AllowedSubnet[];
  readonly #lookup: typeof dnsLookup | undefined;

  /** `allow`: `10.0.0.0/8:8443`, or without a port for all. Throws `InvalidRequest`. */
  constructor(allow: readonly string[], lookup?: typeof dnsLookup) {
    this.#allowed = allow.map((text, i) => allowedSubnet(text, `probeAllow[${i}]`));
    this.#lookup = lookup;
  }

  /** Why this address is not connected to; undefined: it may be. */
  whyNot(address: string, { hostname, port, ownAddress }: GuardedPlace): string | undefined {
    const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
    if (isAllowed(this.#allowed, plain, port)) return undefined;
    const kind = addressKind(address);
    const isOwn = ownAddress !== undefined && [plain, hostname].includes(ownAddress);
    if (kind === 'public' || (isOwn && kind === 'private' && !isLoopback(plain))) return undefined;
    return `${address} is not an address of the open network, nor of the spare; probeAllow of the server can permit it`;
  }

  /** A literal address is never looked up, so it is judged here. */
  whyNotLiteral(place: GuardedPlace): string | undefined {
    return isIP(place.hostname) === 0 ? undefined : this.whyNot(place.hostname, place);
  }

  /** Fails when any address of the name is not allowed, for the next answer may be another. */
  lookupFor(place: GuardedPlace): LookupFunction {
    return checkedLookup((address) => {
      const why = this.whyNot(address, place);
      return why === undefined ? undefined : new Error(why);
    }, this.#lookup);
  }
}

/** A spare may have any address as its own; that of this machine would lead to what listens for this machine only. */
function isLoopback(address: string): boolean {
  return address.startsWith('127.') || /^::(ffff:.*|1)?$/.test(address);
}
