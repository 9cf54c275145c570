// The control plane without its sockets: store, cache, committer, controllers and routes, put together. The process gives it a
// real clock and HTTP; the simulator gives it false ones.

import type { Buggify } from '../base/buggify.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import { controllers } from '../core/controllers/registry.ts';
import { Cache } from '../core/state/cache.ts';
import type { Policy } from '../core/state/context.ts';
import type { Store } from '../store/store.ts';
import { Assignments } from './assignments.ts';
import { Committer } from './commit.ts';
import { Compaction } from './compaction.ts';
import { ControlLoop } from './control-loop.ts';
import type { Decider } from './decide.ts';
import { agentRoutes } from './http/agent-routes.ts';
import { capacityRoutes } from './http/capacity-routes.ts';
import { candidateRoutes } from './http/candidate-routes.ts';
import type { HostLinks } from './http/host-links.ts';
import { instanceBatchRoute } from './http/instance-batch.ts';
import { instanceRoutes } from './http/instance-routes.ts';
import { processRoutes } from './http/process-routes.ts';
import { queueRoutes } from './http/queue-routes.ts';
import { resourceRoutes } from './http/resource-routes.ts';
import { usageRoutes } from './http/usage-routes.ts';
import type { Route } from './http/route.ts';

export interface ServerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly policy: Policy;
  readonly links: HostLinks;
  readonly version: string;
  /** Where the simulator has the unusual done. Default: nowhere. */
  readonly buggify?: Buggify;
}

export interface Server {
  readonly routes: readonly Route[];
  readonly decider: Decider;
  ready(): boolean;
  stop(): Promise<void>;
}

/** Reads the store, then answers and reconciles. Throws when the store cannot be read. */
export async function startControlPlane(parts: ServerParts): Promise<Server> {
  const { store, clock, prng, log, policy, links, version } = parts;
  const unusual = parts.buggify ? { buggify: parts.buggify } : {};
  const cache = new Cache(() => clock.monotonicMs());
  const committer = new Committer({ store, cache, log, ...unusual });
  const decider: Decider = { cache, committer, clock, prng, policy, ...unusual };
  const loop = new ControlLoop({ decider, store, controllers, log });
  await loop.start();
  const compaction = new Compaction({ store, clock, log, policy, revision: () => cache.revision, ...unusual });
  compaction.start();
  const assignments = new Assignments({ cache, clock, ...unusual });
  return {
    routes: [
      ...processRoutes({ ready: () => loop.ready, version }),
      ...agentRoutes({ decider, assignments }),
      ...instanceRoutes({ decider, links }),
      ...candidateRoutes(decider),
      ...capacityRoutes(decider),
      ...queueRoutes(decider),
      ...usageRoutes(decider),
      instanceBatchRoute(decider),
      ...resourceRoutes({ decider, store }),
    ],
    decider,
    ready: () => loop.ready,
    async stop() {
      await Promise.all([loop.stop(), compaction.stop()]);
      await committer.settled();
    },
  };
}
