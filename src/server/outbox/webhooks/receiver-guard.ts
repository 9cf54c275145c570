// Which addresses webhooks may be sent to. People of a project choose the URL, and the server asks from its own network: without a guard
// they would reach what only the server can. Names are resolved, every address is checked, and the connection goes to a checked one.

import type { lookup as dnsLookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { ApiError } from '../../../api/errors.ts';
import { addressKind, type AddressKind } from '../../../base/net/address-kind.ts';
import { checkedLookup } from '../../../base/net/checked-lookup.ts';

export interface AllowedSubnet {
  readonly list: BlockList;
  readonly port: number | undefined;
}

export interface GuardOptions {
  /** Default: the system's resolver. */
  readonly lookup?: typeof dnsLookup;
  readonly kindOf?: (address: string) => AddressKind;
}

export class ReceiverGuard {
  readonly #allowed: readonly AllowedSubnet[];
  readonly #lookup: typeof dnsLookup | undefined;
  readonly #kindOf: (address: string) => AddressKind;

  /** `allow`: `10.0.0.0/8:8443`, or without a port for all. Throws `InvalidRequest`. */
  constructor(allow: readonly string[], { lookup, kindOf = addressKind }: GuardOptions = {}) {
    this.#allowed = allow.map((text, i) => allowedSubnet(text, `webhookAllow[${i}]`));
    this.#lookup = lookup;
    this.#kindOf = kindOf;
  }

  /** Why nothing is sent to this address; undefined: it may be. `secure`: over TLS. */
  whyNot(address: string, port: number, secure: boolean): string | undefined {
    const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
    if (isAllowed(this.#allowed, plain, port)) return undefined;
    const kind = this.#kindOf(address);
    if (kind !== 'public')
      return `${address} is not an address of the open network; webhookAllow of the server can permit it`;
    return secure ? undefined : 'plain HTTP would show the events to others; use https';
  }

  /** The URL, when its host may be one. A host that is an address is checked here, for it is never looked up. Throws with the reason. */
  checkedUrl(text: string): URL {
    const url = new URL(text);
    if (url.username !== '' || url.password !== '') throw new Error('a URL with a user name is not taken');
    const literal = url.hostname.replace(/^\[|\]$/g, '');
    if (isIP(literal) === 0) return url;
    const why = this.whyNot(literal, portOf(url), url.protocol === 'https:');
    if (why !== undefined) throw new Error(why);
    return url;
  }

  /** For the connection to this URL: fails when any address is not allowed, for the next answer may be another. */
  lookupFor(url: URL): LookupFunction {
    const secure = url.protocol === 'https:';
    return checkedLookup((address) => {
      const why = this.whyNot(address, portOf(url), secure);
      return why === undefined ? undefined : new Error(why);
    }, this.#lookup);
  }
}

export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}

export function isAllowed(allowed: readonly AllowedSubnet[], address: string, port: number): boolean {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  return allowed.some((each) => (each.port ?? port) === port && each.list.check(address, family));
}

/** `text`: `10.0.0.0/8:8443`. Throws `InvalidRequest` with the field. */
export function allowedSubnet(text: string, field: string): AllowedSubnet {
  const [, network = '', bits = '', port] = /^\[?([0-9a-fA-F:.]+?)\]?\/(\d{1,3})(?::(\d{1,5}))?$/.exec(text) ?? [];
  const family = isIP(network);
  if (family === 0 || Number(bits) > (family === 6 ? 128 : 32) || Number(port ?? 1) > 65_535)
    throw new ApiError('InvalidRequest', `${field}: "${text}" is not a subnet, such as 10.0.0.0/8:8443`, { field });
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family === 6 ? 'ipv6' : 'ipv4');
  return { list, port: port === undefined ? undefined : Number(port) };
}
