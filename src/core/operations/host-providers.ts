// Brings the providers of a host in the ledger in line with what its agent reported and its operator states. A provider
// in use is never removed: a device that is gone stays with no capacity until its last allocation ends.

import type { Host, HostSpec } from '../../api/resources/host.ts';
import { type ProviderInventories, providersOf } from '../ledger/inventory.ts';
import type { Policy } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import type { Inventory, Provider } from '../state/records.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { boundedClaims, limitsOf } from './host-claims.ts';
import { claimsBesideOthers } from './hosts/host-machine.ts';
import { equalJson } from '../../base/equal-json.ts';

/** Set on the root provider of hosts on the machine of a control plane. */
const controlPlaneTrait = 'CUSTOM_CONTROL_PLANE';

/** `before`: the previous host, undefined when it is new; traits set by others are kept. */
export function providerChanges(
  snapshot: Snapshot,
  { before, host }: { readonly before: Host | undefined; readonly host: Host },
  policy: Pick<Policy, 'cpuAllocationRatio'>,
): Change[] {
  if (!host.status.capacity) return [];
  const wanted = providersOf(
    { ...host.spec, allocationRatios: allocationRatiosOf(snapshot, host.spec, policy) },
    boundedClaims(claimsBesideOthers(snapshot, host), limitsOf(snapshot, host.spec)),
  );
  const wantedIds = new Set(wanted.map(({ name }) => idOf(host, name)));
  const gone = snapshot.providersOfHost(host.metadata.name).filter(({ value }) => {
    return !wantedIds.has(value.id) && value.parent === host.metadata.id;
  });
  return [
    ...wanted.flatMap((provider) => putChange(snapshot, { before, host, provider })),
    ...gone.flatMap((entry) => removeChange(snapshot, entry)),
  ];
}

/** The host's own ratios, else its pool's, else the fleet's. */
function allocationRatiosOf(
  snapshot: Snapshot,
  { pool, allocationRatios }: HostSpec,
  { cpuAllocationRatio }: Pick<Policy, 'cpuAllocationRatio'>,
): HostSpec['allocationRatios'] {
  const ofPool = pool === undefined ? undefined : snapshot.get('pool', keys.pool(pool))?.value.spec.allocationRatios;
  return { VCPU: cpuAllocationRatio, ...ofPool, ...allocationRatios };
}

function idOf(host: Host, child: string): string {
  return child === '' ? host.metadata.id : `${host.metadata.id}-${child}`;
}

interface Wanted {
  readonly before: Host | undefined;
  readonly host: Host;
  readonly provider: ProviderInventories;
}

function putChange(snapshot: Snapshot, { before, host, provider }: Wanted): Change[] {
  const id = idOf(host, provider.name);
  const key = keys.provider(id);
  const entry = snapshot.get('provider', key);
  const traits =
    provider.name === '' ? rootTraits(entry?.value.traits ?? [], before, host) : [...provider.traits].sort();
  const { inventories } = provider;
  if (entry && equalJson(entry.value.inventories, inventories) && equalJson(entry.value.traits, traits)) return [];
  const value: Provider = {
    kind: 'provider',
    id,
    host: host.metadata.name,
    parent: provider.name === '' ? null : host.metadata.id,
    generation: (entry?.value.generation ?? 0) + 1,
    inventories,
    traits,
    aggregates: entry?.value.aggregates ?? [],
  };
  return [{ key, ifRevision: entry?.revision ?? 0, value }];
}

/**
 * The traits of agent and operator now, plus those that neither of them set before: they came through the Placement
 * API.
 */
function rootTraits(present: readonly string[], before: Host | undefined, host: Host): string[] {
  const said = new Set(before ? traitsSaidOf(before) : []);
  return [...new Set([...present.filter((trait) => !said.has(trait)), ...traitsSaidOf(host)])].sort();
}

function traitsSaidOf({ spec, status }: Host): string[] {
  const runsControlPlane = spec.controlPlane ?? status.controlPlane !== undefined;
  return [...(status.traits ?? []), ...(spec.traits ?? []), ...(runsControlPlane ? [controlPlaneTrait] : [])];
}

function removeChange(snapshot: Snapshot, { key, revision, value }: Entry<Provider>): Change[] {
  const inUse = [...snapshot.usedBy(value.id).values()].some((used) => used > 0);
  if (!inUse) return [{ key, ifRevision: revision, value: null }];
  const empty: Record<string, Inventory> = {};
  for (const [resourceClass, inventory] of Object.entries(value.inventories))
    empty[resourceClass] = { ...inventory, total: 0, reserved: 0 };
  if (equalJson(value.inventories, empty)) return [];
  return [
    {
      key,
      ifRevision: revision,
      value: { ...value, generation: value.generation + 1, inventories: empty, traits: [] },
    },
  ];
}
