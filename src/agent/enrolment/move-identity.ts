// The identity of this agent in moves between hosts: a key and a self-signed certificate, created once in the data directory. The control plane
// sends each side the fingerprint of the other, so no authority is needed. The key never leaves this host.

import 'reflect-metadata'; // the package below needs it
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PemConverter, X509CertificateGenerator } from '@peculiar/x509';
import { isRecord } from '../../base/is-record.ts';
import { writeWhole } from '../host/write-whole.ts';
import type { MoveIdentity } from '../migration/direct/contract.ts';

const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** Peers compare fingerprints, never dates: a wrong clock cannot prevent a move. */
const notBefore = new Date(Date.UTC(2020, 0));
const notAfter = new Date(Date.UTC(2120, 0));

/** Creates a new identity when the file is damaged: running moves then continue through the control plane. */
export async function moveIdentity(dataDirectory: string): Promise<MoveIdentity> {
  const path = join(dataDirectory, 'moves.json');
  const known = identityIn(await readFile(path, 'utf8').catch(() => ''));
  if (known !== undefined) return known;
  const keys = await crypto.subtle.generateKey(p256, true, ['sign', 'verify']);
  const made = await X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=Berth move',
    ...{ notBefore, notAfter, signingAlgorithm: p256, keys },
  });
  const key = PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  const certificate = made.toString('pem');
  await writeWhole(path, `${JSON.stringify({ key, certificate }, undefined, 2)}\n`);
  return { key, certificate, fingerprint: fingerprintOf(certificate) };
}

function identityIn(text: string): MoveIdentity | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value)) return undefined;
    const { key, certificate } = value;
    if (typeof key !== 'string' || typeof certificate !== 'string') return undefined;
    return { key, certificate, fingerprint: fingerprintOf(certificate) };
  } catch {
    return undefined; // not JSON, or no certificate
  }
}

const fingerprintOf = (certificate: string): string => new X509Certificate(certificate).fingerprint256;
