// The route of MCP. Its library is loaded by the first request, and only where MCP is on.

import { ApiError } from '../../api/errors.ts';
import { mcpRoutes } from '../../api/routes/mcp.ts';
import type { Route } from '../http/route.ts';
import { bind } from '../http/routes/bind.ts';
import type { ServerConfig } from '../config.ts';
import type { McpHttp, McpHttpParts } from './mcp-route.ts';

/** What the configuration says of MCP; undefined: it is off. */
export type McpSettings = Pick<McpHttpParts, 'writes' | 'hostNames'>;

export function mcpSettingsOf({
  mcp,
  tlsNames,
  advertiseUrl,
  externalUrl,
}: Pick<ServerConfig, 'mcp' | 'tlsNames' | 'advertiseUrl' | 'externalUrl'>): McpSettings | undefined {
  if (mcp === 'off') return undefined;
  const urls = [advertiseUrl, externalUrl].flatMap((url) => (url === undefined ? [] : [new URL(url).hostname]));
  return { writes: mcp === 'write', hostNames: [...tlsNames, ...urls].map((name) => name.toLowerCase()) };
}

/** `parts` undefined: MCP is off. */
export function mcpRoute(parts: McpHttpParts | undefined): Route {
  let loaded: Promise<McpHttp> | undefined;
  return bind(mcpRoutes.mcp, async (_checked, request) => {
    if (parts === undefined)
      throw new ApiError('NotFound', 'MCP is off on this server; set mcp to "read" or "write" in its configuration');
    loaded ??= import('./mcp-route.ts').then(({ McpHttp: Http }) => new Http(parts));
    return (await loaded).answer(request);
  });
}
