// Outside providers: created, renamed, moved in their trees and deleted through the Placement API. What is refused for hosts of
// ours is refused here.

import { sha256 } from '../../../base/sha256.ts';
import { outsideGroup } from '../../ledger/outside-group.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Provider } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { nameOf, placementIndexOf } from '../../state/views/placement-index.ts';
import { Draft } from './draft.ts';
import { badRequest, conflict, notFound, ours, placementCodes } from './fault.ts';

/** The provider with this UUID. Throws `NotFound` with the text of the original. */
export function providerOf(
  snapshot: Snapshot,
  uuid: string,
  sorry = `No resource provider with uuid ${uuid} found`,
): Provider {
  const index = placementIndexOf(snapshot);
  const id = index.idOf(uuid);
  const provider = id === undefined ? undefined : index.provider(id);
  if (!provider) throw notFound(sorry);
  return provider;
}

export interface NewProvider {
  readonly uuid: string;
  readonly name: string;
  readonly parent: string | null;
}

export function createProvider(snapshot: Snapshot, asked: NewProvider, ctx: Context): { plan: Plan; id: string } {
  const { uuid, name } = asked;
  const index = placementIndexOf(snapshot);
  const sorry = (reason: string) =>
    badRequest(`Unable to create resource provider "${name}", ${uuid}: Object action create failed because: ${reason}`);
  if (name === '') throw sorry('name is required');
  if (asked.parent === uuid)
    throw sorry(
      'parent provider UUID cannot be same as UUID. Please set parent provider UUID to None if there is no parent.',
    );
  const parent = asked.parent === null ? null : index.idOf(asked.parent);
  if (parent === undefined) throw sorry('parent provider UUID does not exist.');
  const taken =
    index.idNamed(name) !== undefined ? `name: ${name}` : index.idOf(uuid) !== undefined ? `uuid: ${uuid}` : undefined;
  if (taken !== undefined)
    throw conflict(`Conflicting resource provider ${taken} already exists.`, placementCodes.duplicateName);
  const draft = new Draft(snapshot);
  draft.put({
    kind: 'provider',
    id: uuid,
    host: outsideGroup(uuid),
    parent,
    generation: 0,
    inventories: {},
    traits: [],
    aggregates: [],
    outside: { name, createdAtMs: ctx.nowMs, changedAtMs: ctx.nowMs },
  });
  draft.put({ kind: 'placementName', of: 'provider', name: sha256(name), createdAtMs: ctx.nowMs });
  if (parent !== null) draft.touch('provider', keys.provider(parent));
  return { plan: draft.plan(), id: uuid };
}

export interface ProviderUpdate {
  readonly uuid: string;
  readonly name: string;
  /** Undefined: it stays where it is. */
  readonly parent: string | null | undefined;
  readonly mayMove: boolean;
}

export function updateProvider(snapshot: Snapshot, asked: ProviderUpdate, ctx: Context): { plan: Plan; id: string } {
  const provider = providerOf(snapshot, asked.uuid);
  const index = placementIndexOf(snapshot);
  const { id } = provider;
  const parent = asked.parent === undefined ? provider.parent : parentOf(snapshot, provider, asked);
  if (!provider.outside) {
    if (asked.name === nameOf(provider) && parent === provider.parent) return { plan: { changes: [] }, id };
    throw ours(`resource provider ${asked.uuid} (${nameOf(provider)})`, 'its name and place are those of its host');
  }
  const { name: before } = provider.outside;
  const named = index.idNamed(asked.name);
  if (named !== undefined && named !== id)
    throw conflict(`Conflicting resource provider ${asked.name} already exists.`, placementCodes.duplicateName);
  const draft = new Draft(snapshot);
  draft.setProvider(id, { parent, outside: { ...provider.outside, name: asked.name, changedAtMs: ctx.nowMs } });
  if (asked.name !== before) {
    draft.remove('placementName', keys.placementName('provider', sha256(before)));
    draft.put({ kind: 'placementName', of: 'provider', name: sha256(asked.name), createdAtMs: ctx.nowMs });
  }
  if (parent !== null && parent !== provider.parent) {
    // Every provider on the way up: of two moves that would make a loop together only one commits.
    for (let at: string | null = parent; at !== null; at = index.provider(at)?.parent ?? null)
      draft.touch('provider', keys.provider(at));
  }
  return { plan: draft.plan(), id };
}

/** The id of the new parent. */
function parentOf(snapshot: Snapshot, provider: Provider, asked: ProviderUpdate): string | null {
  const index = placementIndexOf(snapshot);
  const sorry = (action: string, reason: string) =>
    badRequest(`Unable to save resource provider ${asked.uuid}: Object action ${action} failed because: ${reason}`);
  const { mayMove } = asked;
  if (asked.parent === null || asked.parent === undefined) {
    if (provider.parent !== null && !mayMove)
      throw sorry('update', 'un-parenting a provider is not currently allowed.');
    return null;
  }
  const parent = index.idOf(asked.parent);
  if (parent === undefined) throw sorry('create', 'parent provider UUID does not exist.');
  if (provider.parent !== null && provider.parent !== parent && !mayMove)
    throw sorry('update', 're-parenting a provider is not currently allowed.');
  if (index.subtreeOf(provider.id).has(parent))
    throw sorry('update', 'creating loop in the provider tree is not allowed.');
  return parent;
}

export function deleteProvider(snapshot: Snapshot, uuid: string): { plan: Plan } {
  const provider = providerOf(snapshot, uuid, `No resource provider with uuid ${uuid} found for delete`);
  if (!provider.outside)
    throw ours(
      `resource provider ${uuid} (${nameOf(provider)})`,
      `remove its host with "berth host rm ${provider.host}"`,
    );
  const [child] = placementIndexOf(snapshot).childrenOf(provider.id);
  if (child !== undefined)
    throw conflict(
      `Unable to delete parent resource provider ${uuid}: It has child resource providers.`,
      placementCodes.cannotDeleteParent,
    );
  if ([...snapshot.usedBy(provider.id).values()].some((used) => used > 0))
    throw conflict(
      `Unable to delete resource provider ${uuid}: Resource provider has allocations.`,
      placementCodes.providerInUse,
    );
  const draft = new Draft(snapshot);
  draft.remove('provider', keys.provider(provider.id));
  draft.remove('placementName', keys.placementName('provider', sha256(provider.outside.name)));
  return { plan: draft.plan() };
}
