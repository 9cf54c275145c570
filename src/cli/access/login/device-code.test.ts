import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { system } from '../../../base/system.ts';
import { logInWithDevice } from './device-code.ts';
import type { Provider } from './provider.ts';

const provider: Provider = {
  name: 'main',
  issuer: 'https://idp.example',
  clientId: 'berth',
  scopes: ['openid', 'profile'],
  deviceCode: true,
  exchange: 'client',
  metadata: {
    issuer: 'https://idp.example',
    jwksUri: 'https://idp.example/jwks',
    tokenEndpoint: 'https://idp.example/token',
    deviceAuthorizationEndpoint: 'https://idp.example/device',
    answersWithIssuer: true,
  },
};
const device = {
  device_code: 'secret-code',
  user_code: 'ABCD-EFGH',
  verification_uri: 'https://idp.example/activate',
  expires_in: 60,
};

type Answer = Readonly<Record<string, unknown>> | 'unreachable';

/** A login whose provider gives these answers, one after the other, while time passes a second at a time. */
async function logIn({ begin = device, answers }: { readonly begin?: Answer; readonly answers: readonly Answer[] }) {
  const clock = createManualClock();
  const askedAtSeconds: number[] = [];
  const shown: unknown[] = [];
  const left = [...answers];
  const interruption = new AbortController();
  let over = false;
  const outcome = logInWithDevice(provider, {
    clock,
    signal: interruption.signal,
    show: (where) => shown.push(where),
    async fetch(url, { body = '' }) {
      const isToken = url.endsWith('/token');
      if (isToken) {
        expect(new URLSearchParams(body).get('device_code')).toBe('secret-code');
        askedAtSeconds.push(clock.monotonicMs() / 1_000);
      }
      const answer = isToken ? (left.shift() ?? { error: 'authorization_pending' }) : begin;
      if (answer === 'unreachable') throw new Error('connection refused');
      return Response.json(answer, { status: 'error' in answer ? 400 : 200 });
    },
  })
    .catch((error: unknown) => (error instanceof Error ? error.message : String(error)))
    .finally(() => (over = true));
  for (let i = 0; i < 200 && !over; i++) await clock.advanceSettled(1_000, turns);
  return { outcome: await outcome, askedAtSeconds, shown };
}

/** A response is read over several turns. */
async function turns(): Promise<void> {
  for (let i = 0; i < 5; i++) await system.turn();
}

const pending = { error: 'authorization_pending' };
const done = { id_token: 'signed' };

describe('a login by device code', () => {
  it('shows address and code, and asks every 5 s', async () => {
    expect(await logIn({ answers: [pending, pending, done] })).toEqual({
      outcome: { idToken: 'signed' },
      askedAtSeconds: [5, 10, 15],
      shown: [{ url: 'https://idp.example/activate', code: 'ABCD-EFGH' }],
    });
  });

  it.each([
    ['as often as the provider says', { begin: { ...device, interval: 8 }, answers: [pending, done] }, [8, 16]],
    [
      '5 s later each time it is told to slow down',
      { answers: [{ error: 'slow_down' }, { error: 'slow_down' }, done] },
      [5, 15, 30],
    ],
    ['half as often while the provider is away', { answers: ['unreachable', 'unreachable', done] }, [5, 15, 35]],
  ] as const)('asks %s', async (_, parts, askedAtSeconds) => {
    expect(await logIn(parts)).toMatchObject({ outcome: { idToken: 'signed' }, askedAtSeconds });
  });

  it.each([
    ['the code has expired', { answers: [] }, 'the code has expired'],
    ['the provider says that it has', { answers: [{ error: 'expired_token' }] }, 'expired_token'],
    ['the user refuses', { answers: [{ error: 'access_denied', error_description: 'no' }] }, 'access_denied: no'],
    ['there is no ID token', { answers: [{ access_token: 'x' }] }, 'no reason given'],
    ['there is no code', { begin: { error: 'unauthorized_client' }, answers: [] }, 'unauthorized_client'],
    ['the provider is away at the start', { begin: 'unreachable', answers: [] }, 'connection refused'],
  ] as const)('ends when %s', async (_, parts, message) => {
    expect((await logIn(parts)).outcome).toContain(message);
  });

  it('is refused where the server does not allow it', async () => {
    const off = { ...provider, deviceCode: false };
    await expect(logInWithDevice(off, {} as never)).rejects.toThrow('does not allow logins by device code');
  });
});
