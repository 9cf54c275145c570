// What the HTTP server is made of, from the parts that are open.

import { createCarried } from '../../base/carried.ts';
import { randomSecret, system } from '../../base/system.ts';
import type { Logger } from '../../base/log.ts';
import { keys } from '../../core/state/keys.ts';
import type { Announcement } from '../announcement.ts';
import type { AgentLinks } from '../http/agent-link/agent-link.ts';
import type { Connections } from '../http/connections/connections.ts';
import { guestAccess } from '../http/guest-access.ts';
import type { HttpParts } from '../http/serve.ts';
import type { Authentication } from '../http/identity/authentication.ts';
import { localCallerOf } from '../http/identity/local-caller.ts';
import type { UntilOpen } from '../http/identity/until-open.ts';
import type { LimitsConfig } from '../limits/limits-config.ts';
import { RequestLimits } from '../limits/request-limits.ts';
import type { Activity } from '../metrics/activity.ts';
import type { AccessTokens } from '../oidc/access-tokens.ts';
import type { Server } from '../server.ts';
import { PlacementApp } from '../placement/app.ts';
import type { PlacementSettings } from '../placement/settings.ts';
import type { ServerTls } from '../tls/server-tls.ts';
import { WebFiles } from '../web/web-files.ts';

export function httpParts(
  { decider, routes, audit }: Server,
  parts: {
    readonly announced: Announcement;
    readonly links: AgentLinks;
    readonly connections: Connections;
    readonly limits: LimitsConfig;
    readonly hostSecret: Uint8Array;
    readonly authentication: Authentication;
    readonly activity: Activity;
    readonly accessTokens: AccessTokens | undefined;
    readonly turn: UntilOpen;
    readonly certificates: ServerTls | undefined;
    readonly scheduleWithoutToken: string | undefined;
    readonly placement: PlacementSettings;
    readonly log: Logger;
  },
): HttpParts {
  const {
    announced,
    links,
    connections,
    limits,
    hostSecret,
    authentication,
    activity,
    certificates,
    scheduleWithoutToken,
    accessTokens,
    turn,
    log,
  } = parts;
  const { authenticator, live } = authentication;
  const identify: HttpParts['identify'] = (shown) => authenticator.identify(shown);
  const access = guestAccess({ decider, links, secret: hostSecret, live, audit: audit?.parts });
  return {
    routes: [...routes, ...access.routes],
    placement: {
      app: new PlacementApp({ decider, log, randomOrder: parts.placement.randomOrder, audit: audit?.parts }),
      at: '/placement',
      noAuth: parts.placement.noAuth,
    },
    access,
    snapshot: decider.cache,
    identify: turn.hold(accessTokens === undefined ? identify : (shown) => accessTokens.identify(shown, identify)),
    ...(scheduleWithoutToken === undefined ? {} : { localCaller: localCallerOf(scheduleWithoutToken) }),
    live,
    epochOf: (host) => decider.cache.committed('host', keys.host(host))?.value.status.epoch,
    acceptLink: (host, socket, epoch) => links.accept(host, socket, epoch),
    servers: () => announced.announced,
    authorities: () => certificates?.authoritiesTold,
    carried: createCarried(system.collectYoung),
    answered: (answer) => activity.answered(answer),
    monotonicMs: () => decider.clock.monotonicMs(),
    web: { files: new WebFiles(), newNonce: () => randomSecret(16).toString('base64') },
    newRequestId: requestIds(randomSecret(9).toString('base64url')),
    ...(audit === undefined ? {} : { onRefused: audit.refusals.told }),
    connections,
    limits: new RequestLimits(limits, { clock: decider.clock }),
    log,
    ...(certificates === undefined ? {} : { tls: certificates.identity }),
  };
}

/** `req_<of this process>-<count>`. */
function requestIds(prefix: string): () => string {
  let count = 0;
  return () => `req_${prefix}-${(count++).toString(36)}`;
}
