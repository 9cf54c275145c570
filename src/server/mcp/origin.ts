// Keeps web pages away from /mcp: a page of another site sends its Origin, and one that has taken over a name by DNS sends that name as
// Host.

import { isIP } from 'node:net';
import { ApiError } from '../../api/errors.ts';

/** Throws `Forbidden` unless the request names this server and comes from no other site. */
export function assertOrigin(
  { host, origin }: Readonly<Record<string, string | undefined>>,
  hostNames: readonly string[],
): void {
  const named = nameIn(`http://${host ?? ''}`);
  if (named === undefined || !(isIP(named) > 0 || named === 'localhost' || hostNames.includes(named)))
    throw new ApiError('Forbidden', 'Host does not name this server; its names are those of tlsNames and advertiseUrl');
  if (origin !== undefined && hostIn(origin) !== host?.toLowerCase())
    throw new ApiError('Forbidden', 'pages of other sites may not use MCP here');
}

function nameIn(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : undefined;
}

function hostIn(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}
