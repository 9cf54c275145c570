// How the two ends of a direct connection authenticate each other.

import type { TLSSocket } from 'node:tls';

/** Flow-control window of one connection: the default of HTTP/2, 64 KiB, would wait for an answer after every few frames. */
export const windowBytes = 8 * 1024 * 1024;

/** TLS has proved that the peer has the key of this certificate. */
export function isPeer(socket: TLSSocket, fingerprint: string): boolean {
  return socket.getPeerX509Certificate()?.fingerprint256 === fingerprint;
}
