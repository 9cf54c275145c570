// How the agent reaches its servers and proves which host it is: with the certificate that it got when it joined, or with a host token.

import type { Client, FetchLike } from '../../api/client/client.ts';
import { crossesInClear } from '../../api/client/plain-http.ts';
import { serverUrls } from '../../api/client/servers.ts';
import { certificateHeader } from '../../api/trust/authority.ts';
import { ApiError } from '../../api/errors.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { TlsFetch, type TlsTrust } from '../../base/tls/tls-fetch.ts';
import type { AgentConfig } from '../config.ts';
import { isJoined, readIdentity, writeIdentity } from './identity-file.ts';

export interface ServerAccess {
  readonly fetch: FetchLike;
  /** Absent: the certificate proves it. */
  readonly token: string | undefined;
  /** For connections that are not made by `fetch`. */
  trust(): TlsTrust;
  /** Keeps the certificate valid until `signal` aborts. Never rejects. */
  run(client: Pick<Client, 'json'>, signal: AbortSignal): Promise<void>;
  close(): void;
}

interface AccessParts {
  /** For agents that have not joined. */
  readonly fetch: FetchLike;
  readonly token: string | undefined;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

/** Throws `InvalidRequest` when the data directory is that of another host, or a token would cross a network unencrypted. */
export async function openServerAccess(config: AgentConfig, parts: AccessParts): Promise<ServerAccess> {
  const { hostName, dataDirectory, serverUrl } = config;
  const identity = await readIdentity(dataDirectory);
  if (isJoined(identity)) return joinedAccess(config, parts);
  if (identity !== undefined && parts.token === undefined)
    parts.log.warn('this host has begun to join a fleet and has no certificate yet; repeat "berth agent join"', {
      host: hostName,
    });
  const exposed = config.insecureHttp ? undefined : serverUrls(serverUrl).find(crossesInClear);
  if (exposed !== undefined && parts.token !== undefined)
    throw new ApiError(
      'InvalidRequest',
      `serverUrl: over ${exposed} the token of this host could be read on the network; use https:, or allow it with --insecure-http`,
      { field: 'serverUrl' },
    );
  // A fleet on one machine has no need of it.
  if (parts.token !== undefined && serverUrls(serverUrl).some((url) => url.startsWith('https:')))
    parts.log.warn(
      'this agent uses a host token, which never expires; "berth agent join URL TOKEN" replaces it by a certificate, with a token of "berth host join-token create"',
      { host: hostName },
    );
  return { fetch: parts.fetch, token: parts.token, trust: () => ({}), run: async () => {}, close() {} };
}

async function joinedAccess(config: AgentConfig, parts: AccessParts): Promise<ServerAccess> {
  const { hostName, dataDirectory } = config;
  const { HostCredentials } = await import('./host-credentials.ts');
  const identity = await readIdentity(dataDirectory);
  if (!isJoined(identity)) throw new ApiError('Conflict', `${dataDirectory}: identity.json was removed just now`);
  if (identity.hostName !== hostName)
    throw new ApiError(
      'InvalidRequest',
      `hostName: ${dataDirectory} is the data directory of host "${identity.hostName}", not "${hostName}"`,
      { field: 'hostName' },
    );
  const { clock, prng, log, token } = parts;
  if (token !== undefined) log.info('this host has a certificate; its token is not used', { host: hostName });
  let credentials: InstanceType<typeof HostCredentials> | undefined;
  const { authorities: ca, certificate: cert, key } = identity;
  const initial: TlsTrust = { ...(ca === undefined ? {} : { ca }), cert, key };
  const tls = new TlsFetch(() => credentials?.trust ?? initial);
  return {
    fetch: async (url, init) => {
      const response = await tls.fetch(url, init);
      if (response.status === 401) credentials?.refused();
      if (response.headers.get(certificateHeader) === 'renew') credentials?.renewNow();
      return response;
    },
    token: undefined,
    trust: () => credentials?.trust ?? initial,
    run(client, signal) {
      const write = (next: typeof identity) => writeIdentity(dataDirectory, next);
      credentials = new HostCredentials({ identity, client, write, clock, prng, log });
      return credentials.run(signal);
    },
    close: () => tls.close(),
  };
}
