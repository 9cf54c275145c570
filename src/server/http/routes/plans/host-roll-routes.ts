// `/v1/host-roll`: the plan of the maintenance of several hosts, shown and then applied by its hash.

import type { HostRoll, PlannedRollHost, RollPlan } from '../../../../api/plans/host-roll.ts';
import { hostRollRoutes as routes } from '../../../../api/routes/host-roll.ts';
import { assertMay } from '../../../../core/access/may.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import { beginRoll, cancelRoll, pauseRoll, rollOf, shownRoll } from '../../../../core/operations/plans/host-roll.ts';
import { planRoll } from '../../../../core/plans/roll.ts';
import { guestsWithoutNames } from '../../../../core/plans/without-guests.ts';
import { contextOf, type Decider } from '../../../decide.ts';
import { decideFor } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { knowsNames } from '../visible.ts';

const question = { verb: 'drain', resource: 'host' } as const;

export function hostRollRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  const knowsAll = (principal: Principal): boolean => knowsNames(principal, cache)('');
  /** Messages name guests of any project. */
  const seenRoll = (principal: Principal, roll: HostRoll): HostRoll =>
    knowsAll(principal) ? roll : { ...roll, hosts: roll.hosts.map(({ message: _, ...host }) => host) };
  const seen = (principal: Principal, plan: RollPlan): RollPlan => {
    const knows = knowsNames(principal, cache);
    const named = (host: PlannedRollHost): PlannedRollHost => ({
      ...host,
      guests: guestsWithoutNames(host.guests, knows),
    });
    const blocked = plan.blocked.map(({ reasons, ...host }) => ({
      ...host,
      reasons: knowsAll(principal) ? reasons : reasons.map(({ code }) => ({ code, message: code })),
    }));
    return { ...plan, hosts: plan.hosts.map(named), blocked };
  };
  return [
    bind(routes.roll, async ({ body: { apply, ...options } }, request) => {
      const { principal } = request.caller;
      if (apply === undefined) {
        assertMay(cache, principal, question);
        return { status: 200, json: { plan: seen(principal, planRoll(cache, options, contextOf(decider))) } };
      }
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMay(snapshot, principal, question);
        return beginRoll(snapshot, { options, hash: apply }, ctx);
      });
      return { status: 200, json: { roll: seenRoll(principal, decision.roll) } };
    }),
    bind(routes.showRoll, (_, { caller: { principal } }) => ({
      status: 200,
      json: seenRoll(principal, shownRoll(rollOf(cache).value)),
    })),
    bind(routes.pauseRoll, async ({ body: { paused } }, request) => {
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMay(snapshot, request.caller.principal, question);
        return pauseRoll(snapshot, paused, ctx);
      });
      return { status: 200, json: seenRoll(request.caller.principal, decision.roll) };
    }),
    bind(routes.cancelRoll, async (_, request) => {
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => {
        assertMay(snapshot, request.caller.principal, question);
        return cancelRoll(snapshot, ctx);
      });
      return { status: 200, json: seenRoll(request.caller.principal, decision.roll) };
    }),
  ];
}
