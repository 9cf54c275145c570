import 'reflect-metadata'; // the package below needs it
import { createPrivateKey, sign, verify, X509Certificate } from 'node:crypto';
import * as x509 from '@peculiar/x509';
import { describe, expect, it } from 'vitest';
import {
  hostUri,
  issueHostCertificate,
  issueServerLeaf,
  makeAuthority,
  newSerial,
  publicKeyOf,
} from './certificates.ts';

const nowMs = Date.UTC(2026, 10, 26);
let drawn = 0;
const randomSecret = (length: number): Uint8Array => new Uint8Array(length).fill((drawn += 1));
const making = { nowMs, randomSecret };

const hostId = 'host_00000000000000000000000000';

async function request(algorithm: Parameters<typeof crypto.subtle.generateKey>[0]): Promise<string> {
  const keys = (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as CryptoKeyPair;
  const csr = await x509.Pkcs10CertificateRequestGenerator.create({
    name: 'CN=another-host, O=admins',
    keys,
    signingAlgorithm: { name: 'ECDSA', hash: 'SHA-256', ...(algorithm as object) },
    extensions: [
      new x509.BasicConstraintsExtension(true, 3, true),
      new x509.SubjectAlternativeNameExtension([{ type: 'url', value: hostUri('host_11111111111111111111111111') }]),
    ],
  });
  return csr.toString('pem');
}
type CryptoKeyPair = Parameters<typeof x509.Pkcs10CertificateRequestGenerator.create>[0]['keys'];

const p256 = { name: 'ECDSA', namedCurve: 'P-256' };

describe('the authority', () => {
  it('has a root with two issuers, for servers and for hosts', async () => {
    const authority = await makeAuthority(making);
    const [root, servers, hosts] = [authority.root, authority.servers, authority.hosts].map(
      ({ certificate }) => new X509Certificate(certificate),
    );
    if (!root || !servers || !hosts) return expect.unreachable();
    for (const issuer of [servers, hosts]) {
      expect(issuer.ca).toBe(true);
      expect(issuer.verify(root.publicKey)).toBe(true);
    }
    expect(servers.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    expect(hosts.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
  });

  it('issues to a server names and addresses', async () => {
    const generation = await makeAuthority(making);
    const leaf = await issueServerLeaf({ ...making, generation, names: ['cp1.example', '10.0.0.1', 'fd00::1'] });
    const certificate = new X509Certificate(leaf.cert);
    expect(certificate.checkHost('cp1.example')).toBeDefined();
    expect(certificate.checkIP('10.0.0.1')).toBeDefined();
    expect(certificate.checkIP('fd00::1')).toBeDefined();
    expect(certificate.checkHost('cp2.example')).toBeUndefined();
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    const proof = sign('sha256', Buffer.from('x'), createPrivateKey(leaf.key));
    expect(verify('sha256', Buffer.from('x'), certificate.publicKey, proof)).toBe(true);
  });

  it('takes nothing from the request of a host but its key', async () => {
    const generation = await makeAuthority(making);
    const publicKey = await publicKeyOf(await request(p256), 'request');
    const serial = newSerial(randomSecret);
    const { chain, notAfterMs } = await issueHostCertificate(
      { ...making, generation },
      { hostId, host: 'h1', publicKey, serial },
    );
    const certificate = new X509Certificate(chain);
    expect(certificate.subject).toBe('CN=h1');
    expect(certificate.subjectAltName).toBe(`URI:${hostUri(hostId)}`);
    expect(certificate.ca).toBe(false);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(certificate.serialNumber.toLowerCase()).toBe(serial);
    expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(Buffer.from(publicKey));
    expect(certificate.validFromDate.getTime()).toBe(nowMs - 300_000);
    expect(notAfterMs).toBe(nowMs + 86_400_000);
  });
});

describe('the request of a host', () => {
  it.each([
    [
      'RSA',
      { name: 'RSASSA-PKCS1-v1_5', modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' },
    ],
    ['P-384', { name: 'ECDSA', namedCurve: 'P-384' }],
  ])('is refused with a key of %s', async (_, algorithm) => {
    await expect(publicKeyOf(await request(algorithm), 'request')).rejects.toMatchObject({
      code: 'InvalidRequest',
      field: 'request',
    });
  });

  it('is taken with Ed25519', async () => {
    expect((await publicKeyOf(await request({ name: 'Ed25519' }), 'request')).length).toBeGreaterThan(32);
  });

  it('is refused when it was changed after it was signed', async () => {
    const body = Buffer.from((await request(p256)).replace(/-----[^-]+-----|\s/g, ''), 'base64');
    const at = body.indexOf('another-host');
    body[at] = (body[at] ?? 0) ^ 1;
    const changed = `-----BEGIN CERTIFICATE REQUEST-----\n${body.toString('base64')}\n-----END CERTIFICATE REQUEST-----`;
    await expect(publicKeyOf(changed, 'request')).rejects.toMatchObject({ code: 'InvalidRequest' });
  });

  it.each(['', 'x', '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----'])(
    'is refused when it is none: %j',
    async (text) => {
      await expect(publicKeyOf(text, 'request')).rejects.toMatchObject({ code: 'InvalidRequest' });
    },
  );
});

it('makes serials that are positive and have no leading zero', () => {
  for (const byte of [0, 1, 0x7f, 0x80, 0xff])
    expect(newSerial((length) => new Uint8Array(length).fill(byte))).toMatch(/^[4-7][0-9a-f]{31}$/);
});
