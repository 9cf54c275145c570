// Settings of the Placement API that depend on where the server listens.

import type { Logger } from '../../base/log.ts';
import { isLocal } from '../checked-config.ts';
import type { ServerConfig } from '../config.ts';

export interface PlacementSettings {
  readonly noAuth: boolean;
  readonly randomOrder: boolean;
}

type Configured = Pick<ServerConfig, 'listen' | 'placementListen' | 'placementNoAuth' | 'placementRandomCandidates'>;

/** Without authentication only on loopback, and never silently. */
export function placementSettings(config: Configured, log: Logger): PlacementSettings {
  const noAuth = config.placementNoAuth && isLocal(config);
  if (noAuth)
    log.warn('the Placement API takes any name in X-Auth-Token, and "admin" may do everything: placementNoAuth');
  else if (config.placementNoAuth) log.warn('placementNoAuth has no effect: this server listens for other machines');
  return { noAuth, randomOrder: config.placementRandomCandidates };
}
