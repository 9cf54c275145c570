// Everything about who sends requests, put together for one server.

import type { Logger } from '../../../base/log.ts';
import type { Store } from '../../../store/store.ts';
import type { Decider } from '../../decide.ts';
import { Authenticator, type AuthenticatorParts } from './authenticate.ts';
import { Freshness } from './freshness.ts';
import { LiveSessions } from './live-sessions.ts';
import { TokenUses } from './token-uses.ts';

export interface Authentication {
  readonly authenticator: Authenticator;
  readonly live: LiveSessions;
  stop(): void;
}

export function createAuthentication({
  decider,
  store,
  hostSecret,
  onFailed,
  log,
}: Pick<AuthenticatorParts, 'hostSecret' | 'onFailed'> & {
  readonly decider: Decider;
  readonly store: Store;
  readonly log: Logger;
}): Authentication {
  const { cache, clock } = decider;
  const freshness = new Freshness({ store, cache, clock });
  const uses = new TokenUses({ decider, log });
  const live = new LiveSessions({ cache, clock });
  const authenticator = new Authenticator({
    cache,
    clock,
    freshness,
    hostSecret,
    onUsed: (use) => uses.note(use),
    ...(onFailed === undefined ? {} : { onFailed }),
  });
  return {
    authenticator,
    live,
    stop() {
      live.stop();
      freshness.stop();
      uses.stop();
    },
  };
}
