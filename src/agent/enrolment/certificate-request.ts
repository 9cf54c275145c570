// The key pair of a host, and requests for certificates of it. The private key is made here and leaves only as text for the host's own disk.

import 'reflect-metadata'; // the package below needs it
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { PemConverter, Pkcs10CertificateRequestGenerator } from '@peculiar/x509';

const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** ECDSA P-256; PKCS #8, PEM. */
export async function makeKey(): Promise<string> {
  const { privateKey } = await crypto.subtle.generateKey(p256, true, ['sign', 'verify']);
  return PemConverter.encode(await crypto.subtle.exportKey('pkcs8', privateKey), 'PRIVATE KEY');
}

/** PKCS #10, PEM. */
export async function certificateRequest(key: string, hostName: string): Promise<string> {
  const privateKey = createPrivateKey(key);
  const bytes = {
    pkcs8: Uint8Array.from(privateKey.export({ type: 'pkcs8', format: 'der' })),
    spki: Uint8Array.from(createPublicKey(privateKey).export({ type: 'spki', format: 'der' })),
  };
  const keys = {
    privateKey: await crypto.subtle.importKey('pkcs8', bytes.pkcs8, p256, false, ['sign']),
    publicKey: await crypto.subtle.importKey('spki', bytes.spki, p256, true, ['verify']),
  };
  const name = [{ CN: [hostName] }];
  const request = await Pkcs10CertificateRequestGenerator.create({ name, keys, signingAlgorithm: p256 });
  return request.toString('pem');
}

/** ECDSA with SHA-256 in DER, base64. */
export function signatureOf(text: string, key: string): string {
  return sign('sha256', Buffer.from(text), key).toString('base64');
}
