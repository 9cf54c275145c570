// The routes of MCP. Its library is loaded by the first request, and only where MCP is on.

import { ApiError } from '../../api/errors.ts';
import { mcpRoutes } from '../../api/routes/mcp.ts';
import type { Route } from '../http/route.ts';
import { bind } from '../http/routes/bind.ts';
import type { ServerConfig } from '../config.ts';
import type { McpHttp, McpHttpParts } from './mcp-route.ts';

/** For clients that get access tokens from a provider. */
export interface ProtectedResource {
  /** Of MCP, as clients know it: the audience of access tokens. */
  readonly url: string;
  readonly issuers: readonly string[];
  readonly scopes: readonly string[];
}

/** What the configuration says of MCP; undefined: it is off. */
export interface McpSettings extends Pick<McpHttpParts, 'writes' | 'hostNames'> {
  /** Absent: no provider is configured, or this server does not know its own URL. */
  readonly protectedResource?: ProtectedResource;
}

export function mcpSettingsOf({
  mcp,
  tlsNames,
  advertiseUrl,
  externalUrl,
  oidc,
}: Pick<ServerConfig, 'mcp' | 'tlsNames' | 'advertiseUrl' | 'externalUrl' | 'oidc'>): McpSettings | undefined {
  if (mcp === 'off') return undefined;
  const urls = [advertiseUrl, externalUrl].flatMap((url) => (url === undefined ? [] : [new URL(url).hostname]));
  const url = externalUrl ?? advertiseUrl;
  const [issuers, scopes] = [oidc.map(({ issuer }) => issuer), oidc.flatMap((provider) => provider.scopes)];
  return {
    writes: mcp === 'write',
    hostNames: [...tlsNames, ...urls].map((name) => name.toLowerCase()),
    ...(url === undefined || oidc.length === 0
      ? {}
      : {
          protectedResource: {
            url: new URL(mcpRoutes.mcp.path, url).href,
            issuers: [...new Set(issuers)],
            scopes: [...new Set(scopes)],
          },
        }),
  };
}

/** `parts` undefined: MCP is off. */
export function mcpRoutesOf(parts: (McpHttpParts & McpSettings) | undefined): readonly Route[] {
  const resource = parts?.protectedResource;
  const { path } = mcpRoutes.mcpResource;
  const challenge = resource === undefined ? {} : { resourceMetadata: new URL(path, resource.url).href };
  return [{ ...mcpRoute(parts), challenge }, resourceRoute(resource)];
}

function resourceRoute(resource: ProtectedResource | undefined): Route {
  return bind(mcpRoutes.mcpResource, () => {
    if (resource === undefined)
      throw new ApiError('NotFound', 'MCP here takes tokens of Berth only; docs/mcp.md says how providers are added');
    const { url, issuers, scopes } = resource;
    return {
      status: 200,
      json: {
        resource: url,
        authorization_servers: issuers,
        scopes_supported: scopes,
        bearer_methods_supported: ['header'],
        resource_name: 'Berth',
      },
    };
  });
}

function mcpRoute(parts: McpHttpParts | undefined): Route {
  let loaded: Promise<McpHttp> | undefined;
  return bind(mcpRoutes.mcp, async (_checked, request) => {
    if (parts === undefined)
      throw new ApiError('NotFound', 'MCP is off on this server; set mcp to "read" or "write" in its configuration');
    loaded ??= import('./mcp-route.ts').then(({ McpHttp: Http }) => new Http(parts));
    return (await loaded).answer(request);
  });
}
