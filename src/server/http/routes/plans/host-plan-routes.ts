// `/v1/hosts/{host}/drain`, `/evacuate` and `/v1/rebalance`: plans for a host, shown and then applied by their hash.

import type { PlannedGuest } from '../../../../api/plans/host-plan.ts';
import type { EmptiedHost, RebalancePlan } from '../../../../api/plans/rebalance.ts';
import { hostPlanRoutes as routes } from '../../../../api/routes/host-plans.ts';
import { assertMay, assertMayOn, notFound } from '../../../../core/access/may.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import {
  beginDrain,
  cancelDrain,
  drainOf,
  showDrainPlan,
  shownDrain,
} from '../../../../core/operations/plans/host-drain.ts';
import {
  beginRestore,
  cancelRestore,
  restoreOf,
  showRestorePlan,
  shownRestore,
} from '../../../../core/operations/plans/host-restore.ts';
import { beginRebalance } from '../../../../core/operations/plans/rebalance.ts';
import { planRebalance } from '../../../../core/plans/rebalance.ts';
import { evacuate, showEvacuation } from '../../../../core/operations/plans/evacuate.ts';
import { guestsWithoutNames } from '../../../../core/plans/without-guests.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import { contextOf, type Decider } from '../../../decide.ts';
import { decideFor } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { knowsNames } from '../visible.ts';

export function hostPlanRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  const seen = <P extends { readonly guests: PlannedGuest[] }>(principal: Principal, plan: P): P => ({
    ...plan,
    guests: guestsWithoutNames(plan.guests, knowsNames(principal, cache)),
  });
  const seenRebalance = (principal: Principal, plan: RebalancePlan): RebalancePlan => {
    const named = (host: EmptiedHost): EmptiedHost => ({
      ...host,
      guests: guestsWithoutNames(host.guests, knowsNames(principal, cache)),
    });
    return { ...plan, hosts: plan.hosts.map(named), needMigration: plan.needMigration.map(named) };
  };
  return [
    bind(routes.drain, async ({ params: { host }, body: { apply, ...options } }, request) => {
      const { principal } = request.caller;
      if (apply === undefined) {
        const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
          assertMayDrain(snapshot, principal, host);
          return showDrainPlan(snapshot, { host, options }, ctx);
        });
        return { status: 200, json: { plan: seen(principal, decision.shown) } };
      }
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMayDrain(snapshot, principal, host);
        return beginDrain(snapshot, { host, options, hash: apply }, ctx);
      });
      return { status: 200, json: { drain: seen(principal, decision.begun) } };
    }),
    bind(routes.showDrain, ({ params: { host } }, { caller: { principal } }) => {
      if (!cache.get('host', keys.host(host))) throw notFound('host', host);
      return { status: 200, json: seen(principal, shownDrain(drainOf(cache, host).value)) };
    }),
    bind(routes.cancelDrain, async ({ params: { host } }, request) => {
      const { principal } = request.caller;
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMayDrain(snapshot, principal, host);
        return cancelDrain(snapshot, host, ctx);
      });
      return { status: 200, json: seen(principal, decision.ended) };
    }),
    bind(routes.restore, async ({ params: { host }, body: { apply, ...options } }, request) => {
      const { principal } = request.caller;
      if (apply === undefined) {
        assertMayDrain(cache, principal, host);
        const plan = showRestorePlan(cache, { host, options }, contextOf(decider));
        return { status: 200, json: { plan: seen(principal, plan) } };
      }
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMayDrain(snapshot, principal, host);
        return beginRestore(snapshot, { host, options, hash: apply }, ctx);
      });
      return { status: 200, json: { restore: seen(principal, decision.begun) } };
    }),
    bind(routes.showRestore, ({ params: { host } }, { caller: { principal } }) => {
      if (!cache.get('host', keys.host(host))) throw notFound('host', host);
      return { status: 200, json: seen(principal, shownRestore(restoreOf(cache, host).value)) };
    }),
    bind(routes.cancelRestore, async ({ params: { host } }, request) => {
      const { principal } = request.caller;
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMayDrain(snapshot, principal, host);
        return cancelRestore(snapshot, host, ctx);
      });
      return { status: 200, json: seen(principal, decision.ended) };
    }),
    bind(routes.rebalance, async ({ body: { apply, ...options } }, request) => {
      const { principal } = request.caller;
      const question = { verb: 'drain', resource: 'host' } as const;
      if (apply === undefined) {
        assertMay(cache, principal, question);
        return {
          status: 200,
          json: { plan: seenRebalance(principal, planRebalance(cache, options, contextOf(decider))) },
        };
      }
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMay(snapshot, principal, question);
        return beginRebalance(snapshot, { options, hash: apply }, ctx);
      });
      return { status: 200, json: { drains: decision.drains.map((drain) => seen(principal, drain)) } };
    }),
    bind(routes.evacuate, async ({ params: { host }, body: { apply } }, request) => {
      const { principal } = request.caller;
      if (apply === undefined) {
        const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
          assertMayDrain(snapshot, principal, host, 'delete');
          return showEvacuation(snapshot, host, ctx);
        });
        return { status: 200, json: { plan: seen(principal, decision.shown) } };
      }
      await decideFor(decider, request, (snapshot, ctx) => {
        assertMayDrain(snapshot, principal, host, 'delete');
        return evacuate(snapshot, { host, hash: apply }, ctx);
      });
      return { status: 200, json: {} };
    }),
  ];
}

function assertMayDrain(
  snapshot: Snapshot,
  principal: Principal,
  name: string,
  verb: 'drain' | 'delete' = 'drain',
): void {
  const host = snapshot.get('host', keys.host(name))?.value;
  if (!host) throw notFound('host', name);
  assertMayOn(snapshot, principal, verb, host);
}
