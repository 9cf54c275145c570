// The fingerprint of a certificate, as clients and join tokens carry it.

import { createHash, X509Certificate } from 'node:crypto';

/** The first 16 hex digits of the fingerprint: enough to detect a change, and never a proof. */
export function shortFingerprint(pem: string): string {
  return fingerprintOf(pem).slice('sha256:'.length).slice(0, 16);
}

/** `sha256:` and the digest of the DER encoding. */
export function fingerprintOf(pem: string): string {
  return `sha256:${createHash('sha256').update(new X509Certificate(pem).raw).digest('hex')}`;
}
