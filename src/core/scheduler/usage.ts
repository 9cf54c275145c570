// Usage: capacity and use of hosts, as the scheduler sees them.

import type { HostProviders, HostUsage } from '../../api/usage.ts';
import { capacityOf } from '../ledger/ledger.ts';
import { aggregatesIn } from '../ledger/pool-aggregate.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { fleetOf } from './fleet.ts';

/** Up to `limit` hosts whose names come after `after`, and whether there are more. */
export function usageOf(
  snapshot: Snapshot,
  { after = '', limit, host }: { readonly after?: string; readonly limit: number; readonly host?: string },
): { items: HostUsage[]; more: boolean } {
  const fleet = fleetOf(snapshot);
  const columns = [...fleet.columns()];
  const slots: number[] = [];
  for (let slot = 0; slot < fleet.length; slot++) {
    const name = fleet.names[slot] ?? '';
    if (fleet.hosts[slot] && name > after && (host === undefined || host === name)) slots.push(slot);
  }
  slots.sort((a, b) => ((fleet.names[a] ?? '') < (fleet.names[b] ?? '') ? -1 : 1));
  const items = slots.slice(0, limit).map((slot) => {
    const classes: Record<string, HostUsage['classes'][string]> = {};
    for (const column of columns) {
      const capacity = column.capacity(slot);
      const used = column.used(slot);
      if (capacity > 0 || used > 0) classes[column.resourceClass] = { capacity, used, most: column.most(slot) };
    }
    return { host: fleet.names[slot] ?? '', consumers: fleet.guests[slot] ?? 0, classes };
  });
  return { items, more: slots.length > limit };
}

/** Its providers, the host itself first, and the holders of each: by id where the caller may not know their names. */
export function providersOf(snapshot: Snapshot, host: string, knows: (project: string) => boolean): HostProviders {
  const fleet = fleetOf(snapshot);
  const slot = fleet.slotOf(host);
  const tree = slot === undefined ? [] : fleet.tree(slot);
  const pool = slot === undefined ? undefined : fleet.hosts[slot]?.spec.pool;
  return {
    providers: tree.map(({ provider, used }) => {
      const inventories = Object.entries(provider.inventories).map(([resourceClass, inventory]) => [
        resourceClass,
        { ...inventory, capacity: capacityOf(inventory), used: used.get(resourceClass) ?? 0 },
      ]);
      return {
        id: provider.id,
        ...(provider.parent === null ? {} : { parent: provider.parent }),
        generation: snapshot.get('provider', keys.provider(provider.id))?.value.generation ?? provider.generation,
        traits: [...provider.traits],
        aggregates: [...aggregatesIn(pool, provider.aggregates)],
        inventories: Object.fromEntries(inventories),
      };
    }),
    allocations: [...snapshot.allocationsOnHost(host)]
      .map(({ value: { consumer, amounts } }) => ({
        kind: consumer.kind ?? ('instance' as const),
        project: consumer.project,
        name: knows(consumer.project) ? consumer.name : consumer.id,
        incarnation: consumer.incarnation,
        amounts: Object.fromEntries(Object.entries(amounts).map(([id, held]) => [id, { ...held }])),
      }))
      .sort((a, b) => (`${a.project}/${a.name}` < `${b.project}/${b.name}` ? -1 : 1)),
  };
}
