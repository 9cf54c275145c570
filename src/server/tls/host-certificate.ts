// Who a client certificate says that its bearer is. TLS alone does not decide: a certificate counts only while the store has its serial,
// which is looked up at every request.

import type { X509Certificate } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { certificateStands } from '../../core/operations/access/join.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';

/** What a certificate of a host says. */
export interface ShownCertificate {
  readonly host: string;
  readonly hostId: string;
  /** Lower-case hex. */
  readonly serial: string;
}

/** Read once for each connection: its certificate cannot change. */
const shown = new WeakMap<Duplex, ShownCertificate | false>();

/** The certificate that was shown on this connection, if it is one of our hosts'; its validity is not looked up yet. */
export function shownCertificate(socket: Duplex): ShownCertificate | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  let known = shown.get(socket);
  if (known === undefined) {
    const certificate = socket.getPeerX509Certificate();
    known = (certificate && readCertificate(certificate)) ?? false;
    shown.set(socket, known);
  }
  return known || undefined;
}

/** Undefined: this is no certificate of a host. */
export function readCertificate(certificate: X509Certificate): ShownCertificate | undefined {
  const hostId = /^URI:berth:\/\/host\/([a-z0-9_]{1,64})$/.exec(certificate.subjectAltName ?? '')?.[1];
  const host = /^CN=([a-z0-9-]{1,63})$/.exec(certificate.subject)?.[1];
  if (hostId === undefined || host === undefined || certificate.ca) return undefined;
  return { host, hostId, serial: certificate.serialNumber.toLowerCase().replace(/^0+/, '') };
}

/** The name of the host, if the certificate stands now. */
export function hostOfCertificate(
  snapshot: Pick<Snapshot, 'get'>,
  certificate: ShownCertificate | undefined,
  nowMs: number,
): string | undefined {
  return certificate && certificateStands(snapshot, certificate, nowMs) ? certificate.host : undefined;
}
