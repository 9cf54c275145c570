// Lists that are pushed, and confirmations of losses.

import { ApiError } from '../../api/errors.ts';
import type { Inventory } from '../../api/resources/inventory.ts';
import { inventoryRoutes as routes } from '../../api/routes/inventories.ts';
import { assertMayOn, notFound } from '../../core/access/may.ts';
import { confirmLoss } from '../../core/operations/inventory/inventory.ts';
import { readNodes } from '../../core/operations/inventory/read-nodes.ts';
import { keys } from '../../core/state/keys.ts';
import { contextOf, type Decider } from '../decide.ts';
import { decideFor, permitted } from '../http/on-behalf.ts';
import type { Route, RouteRequest } from '../http/route.ts';
import { bind } from '../http/routes/bind.ts';
import { applyList } from './apply-list.ts';

export function inventoryRoutes(decider: Decider): Route[] {
  const { cache, clock } = decider;
  const changeable = (name: string, { caller }: RouteRequest): Inventory => {
    const inventory = cache.get('inventory', keys.inventory(name))?.value;
    if (!inventory) throw notFound('inventory', name);
    assertMayOn(cache, caller.principal, 'update', inventory);
    return inventory;
  };
  /** Two lists at once would undo each other. */
  const busy = new Set<string>();
  return [
    bind(routes.push, async ({ params: { name }, body }, request) => {
      const inventory = changeable(name, request);
      if (inventory.spec.source.kind !== 'push')
        throw new ApiError(
          'Conflict',
          `inventory "${name}" ${inventory.spec.source.kind === 'http' ? 'polls its source' : 'reads a file'}, and takes no pushes`,
        );
      const list = readNodes(body);
      if (!list.ok) throw new ApiError('InvalidRequest', `the list is refused: ${list.why}`, { field: 'body' });
      if (busy.has(name)) throw new ApiError('Conflict', `another list of inventory "${name}" is being applied`);
      busy.add(name);
      try {
        const status = await applyList(
          {
            ...{ cache, clock, context: () => contextOf(decider) },
            decide: (decide) =>
              decideFor(decider, request, (snapshot, ctx) => {
                assertMayOn(snapshot, request.caller.principal, 'update', inventory);
                return decide(snapshot, ctx);
              }),
          },
          inventory,
          { list, asOfMs: clock.nowMs() },
        );
        return { status: 200, json: status };
      } finally {
        busy.delete(name);
      }
    }),
    bind(routes.confirm, async ({ params: { name }, body: { hash } }, request) => {
      changeable(name, request);
      const { principal } = request.caller;
      await decideFor(
        decider,
        request,
        permitted(principal, (snapshot, ctx) => confirmLoss(snapshot, { name, hash }, ctx)),
      );
      return { status: 200, json: changeable(name, request).status };
    }),
  ];
}
