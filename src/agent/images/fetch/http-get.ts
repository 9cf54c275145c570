// HTTP GET for URLs that others wrote. It looks at every address before it connects, connects to that very address, and looks again at
// each redirect; it never asks a server that this host was not meant to reach.

import type { lookup as dnsLookup } from 'node:dns';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest, type RequestOptions as SecureOptions } from 'node:https';
import type { TlsTrust } from '../../../base/tls/tls-fetch.ts';
import { isIP } from 'node:net';
import { DriverError } from '../../host/driver-error.ts';
import { type AddressKind, addressKind } from '../../../base/net/address-kind.ts';
import { checkedLookup } from '../../../base/net/checked-lookup.ts';

/**
 * Which private addresses image URLs may lead to: `deny` none; `named` those that the image's own source or mirror names, but none to
 * which a public server redirects, and never a link-local one; `allow` all.
 */
export type PrivateAddresses = 'deny' | 'named' | 'allow';

export interface HttpAnswer {
  readonly status: number;
  /** The last URL, after redirects. */
  readonly url: string;
  /** A public server was asked on the way, or last. */
  readonly wasPublic: boolean;
  header(name: string): string | undefined;
  /** To be read to its end, or closed. A body that ends before its length is an error. */
  readonly body: AsyncIterable<Uint8Array>;
  close(): void;
}

export interface HttpGetCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** From https, plain http is followed only where a checksum protects the content. */
  readonly checksummed: boolean;
  /** A public server said to ask there: then it counts as a redirect. */
  readonly afterPublic?: boolean;
}

/** Throws `DriverError` `ImageUnavailable` for what no further try can change; anything else is a failure of the network. */
export type HttpGet = (url: string, call: HttpGetCall) => Promise<HttpAnswer>;

export interface HttpGetOptions {
  readonly privateAddresses: PrivateAddresses;
  /** Whom to trust, and the client's certificate. Default: Node's authorities, and none. */
  readonly trust?: () => TlsTrust;
  /** Default: the system's resolver. */
  readonly lookup?: typeof dnsLookup;
  readonly kindOf?: (address: string) => AddressKind;
}

const redirectsMax = 5;
/** Of services that speak no HTTP and could be made to do things by a request: the fetch standard's list, and the stores of fleets. */
const refusedPorts: ReadonlySet<string> = new Set(
  '1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 2379 2380 3306 3659 4045 4190 5060 5061 5432 5672 6000 6379 6566 6665 6666 6667 6668 6669 6679 6697 10080 11211 27017'.split(
    ' ',
  ),
);

export function createHttpGet(options: HttpGetOptions): HttpGet {
  return async (first, { headers, signal, checksummed, afterPublic = false }) => {
    let url = parsed(first, first);
    let sent = headers;
    let wasPublic = afterPublic;
    for (let redirects = 0; ; redirects++) {
      const seen: AddressKind[] = [];
      const response = await ask(url, { headers: sent, signal, options, first: first, wasPublic, seen });
      wasPublic ||= seen.includes('public');
      const { location } = response.headers;
      if (![301, 302, 303, 307, 308].includes(response.statusCode ?? 0) || location === undefined)
        return answerOf(url, response, wasPublic);
      response.destroy();
      if (redirects === redirectsMax) throw refused(first, `it redirects more than ${redirectsMax} times`);
      const next = parsed(location, first, url);
      if (url.protocol === 'https:' && next.protocol === 'http:' && !checksummed)
        throw refused(first, 'it redirects to plain http; give the image a checksum, or another source');
      if (next.origin !== url.origin) sent = withoutSecrets(sent);
      url = next;
    }
  };
}

function parsed(text: string, first: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw refused(first, base === undefined ? 'it is no http URL' : 'it redirects to something that is no http URL');
  if (url.username !== '' || url.password !== '')
    throw refused(first, 'a URL with a name or password in it is not taken; use a signed URL, or a registry');
  if (refusedPorts.has(url.port)) throw refused(first, `port ${url.port} is not for image servers`);
  return url;
}

interface Asking {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly options: HttpGetOptions;
  readonly first: string;
  /** A server of the open network has sent us here. */
  readonly wasPublic: boolean;
  /** Filled with what was connected to. */
  readonly seen: AddressKind[];
}

function ask(url: URL, { headers, signal, options, first, wasPublic, seen }: Asking): Promise<IncomingMessage> {
  const { privateAddresses, lookup, kindOf = addressKind } = options;
  const judge = (address: string): DriverError | undefined => {
    const kind = kindOf(address);
    seen.push(kind);
    if (kind === 'public' || privateAddresses === 'allow') return undefined;
    const where = url.hostname.includes(address) ? address : `${url.hostname} (${address})`;
    if (kind === 'forbidden') return refused(first, `${where} is where no image is served`);
    if (privateAddresses === 'deny')
      return refused(
        first,
        `${where} is a private address, and this host's agent takes images from public ones only (imagePrivateAddresses)`,
      );
    if (!wasPublic) return undefined;
    return refused(first, `a public server redirects to the private address ${where}`);
  };
  const literal = url.hostname.replace(/^\[|\]$/g, '');
  const verdict = isIP(literal) === 0 ? undefined : judge(literal);
  if (verdict !== undefined) return Promise.reject(verdict);
  return new Promise((resolve, reject) => {
    const send: (url: URL, options: SecureOptions) => ReturnType<typeof httpRequest> =
      url.protocol === 'https:' ? httpsRequest : httpRequest;
    const request = send(url, {
      headers: { ...headers, 'user-agent': 'berth-agent' },
      signal,
      lookup: checkedLookup(judge, lookup),
      agent: false,
      ...(url.protocol === 'https:' ? options.trust?.() : {}),
    });
    request.once('response', resolve);
    request.once('error', reject);
    request.end();
  });
}

function answerOf(url: URL, response: IncomingMessage, wasPublic: boolean): HttpAnswer {
  return {
    status: response.statusCode ?? 0,
    url: url.href,
    wasPublic,
    header: (name) => {
      const value = response.headers[name];
      return typeof value === 'string' ? value : undefined;
    },
    body: response,
    close: () => void response.destroy(),
  };
}

/** What was for one server is not told to another. */
function withoutSecrets(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== 'authorization' && name !== 'cookie'));
}

function refused(url: string, why: string): DriverError {
  return new DriverError('ImageUnavailable', `cannot fetch ${printableUrl(url)}: ${why}`);
}

/** Without password and query: they may hold secrets. */
export function printableUrl(url: string): string {
  if (!URL.canParse(url)) return 'the source';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}
