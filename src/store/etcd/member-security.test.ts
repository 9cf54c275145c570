import type { PeerCertificate } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { addressIn, identityOf } from './member-security.ts';

describe('the certificate of a member', () => {
  it.each([
    ['db-1:2379', undefined],
    ['127.0.0.1:2379', '127.0.0.1'],
    ['[::1]:2379', '::1'],
    ['1.2.3:2379', undefined],
  ])('of %s is checked for the address %s', (endpoint, address) => expect(addressIn(endpoint)).toBe(address));

  it('is that of its address, whatever name stood in the handshake', () => {
    const certificate = { subject: { CN: 'etcd' }, subjectaltname: 'IP Address:10.0.0.1' } as PeerCertificate;
    const check = identityOf('10.0.0.1').checkServerIdentity ?? expect.unreachable();
    expect(check('etcd', certificate)).toBeUndefined();
    const other = identityOf('10.0.0.2').checkServerIdentity ?? expect.unreachable();
    expect(other('etcd', certificate)).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });
});
