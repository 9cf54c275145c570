// Who looks at the pages. A token is sent once, to begin the session, and kept nowhere: from then on the cookie stands for it.

import type { WhoAmI } from '../../src/api/routes/access.ts';
import { ApiError } from '../../src/api/errors.ts';
import { client } from './client.ts';

/** Undefined: no one is logged in. */
export async function whoAmI(): Promise<WhoAmI | undefined> {
  try {
    return await client.whoAmI();
  } catch (error) {
    if (error instanceof ApiError && error.code === 'Unauthenticated') return undefined;
    throw error;
  }
}

/** Throws what the server says of the token. */
export async function beginSession(token: string): Promise<void> {
  await client.json('/v1/session', { method: 'POST', headers: { authorization: `Bearer ${token.trim()}` } });
}

export async function endSession(): Promise<void> {
  await client.json('/v1/session', { method: 'DELETE' });
}

/** The address as it was loaded may have the secret of a link; it is taken out of the address, so that no bookmark has it. */
export function takeLink(): string | undefined {
  const link = /^#link=([\w.-]+)$/.exec(location.hash)?.[1];
  if (link !== undefined) history.replaceState(null, '', location.pathname + location.search);
  return link;
}

export async function openLink(link: string): Promise<void> {
  await client.json('/v1/session/open', { method: 'POST', body: { link } });
}

/** For people: what the server said, and by which request it can be found in the logs. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
