// Who this agent is to its fleet, in its data directory: its private key, which never leaves this host, and the certificate that it has for
// it. The file is replaced as a whole; what is damaged is never replaced by something else.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../base/is-record.ts';
import { writeWhole } from '../host/write-whole.ts';

/** Before the server has answered: asked again with the same key, it gives the same certificate. */
export interface PendingIdentity {
  readonly serverUrl: string;
  readonly hostName: string;
  /** PKCS #8, PEM. */
  readonly key: string;
}

export interface HostIdentity extends PendingIdentity {
  readonly hostId: string;
  /** With its issuer, PEM. */
  readonly certificate: string;
  /** The authorities that servers' certificates are of; absent: those that this machine trusts. */
  readonly authorities?: string;
}

export function identityPath(dataDirectory: string): string {
  return join(dataDirectory, 'identity.json');
}

/** Undefined: this agent has not joined. Throws when the file is damaged. */
export async function readIdentity(dataDirectory: string): Promise<PendingIdentity | HostIdentity | undefined> {
  const path = identityPath(dataDirectory);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const identity = parsed(text);
  if (identity === undefined)
    throw new Error(`${path} is damaged; remove it, and join again with "berth agent join", after "berth host rm"`);
  return identity;
}

export function isJoined(identity: PendingIdentity | HostIdentity | undefined): identity is HostIdentity {
  return identity !== undefined && 'certificate' in identity;
}

export function writeIdentity(dataDirectory: string, identity: PendingIdentity | HostIdentity): Promise<void> {
  return writeWhole(identityPath(dataDirectory), `${JSON.stringify(identity, undefined, 2)}\n`);
}

function parsed(text: string): PendingIdentity | HostIdentity | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { serverUrl, hostName, key, hostId, certificate, authorities } = value;
  if (typeof serverUrl !== 'string' || typeof hostName !== 'string' || typeof key !== 'string') return undefined;
  const pending = { serverUrl, hostName, key };
  if (certificate === undefined) return pending;
  if (typeof certificate !== 'string' || typeof hostId !== 'string') return undefined;
  return { ...pending, hostId, certificate, ...(typeof authorities === 'string' ? { authorities } : {}) };
}
