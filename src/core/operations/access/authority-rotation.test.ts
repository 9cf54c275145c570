import { describe, expect, it } from 'vitest';
import type { Authority, AuthorityGeneration, HostCertificate } from '../../state/records.ts';
import { commitPlan, testCache, testContext, testHost } from '../../testing.ts';
import {
  authorityHosts,
  beginRotation,
  finishRotation,
  isNewlyUsed,
  noteCertificateUsed,
  renewsForAuthority,
} from './authority-rotation.ts';
import { certificateStands } from './join.ts';

const ctx = testContext();
const hourMs = 3_600_000;
const issuer = { certificate: '', key: { pkcs8: '' } };

function generation(id: string): AuthorityGeneration {
  return { id, createdAtMs: ctx.nowMs, root: issuer, servers: issuer, hosts: issuer };
}

const authority: Authority = { kind: 'authority', generations: [generation('old')], issuing: 'old' };

const hostId = (host: string): string => testHost(host)[0].metadata.id;

type Issued = HostCertificate['issued'][number];

/** Of h1, and of h2. */
function certificate(host: string, changes: Partial<Issued> = {}): HostCertificate {
  const issued: Issued = {
    ...{ serial: `${host}-1`, authority: 'old', trusts: ['old'], used: true },
    ...{ issuedAtMs: ctx.nowMs, notAfterMs: ctx.nowMs + 24 * hourMs },
    ...changes,
  };
  return {
    ...{ kind: 'hostCertificate', host, hostId: hostId(host), generation: 0, keyHash: 'k' },
    issued: [issued],
  };
}

function rotating() {
  const cache = testCache([authority, ...testHost('h1'), ...testHost('h2'), certificate('h1'), certificate('h2')]);
  commitPlan(cache, beginRotation(cache, { made: generation('new'), overlapMs: hourMs }, ctx).plan);
  return cache;
}

const later = { ...ctx, nowMs: ctx.nowMs + hourMs };
const renewed = { serial: 'next', authority: 'new', trusts: ['old', 'new'] } as const;

/** As a renewal writes it. */
function renew(cache: ReturnType<typeof rotating>, host: string, changes: Partial<Issued>): void {
  const entry = cache.get('hostCertificate', `host-certificates/${host}`);
  const value = certificate(host, changes);
  commitPlan(cache, { changes: [{ key: entry?.key ?? '', ifRevision: entry?.revision ?? 0, value }] });
}

describe('the rotation of an authority', () => {
  it('adds one that issues, and asks every host to renew', () => {
    const cache = rotating();
    expect(cache.get('authority', 'authority/this')?.value).toMatchObject({
      generations: [{ id: 'old' }, { id: 'new' }],
      issuing: 'new',
      rotation: { startedAtMs: ctx.nowMs, finishAfterMs: ctx.nowMs + hourMs },
    });
    expect(['h1', 'h2', 'none'].map((host) => renewsForAuthority(cache, host))).toEqual([true, true, false]);
    expect(() => beginRotation(cache, { made: generation('x'), overlapMs: 0 }, ctx)).toThrow('rotated already');
  });

  it('counts a host as renewed when it has shown its new certificate', () => {
    const cache = rotating();
    renew(cache, 'h1', { ...renewed, used: undefined });
    expect(renewsForAuthority(cache, 'h1')).toBe(false);
    expect(authorityHosts(cache)).toMatchObject([
      { host: 'h1', state: 'old' },
      { host: 'h2', state: 'old' },
    ]);
    expect(isNewlyUsed(cache, 'h1', 'h1-1')).toBe(false);
    expect(isNewlyUsed(cache, 'h1', 'next')).toBe(true);
    commitPlan(cache, noteCertificateUsed(cache, { host: 'h1', serial: 'next' }).plan);
    expect(isNewlyUsed(cache, 'h1', 'next')).toBe(false);
    expect(authorityHosts(cache)[0]).toMatchObject({ host: 'h1', state: 'new' });
  });

  it('is finished when all hosts have renewed and its time is over, or by force', () => {
    const cache = rotating();
    renew(cache, 'h1', renewed);
    expect(() => finishRotation(cache, { force: false }, later)).toThrow('renewed their certificates yet: h2;');
    expect(finishRotation(cache, { force: true }, ctx).authority.generations).toMatchObject([{ id: 'new' }]);
    renew(cache, 'h2', renewed);
    expect(() => finishRotation(cache, { force: false }, ctx)).toThrow('both authorities are trusted until');
    commitPlan(cache, finishRotation(cache, { force: false }, later).plan);
    expect(renewsForAuthority(cache, 'h1')).toBe(true); // to trust the new one alone
    expect(() => finishRotation(cache, { force: true }, later)).toThrow('no rotation');
  });

  it('ends what a certificate of the dropped authority opens, on open connections too', () => {
    const cache = rotating();
    const shown = { host: 'h1', hostId: hostId('h1'), serial: 'h1-1' };
    expect(certificateStands(cache, shown, ctx.nowMs)).toBe(true);
    commitPlan(cache, finishRotation(cache, { force: true }, ctx).plan);
    expect(certificateStands(cache, shown, ctx.nowMs)).toBe(false);
  });
});
