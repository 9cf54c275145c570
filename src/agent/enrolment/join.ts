// Joins a fleet: the agent makes its key, shows a join token, and gets a certificate. It may be repeated after any failure: with the same
// key the server gives the same answer.

import { X509Certificate } from 'node:crypto';
import { createClient } from '../../api/client/client.ts';
import { ApiError } from '../../api/errors.ts';
import { type IssuedCertificate, renewableMs } from '../../api/joining.ts';
import { describeError } from '../../base/log.ts';
import { fingerprintOf } from '../../base/tls/fingerprint.ts';
import { pinnedAuthority } from '../../base/tls/pinned-authority.ts';
import { TlsFetch } from '../../base/tls/tls-fetch.ts';
import { certificateRequest, makeKey } from './certificate-request.ts';
import { type HostIdentity, isJoined, readIdentity, writeIdentity } from './identity-file.ts';

export interface JoinOptions {
  readonly serverUrl: string;
  readonly token: string;
  readonly hostName: string;
  readonly dataDirectory: string;
  /** PEM of authorities to trust, when the token names none. */
  readonly ca?: string | undefined;
  /** Of this host, from before it has a certificate. */
  readonly hostToken?: string | undefined;
  readonly userAgent: string;
  /** Of the wall clock. */
  readonly nowMs: number;
}

/** `already`: an earlier call has joined. Throws `ApiError`. */
export async function joinFleet(
  options: JoinOptions,
): Promise<{ readonly identity: HostIdentity; readonly already: boolean; readonly serverTimeMs?: number }> {
  const { serverUrl, token, hostName, dataDirectory, nowMs } = options;
  if (!token.startsWith('berth_j_'))
    throw new ApiError('InvalidRequest', 'this is no join token; "berth host join-token create" prints one', {
      field: 'token',
    });
  const known = await readIdentity(dataDirectory);
  if (known && (known.hostName !== hostName || (isJoined(known) && known.serverUrl !== serverUrl)))
    throw new ApiError(
      'Conflict',
      `${dataDirectory} is the data directory of host "${known.hostName}" of ${known.serverUrl}; use another, or remove identity.json there when that host is gone`,
    );
  if (isJoined(known) && !isOfAnother(known, token) && !isTooOld(known, nowMs))
    return { identity: known, already: true };
  if (!serverUrl.startsWith('https:'))
    throw new ApiError(
      'InvalidRequest',
      `${serverUrl}: joining needs https:; over plain HTTP the join token could be read, and no certificate could be shown`,
      { field: 'serverUrl' },
    );
  const pending = { serverUrl, hostName, key: known?.key ?? (await makeKey()) };
  // Before the request: the server's answer is for this key.
  if (!isJoined(known)) await writeIdentity(dataDirectory, pending);
  const authorities = await authoritiesOf(options);
  const trust = authorities === undefined ? {} : { ca: authorities };
  const tls = new TlsFetch(() => trust);
  try {
    const { hostToken, userAgent } = options;
    const client = createClient({
      ...{ fetch: tls.fetch, url: serverUrl, userAgent },
      ...(hostToken === undefined ? {} : { token: hostToken }),
    });
    const body = { token, host: hostName, request: await certificateRequest(pending.key, hostName) };
    const answer = await client.json<IssuedCertificate>('/v1/join', { method: 'POST', body });
    const pinned = authorities !== undefined && pinOf(token) !== undefined;
    const identity = {
      ...pending,
      hostId: answer.hostId,
      certificate: answer.certificate,
      ...(pinned ? { authorities: answer.authorities } : trust.ca === undefined ? {} : { authorities: trust.ca }),
    };
    await writeIdentity(dataDirectory, identity);
    return { identity, already: false, serverTimeMs: answer.serverTimeMs };
  } finally {
    tls.close();
  }
}

/** The authority of its fleet was replaced before this host learned the new one: it joins again, with its key. */
function isOfAnother({ authorities }: HostIdentity, token: string): boolean {
  const pin = pinOf(token);
  if (pin === undefined || authorities === undefined) return false;
  const roots = authorities.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return !roots.some((root) => fingerprintOf(root) === pin);
}

/** It cannot be renewed any more: the host joins again, with its key. */
function isTooOld({ certificate }: HostIdentity, nowMs: number): boolean {
  return new X509Certificate(certificate).validToDate.getTime() + renewableMs < nowMs;
}

/** The fingerprint in a join token; undefined: servers have certificates of an authority that machines trust anyway. */
function pinOf(token: string): string | undefined {
  const pin = /\.([A-Za-z0-9_-]{43})$/.exec(token)?.[1];
  return pin === undefined ? undefined : `sha256:${Buffer.from(pin, 'base64url').toString('hex')}`;
}

async function authoritiesOf({ serverUrl, token, ca }: JoinOptions): Promise<string | undefined> {
  const pin = pinOf(token);
  if (pin === undefined) return ca;
  try {
    return await pinnedAuthority(serverUrl, pin);
  } catch (cause) {
    throw new ApiError('Unavailable', `cannot verify ${serverUrl}: ${describeError(cause)}`, { cause });
  }
}
