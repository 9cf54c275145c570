// A login with a provider: the browser goes to the provider and returns with a code, which the server exchanges (docs/login.md).

import type { LoginProvider } from '../../src/api/routes/login.ts';
import { client } from './client.ts';

const callback = '/ui/login/callback';

/** The configured login providers; empty when there is none. */
export async function loginProviders(): Promise<readonly LoginProvider[]> {
  const { providers } = await client.json<{ readonly providers: readonly LoginProvider[] }>('/v1/login');
  return providers;
}

/** Leaves the page. Throws the server's error. */
export async function beginLogin(provider: string): Promise<void> {
  const returnTo = location.pathname.startsWith('/ui') && location.pathname !== callback ? location.pathname : '/ui/';
  const body = { provider, returnTo };
  const { url } = await client.json<{ readonly url: string }>('/v1/session/login', { method: 'POST', body });
  location.assign(url);
}

/** The provider's answer in the URL. Removes it from the URL, so that it does not stay in the history. */
export function takeAnswer(): URLSearchParams | undefined {
  if (location.pathname !== callback) return undefined;
  const answer = new URLSearchParams(location.search);
  history.replaceState(null, '', '/ui/');
  return answer;
}

/** Starts the session, and returns to the page where the login began. Throws the reason of a failure. */
export async function finishLogin(answer: URLSearchParams): Promise<void> {
  const [code, state, iss] = [answer.get('code'), answer.get('state'), answer.get('iss')];
  if (code === null || state === null)
    throw new Error(
      `the provider did not log you in: ${answer.get('error_description') ?? answer.get('error') ?? '?'}`,
    );
  const { returnTo } = await client.json<{ readonly returnTo: string }>('/v1/session/login/finish', {
    method: 'POST',
    body: { code, state, ...(iss === null ? {} : { iss }) },
  });
  history.replaceState(null, '', returnTo);
}
