// A listener of its own for the Placement API: at `/`, for clients that take a host and a port. Identity, limits and TLS are those of the
// main listener.

import { type HttpParts, type HttpServer, serveHttp } from '../http/serve.ts';

/** Undefined: none is configured. */
export async function servePlacement(
  { web: _web, placement, ...shared }: HttpParts,
  listen: { readonly host: string; readonly port: number } | undefined,
): Promise<HttpServer | undefined> {
  if (listen === undefined || placement === undefined) return undefined;
  return serveHttp({ ...shared, routes: [], upgrades: false, placement: { ...placement, at: '' } }, listen);
}
