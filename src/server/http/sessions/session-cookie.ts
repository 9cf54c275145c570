// The cookie of a session, and whether a request with it comes from our own page. Browsers send cookies with requests that other pages
// make: such a request does not count, whatever it asks for.

import type { IncomingMessage } from 'node:http';

/** `__Host-` makes browsers refuse one that another host or plain HTTP tries to set; they keep it only from HTTPS. */
const names = { secure: '__Host-berth', plain: 'berth-session' } as const;

export function cookieText(
  value: string,
  { secure, maxAgeMs }: { readonly secure: boolean; readonly maxAgeMs: number },
) {
  const parts = [`${nameOf(secure)}=${value}`, 'Path=/', 'HttpOnly', 'SameSite=Strict'];
  return [...parts, `Max-Age=${Math.floor(maxAgeMs / 1000)}`, ...(secure ? ['Secure'] : [])].join('; ');
}

/** What a request shows of a session. */
export interface ShownSession {
  readonly text: string;
  readonly fromOwnPage: boolean;
}

export function sessionShownBy(request: IncomingMessage): ShownSession | undefined {
  const { cookie } = request.headers;
  if (cookie === undefined) return undefined;
  const begin = `${nameOf('encrypted' in request.socket)}=`;
  const found = cookie.split(';').find((part) => part.trim().startsWith(begin));
  return found === undefined
    ? undefined
    : { text: found.trim().slice(begin.length), fromOwnPage: isFromOwnPage(request) };
}

/** Browsers send `Sec-Fetch-Site` to HTTPS and to this machine only; elsewhere `Origin` must do, which they send with every write. */
function isFromOwnPage({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  const { origin, host, upgrade } = headers;
  const isOwnOrigin = origin !== undefined && URL.parse(origin)?.host === host;
  if (upgrade !== undefined) return isOwnOrigin;
  const reads = method === 'GET' || method === 'HEAD';
  switch (headers['sec-fetch-site']) {
    case undefined:
      return origin === undefined ? reads : isOwnOrigin;
    case 'same-origin':
      return true;
    case 'none': // an address that a person typed
      return reads;
    default:
      return false;
  }
}

function nameOf(secure: boolean): string {
  return secure ? names.secure : names.plain;
}
