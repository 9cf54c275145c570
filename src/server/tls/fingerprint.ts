// The fingerprint of a certificate, as clients and join tokens carry it.

import { createHash, X509Certificate } from 'node:crypto';

/** `sha256:` and the digest of its DER. */
export function fingerprintOf(pem: string): string {
  return `sha256:${createHash('sha256').update(new X509Certificate(pem).raw).digest('hex')}`;
}
