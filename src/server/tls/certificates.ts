// Makes certificates: the authority of a fleet, the leaf of a server, the certificate of a host. It stores nothing, and takes from a
// request nothing but its public key.

import 'reflect-metadata'; // the package below needs it
import type { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { ApiError } from '../../api/errors.ts';
import type { AuthorityGeneration, Issuer, StoredKey } from '../../core/state/records.ts';

const p256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const dayMs = 86_400_000;
/** No date may surprise people: an authority is replaced when they say so ("berth ca rotate"). */
const authorityMs = 20 * 365 * dayMs;
/** How long before now a certificate begins: a machine whose clock is a day behind, or in another time zone by mistake, can connect all the same. */
const earlierMs = 2 * dayMs;
/** The same for certificates of hosts, which servers check: clocks of servers differ by some minutes. */
const hostEarlierMs = 5 * 60_000;
const serverLeafMs = 90 * dayMs;
export const hostCertificateMs = dayMs;

/** 16 random bytes or more, of `randomSecret`. */
type Random = (length: number) => Uint8Array;

interface Making {
  readonly nowMs: number;
  readonly randomSecret: Random;
}

/** Positive, and with no leading zero: every program writes the same digits. */
export function newSerial(randomSecret: Random): string {
  const bytes = Uint8Array.from(randomSecret(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return Buffer.from(bytes).toString('hex');
}

/** A root, and two issuers that cannot stand in for each other: servers' certificates are of no use to hosts, nor the reverse. */
export async function makeAuthority({ nowMs, randomSecret }: Making): Promise<AuthorityGeneration> {
  const id = Buffer.from(randomSecret(8)).toString('hex');
  const notAfter = new Date(nowMs + authorityMs);
  const notBefore = new Date(nowMs - earlierMs);
  const rootKeys = await crypto.subtle.generateKey(p256, true, ['sign', 'verify']);
  const rootName = `CN=Berth root ${id}`;
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(randomSecret),
    name: rootName,
    ...{ notBefore, notAfter, signingAlgorithm: p256, keys: rootKeys },
    extensions: [...authorityExtensions(1), await x509.SubjectKeyIdentifierExtension.create(rootKeys.publicKey)],
  });
  const issuer = async (what: 'servers' | 'hosts'): Promise<Issuer> => {
    const keys = await crypto.subtle.generateKey(p256, true, ['sign', 'verify']);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: newSerial(randomSecret),
      subject: `CN=Berth ${what} ${id}`,
      issuer: rootName,
      ...{ notBefore, notAfter, signingAlgorithm: p256, publicKey: keys.publicKey, signingKey: rootKeys.privateKey },
      extensions: [
        ...authorityExtensions(0),
        new x509.ExtendedKeyUsageExtension([usageOf(what)]),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
        await x509.AuthorityKeyIdentifierExtension.create(rootKeys.publicKey),
      ],
    });
    return { certificate: certificate.toString('pem'), key: await stored(keys.privateKey) };
  };
  return {
    id,
    createdAtMs: nowMs,
    root: {
      certificate: root.toString('pem'),
      key: await stored(rootKeys.privateKey),
    },
    servers: await issuer('servers'),
    hosts: await issuer('hosts'),
  };
}

function authorityExtensions(pathLength: number): x509.Extension[] {
  return [
    new x509.BasicConstraintsExtension(true, pathLength, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
  ];
}

function usageOf(what: 'servers' | 'hosts'): string {
  return what === 'servers' ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth;
}

async function exported(key: webcrypto.CryptoKey): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.exportKey('pkcs8', key));
}

/** As it stands in the record of the authority, which the store encrypts as a whole when there is a master key. */
async function stored(key: webcrypto.CryptoKey): Promise<StoredKey> {
  return { pkcs8: Buffer.from(await exported(key)).toString('base64') };
}

interface Issued {
  readonly certificate: x509.X509Certificate;
  /** The certificate and its issuer, as TLS sends them. */
  readonly chain: string;
}

interface Leaf extends Making {
  readonly generation: AuthorityGeneration;
  readonly what: 'servers' | 'hosts';
  readonly subject: x509.JsonName;
  readonly names: x509.JsonGeneralNames;
  readonly publicKey: x509.PublicKeyType;
  readonly serial: string;
  readonly lifeMs: number;
}

async function issue(leaf: Leaf): Promise<Issued> {
  const { generation, what, nowMs } = leaf;
  const issuer = new x509.X509Certificate(generation[what].certificate);
  const secret = Buffer.from(generation[what].key.pkcs8, 'base64');
  const signingKey = await crypto.subtle.importKey('pkcs8', Uint8Array.from(secret), p256, false, ['sign']);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: leaf.serial,
    subject: leaf.subject,
    issuer: issuer.subjectName,
    notBefore: new Date(nowMs - (what === 'servers' ? earlierMs : hostEarlierMs)),
    notAfter: new Date(nowMs + leaf.lifeMs),
    signingAlgorithm: p256,
    publicKey: leaf.publicKey,
    signingKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([usageOf(what)]),
      new x509.SubjectAlternativeNameExtension(leaf.names),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { certificate, chain: `${certificate.toString('pem')}\n${issuer.toString('pem')}\n` };
}

export interface ServerLeaf {
  readonly cert: string;
  /** PKCS #8, PEM. */
  readonly key: string;
}

/** `names` are host names and IP addresses. */
export async function issueServerLeaf({
  names,
  ...making
}: Making & { readonly generation: AuthorityGeneration; readonly names: readonly string[] }): Promise<ServerLeaf> {
  const keys = await crypto.subtle.generateKey(p256, true, ['sign', 'verify']);
  const { chain } = await issue({
    ...making,
    what: 'servers',
    subject: [{ CN: ['Berth server'] }],
    names: names.map((value) => ({ type: isAddress(value) ? 'ip' : 'dns', value })),
    publicKey: keys.publicKey,
    serial: newSerial(making.randomSecret),
    lifeMs: serverLeafMs,
  });
  return { cert: chain, key: x509.PemConverter.encode(await exported(keys.privateKey), 'PRIVATE KEY') };
}

export function isAddress(name: string): boolean {
  return /^\d+(\.\d+){3}$/.test(name) || name.includes(':');
}

export interface HostCertificateInput {
  readonly hostId: string;
  readonly host: string;
  /** SubjectPublicKeyInfo of `publicKeyOf`. */
  readonly publicKey: Uint8Array;
  readonly serial: string;
}

/** The chain, PEM, for the key of a host. */
export async function issueHostCertificate(
  making: Making & { readonly generation: AuthorityGeneration },
  { hostId, host, publicKey, serial }: HostCertificateInput,
): Promise<{ readonly chain: string; readonly notAfterMs: number }> {
  const { chain, certificate } = await issue({
    ...making,
    what: 'hosts',
    subject: [{ CN: [host] }],
    names: [{ type: 'url', value: hostUri(hostId) }],
    publicKey: new x509.PublicKey(Uint8Array.from(publicKey)),
    serial,
    lifeMs: hostCertificateMs,
  });
  return { chain, notAfterMs: certificate.notAfter.getTime() };
}

export function hostUri(hostId: string): string {
  return `berth://host/${hostId}`;
}

/** The public key of a certificate request whose signature proves that its sender has the private one. Throws `InvalidRequest`. */
export async function publicKeyOf(pem: string, field: string): Promise<Uint8Array> {
  const refuse = (why: string, cause?: unknown): ApiError =>
    new ApiError('InvalidRequest', `${field}: ${why}`, { field, cause });
  let request: x509.Pkcs10CertificateRequest;
  let valid: boolean;
  try {
    request = new x509.Pkcs10CertificateRequest(pem);
    valid = await request.verify();
  } catch (cause) {
    throw refuse('this is no certificate request', cause);
  }
  if (!valid) throw refuse('its signature does not fit its public key');
  const { algorithm, rawData } = request.publicKey;
  const curve = 'namedCurve' in algorithm ? algorithm.namedCurve : '';
  if (algorithm.name !== 'Ed25519' && !(algorithm.name === 'ECDSA' && curve === 'P-256'))
    throw refuse(`the key must be ECDSA P-256 or Ed25519, not ${algorithm.name} ${String(curve)}`.trimEnd());
  return new Uint8Array(rawData);
}
