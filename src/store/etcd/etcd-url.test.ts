import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { parseEtcdUrl } from './etcd-url.ts';

describe('the URL of an etcd store', () => {
  it.each([
    ['one member', '//db:2379', { endpoints: ['db:2379'], prefix: 'berth', name: 'etcd://db:2379/berth' }],
    ['several, and a prefix', '//a:1,b:2,[::1]:3/x/y/', { endpoints: ['a:1', 'b:2', '[::1]:3'], prefix: 'x/y' }],
    ['a login', '//a:1/?user=me&password=p%26s', { login: { user: 'me', password: 'p&s' }, prefix: 'berth' }],
    ['TLS with what the system trusts', '//a:1?tls=true', { tls: {} }],
  ])('names %s', (_, rest, address) => {
    expect(parseEtcdUrl(rest)).toMatchObject(address);
  });

  it('names files with certificates, and they are read', () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-url-'));
    try {
      const ca = rootCertificates[0] ?? '';
      writeFileSync(join(folder, 'ca.pem'), ca);
      expect(parseEtcdUrl(`//a:1/?ca=${folder}/ca.pem`)).toMatchObject({ tls: { ca: Buffer.from(ca) } });
      writeFileSync(join(folder, 'ca.pem'), 'the ca');
      expect(() => parseEtcdUrl(`//a:1/?ca=${folder}/ca.pem`)).toThrow('ca=: ');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it.each([
    ['no member', '///prefix', 'names no etcd'],
    ['no port', '//db/prefix', '"db" is not HOST:PORT'],
    ['a login before the host', '//me:secret@db:2379', 'written as parameters'],
    ['a user alone', '//db:2379/?user=me', 'belong together'],
    ['an unknown parameter', '//db:2379/?pasword=secret', 'no parameter "pasword"'],
    ['a key without its certificate', '//db:2379/?key=/k.pem', 'cert and key belong together'],
    ['a file that is not there', '//db:2379/?ca=/not/there.pem', 'ca=: cannot read /not/there.pem'],
    ['tls that is neither', '//db:2379/?tls=yes', 'true or false'],
    ['a prefix beyond ASCII', '//db:2379/gr%C3%B6%C3%9Fe', 'printable ASCII'],
  ])('is refused with %s', (_, rest, message) => {
    expect(() => parseEtcdUrl(rest)).toThrow(message);
    expect(() => parseEtcdUrl(rest)).not.toThrow('secret');
  });
});
