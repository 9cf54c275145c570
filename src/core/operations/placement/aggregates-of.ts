// Aggregates of a provider as the Placement API shows them: its own, and that of the pool of its host.

import { aggregatesIn, poolAggregate } from '../../ledger/pool-aggregate.ts';
import { keys } from '../../state/keys.ts';
import type { Provider } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

export function aggregatesOf(snapshot: Snapshot, provider: Provider): readonly string[] {
  return aggregatesIn(poolOf(snapshot, provider), provider.aggregates);
}

/** Without that of its pool: a client sends back what it was shown, and only the spec of the host says what its pool is. */
export function ownAggregates(snapshot: Snapshot, provider: Provider, all: readonly string[]): string[] {
  const pool = poolOf(snapshot, provider);
  return pool === undefined ? [...all] : all.filter((uuid) => uuid !== poolAggregate(pool));
}

function poolOf(snapshot: Snapshot, { host }: Provider): string | undefined {
  return snapshot.get('host', keys.host(host))?.value.spec.pool;
}
