import 'reflect-metadata'; // the package below needs it
import * as x509 from '@peculiar/x509';
import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../api/errors.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { makeKey } from './certificate-request.ts';
import { HostCredentials } from './host-credentials.ts';
import type { HostIdentity } from './identity-file.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

let clock: ReturnType<typeof createManualClock>;
let stop: AbortController;
/** Of the wall clock of this host. */
let shiftMs = 0;
beforeEach(() => {
  clock = createManualClock();
  stop = new AbortController();
  shiftMs = 0;
});

async function certificateFrom(fromMs: number): Promise<string> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...{ serialNumber: '41', name: 'CN=h1', keys, signingAlgorithm: algorithm },
    notBefore: new Date(fromMs),
    notAfter: new Date(fromMs + dayMs),
  });
  return certificate.toString('pem');
}

/** Credentials of a certificate of now, and the times at which they were renewed. */
async function running(answer: (attempt: number) => number | ApiError = () => 0) {
  const identity: HostIdentity = {
    ...{ serverUrl: 'https://cp1', hostName: 'h1', hostId: 'host_1', key: await makeKey() },
    certificate: await certificateFrom(clock.nowMs()),
  };
  const asked: { atMs: number; body: unknown }[] = [];
  const warnings: unknown[] = [];
  const written: HostIdentity[] = [];
  const credentials = new HostCredentials({
    identity,
    client: {
      async json<T>(_path: string, call: { body?: unknown } = {}): Promise<T> {
        asked.push({ atMs: clock.nowMs(), body: call.body });
        const skewMs = answer(asked.length);
        if (skewMs instanceof ApiError) throw skewMs;
        const certificate = await certificateFrom(clock.nowMs());
        return { certificate, authorities: '', notAfterMs: 0, serverTimeMs: clock.nowMs() + shiftMs - skewMs } as T;
      },
    },
    write: async (next) => void written.push(next),
    clock: { ...clock, nowMs: () => clock.nowMs() + shiftMs },
    prng: seededPrng(1),
    log: { ...silentLogger, warn: (message, fields) => void warnings.push([message, fields]) },
  });
  const done = credentials.run(stop.signal);
  const pass = (minutes: number): Promise<void> =>
    clock.advanceSettled(minutes * 60_000, () => new Promise((resolve) => setImmediate(resolve)));
  return { identity, credentials, asked, warnings, written, pass, done };
}

describe('the certificate of a host', () => {
  it('is renewed at two thirds of its life, more or less', async () => {
    const { asked, credentials, identity, written, pass, done } = await running();
    const before = credentials.trust;
    await pass(14 * 60);
    expect(asked).toEqual([]); // 24 h × 2/3 × 0.9 = 14.4 h
    await pass(4 * 60); // 24 h × 2/3 × 1.1 = 17.6 h
    await expect.poll(() => asked).toMatchObject([{ body: { certificate: identity.certificate } }]);
    await expect.poll(() => written.length).toBe(1);
    expect(credentials.trust).not.toBe(before);
    expect(credentials.trust.cert).toBe(written[0]?.certificate);
    stop.abort();
    await done;
  });

  it('is renewed within a minute when the clock was set a day ahead', async () => {
    const { asked, pass, done } = await running();
    shiftMs = dayMs;
    await pass(2);
    await expect.poll(() => asked.length).toBe(1);
    stop.abort();
    await done;
  });

  it('is renewed by the time that passed when the clock was set a day back', async () => {
    const { asked, pass, done } = await running();
    shiftMs = -dayMs;
    await pass(18 * 60);
    await expect.poll(() => asked.length).toBe(1);
    stop.abort();
    await done;
  });

  it('is renewed when a server refuses it', async () => {
    const { asked, credentials, pass, done } = await running();
    await pass(1);
    credentials.refused();
    await pass(1);
    await expect.poll(() => asked.length).toBe(1);
    stop.abort();
    await done;
  });

  it('is asked for again and again while no server answers', async () => {
    const { asked, pass, done } = await running(() => new ApiError('Unavailable', 'no answer'));
    await pass(18 * 60);
    for (let tries = 0; tries < 3; tries += 1) {
      const before = asked.length;
      await pass(5);
      await expect.poll(() => asked.length).toBeGreaterThan(before);
    }
    stop.abort();
    await done;
  });

  it('warns about clocks that differ by more than a minute', async () => {
    const { warnings, pass, done } = await running(() => 61_000);
    await pass(18 * 60);
    await expect.poll(() => warnings).toMatchObject([[expect.stringContaining('clocks'), { skewMs: 61_000 }]]);
    stop.abort();
    await done;
  });
});
