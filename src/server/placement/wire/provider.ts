// A provider as the Placement API shows it.

import type { Provider } from '../../../core/state/records.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import { keys } from '../../../core/state/keys.ts';
import { nameOf, placementIndexOf } from '../../../core/state/views/placement-index.ts';

/** The links of a provider, by the version that added each. */
const links = [
  [0, 'inventories'],
  [0, 'usages'],
  [1, 'aggregates'],
  [6, 'traits'],
  [11, 'allocations'],
] as const;

export function shownProvider(
  snapshot: Snapshot,
  provider: Provider,
  { version, mount }: { readonly version: number; readonly mount: string },
): object {
  const index = placementIndexOf(snapshot);
  const uuid = index.uuidOf(provider.id);
  const url = `${mount}/resource_providers/${uuid}`;
  const { parent } = provider;
  return {
    uuid,
    name: nameOf(provider),
    generation: generationOf(snapshot, provider),
    links: [
      { rel: 'self', href: url },
      ...links.filter(([since]) => since <= version).map(([, rel]) => ({ rel, href: `${url}/${rel}` })),
    ],
    ...(version < 14
      ? {}
      : {
          parent_provider_uuid: parent === null ? null : index.uuidOf(parent),
          root_provider_uuid: index.uuidOf(index.rootOf(provider.id)),
        }),
  };
}

export function generationOf(snapshot: Snapshot, { id, generation }: Provider): number {
  return snapshot.get('provider', keys.provider(id))?.value.generation ?? generation;
}

/** When it last changed in what it shows; unknown of hosts. */
export function changedOf({ outside }: Provider): number | 'now' {
  return outside?.changedAtMs ?? 'now';
}

/** Standard ones before those of operators, as the original lists the traits of a provider. */
export function shownTraits({ traits }: { readonly traits: Iterable<string> }): string[] {
  const rank = (trait: string): number => (trait.startsWith('CUSTOM_') ? 1 : 0);
  return [...traits].sort((a, b) => rank(a) - rank(b));
}
