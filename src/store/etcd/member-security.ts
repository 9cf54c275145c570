// How the identity of an etcd member is verified: its certificate must match the host in its address. The handshake
// contains the host only when it is a name, because addresses are not allowed there (RFC 6066).

import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import { type ChannelCredentials, type ChannelOptions, credentials, type VerifyOptions } from '@grpc/grpc-js';
import type { EtcdAddress } from './etcd-url.ts';

/** Used in the handshake where a name is required. The certificate is not checked against it. */
const nameForAddresses = 'etcd';

/** `endpoint`: HOST:PORT. */
export function memberSecurity(
  endpoint: string,
  tls: EtcdAddress['tls'],
): { readonly credentials: ChannelCredentials; readonly options: ChannelOptions } {
  if (tls === undefined) return { credentials: credentials.createInsecure(), options: {} };
  const address = addressIn(endpoint);
  return {
    credentials: credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null, identityOf(address)),
    options: address === undefined ? {} : { 'grpc.ssl_target_name_override': nameForAddresses },
  };
}

/** `address` undefined: the name in the handshake is verified, as usual. */
export function identityOf(address: string | undefined): VerifyOptions {
  return address === undefined
    ? {}
    : { checkServerIdentity: (_name, certificate) => checkServerIdentity(address, certificate) };
}

export function addressIn(endpoint: string): string | undefined {
  const host = endpoint.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? undefined : host;
}
