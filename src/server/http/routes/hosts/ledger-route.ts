// One provider of the ledger with all of its consumers, from one snapshot: the Placement API has a request for each consumer.

import { ApiError } from '../../../../api/errors.ts';
import { capacityRoutes as routes } from '../../../../api/routes/capacity.ts';
import type { LedgerProvider } from '../../../../api/usage.ts';
import { assertMay } from '../../../../core/access/may.ts';
import { shownConsumer } from '../../../../core/operations/placement/consumers.ts';
import type { Provider } from '../../../../core/state/records.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import { nameOf, placementIndexOf } from '../../../../core/state/views/placement-index.ts';
import type { Decider } from '../../../decide.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';

export function ledgerRoute({ cache }: Decider): Route {
  return bind(routes.ledgerProvider, ({ params }, { caller: { principal } }) => {
    assertMay(cache, principal, { verb: 'read', resource: 'host' });
    const index = placementIndexOf(cache);
    const id = index.idNamed(params.provider) ?? index.idOf(params.provider.toLowerCase());
    const provider = id === undefined ? undefined : index.provider(id);
    if (!provider) throw new ApiError('NotFound', `there is no provider "${params.provider.slice(0, 80)}"`);
    return { status: 200, json: shown(cache, provider) };
  });
}

function shown(snapshot: Snapshot, provider: Provider): LedgerProvider {
  const { id, parent, generation, inventories } = provider;
  const index = placementIndexOf(snapshot);
  const used = snapshot.usedBy(id);
  return {
    uuid: index.uuidOf(id),
    name: nameOf(provider),
    generation,
    ...(parent === null ? {} : { parent: index.uuidOf(parent) }),
    inventories: Object.fromEntries(
      Object.entries(inventories).map(([name, { total, reserved, allocationRatio }]) => [
        name,
        { total, reserved, allocationRatio, used: used.get(name) ?? 0 },
      ]),
    ),
    allocations: [...allocationsOn(snapshot, provider)],
  };
}

function* allocationsOn(snapshot: Snapshot, { id, host }: Provider): Iterable<LedgerProvider['allocations'][number]> {
  for (const { value } of snapshot.allocationsOnHost(host)) {
    const amounts = value.amounts[id];
    const found = amounts && Object.keys(amounts).length > 0 ? shownConsumer(snapshot, value.consumer.id) : undefined;
    if (!amounts || !found) continue;
    const { uuid: consumer, type, project } = found;
    yield { consumer, ...(type === undefined ? {} : { type }), project, amounts: { ...amounts } };
  }
}
