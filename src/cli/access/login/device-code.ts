// A login by a code that the user enters on another device (RFC 8628). Only on request: a code that somebody else sent opens a
// session of theirs.

import { type Clock, sleep } from '../../../base/clock.ts';
import type { Web } from '../../../base/fetch-json.ts';
import { Interrupted, usageError } from '../../exit-codes.ts';
import type { Proof } from './loopback.ts';
import { askProvider, failed, type Provider, reasonIn } from './provider.ts';

export interface DeviceLogin extends Web {
  readonly clock: Clock;
  readonly show: (where: { readonly url: string; readonly code: string }) => void;
  readonly signal: AbortSignal;
}

const grantType = 'urn:ietf:params:oauth:grant-type:device_code';
const intervalSecondsDefault = 5;
/** RFC 8628, section 3.5. */
const slowDownSeconds = 5;
const pauseSecondsMax = 60;

export async function logInWithDevice(provider: Provider, login: DeviceLogin): Promise<Proof> {
  if (!provider.deviceCode)
    throw usageError(
      `the server does not allow logins by device code with "${provider.name}"`,
      'log in without --device; an admin can allow it (deviceCode: true)',
    );
  const { json } = await askProvider(login, provider, {
    endpoint: provider.metadata.deviceAuthorizationEndpoint,
    form: { client_id: provider.clientId, scope: provider.scopes.join(' ') },
  });
  const { device_code: deviceCode, user_code: code, verification_uri: url, ...times } = json;
  if (typeof deviceCode !== 'string' || typeof code !== 'string' || typeof url !== 'string')
    throw failed(`"${provider.name}" gives no device code: ${reasonIn(json)}`);
  login.show({ url, code });
  return { idToken: await polled(provider, login, { deviceCode, ...timesIn(times) }) };
}

interface Polling {
  readonly deviceCode: string;
  readonly intervalSeconds: number;
  readonly expiresInSeconds: number;
}

function timesIn(json: Readonly<Record<string, unknown>>): Omit<Polling, 'deviceCode'> {
  const seconds = (name: string, byDefault: number): number => {
    const value = json[name];
    return typeof value === 'number' && value > 0 && value <= 3_600 ? value : byDefault;
  };
  return { intervalSeconds: seconds('interval', intervalSecondsDefault), expiresInSeconds: seconds('expires_in', 600) };
}

async function polled(
  provider: Provider,
  login: DeviceLogin,
  { deviceCode, intervalSeconds, expiresInSeconds }: Polling,
): Promise<string> {
  const { clock, signal } = login;
  const untilMs = clock.monotonicMs() + expiresInSeconds * 1_000;
  for (let seconds = intervalSeconds; ; ) {
    await sleep(clock, seconds * 1_000, signal);
    if (signal.aborted) throw new Interrupted();
    if (clock.monotonicMs() >= untilMs) throw failed('the code has expired; log in again');
    const { json }: { json: Readonly<Record<string, unknown>> } = await askProvider(login, provider, {
      endpoint: provider.metadata.tokenEndpoint,
      form: { grant_type: grantType, device_code: deviceCode, client_id: provider.clientId },
    }).catch(() => {
      seconds = Math.min(2 * seconds, pauseSecondsMax); // it may answer later
      return { json: { error: 'authorization_pending' } };
    });
    if (typeof json['id_token'] === 'string') return json['id_token'];
    if (json['error'] === 'slow_down') seconds += slowDownSeconds;
    else if (json['error'] !== 'authorization_pending')
      throw failed(`"${provider.name}" refuses the login: ${reasonIn(json)}`);
  }
}
