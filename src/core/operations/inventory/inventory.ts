// What operators do with inventories. Polling is the server's (server/inventory/); apply-nodes.ts brings the hosts in line.

import { ApiError } from '../../../api/errors.ts';
import type { Inventory, InventorySpec } from '../../../api/resources/inventory.ts';
import { equalJson } from '../../../base/equal-json.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { existing, replacedMetadata, type ReplaceInput } from '../replace.ts';

export function createInventory(snapshot: Snapshot, input: CreateInput<InventorySpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'inventory');
  if (earlier) return earlier;
  const key = keys.inventory(input.name);
  assertFree(snapshot, 'inventory', key, input.name);
  const metadata = newMetadata(ctx.newId('inv'), input, ctx);
  const status = { state: 'Waiting', message: 'no list has come yet', hosts: 0, skipped: [] } as const;
  const inventory: Inventory = {
    kind: 'inventory',
    schemaVersion,
    metadata,
    spec: input.spec,
    status: { ...status, skipped: [] },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: inventory },
        ...rememberCreate(input, 'inventory', { key, id: metadata.id }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

export function replaceInventory(snapshot: Snapshot, input: ReplaceInput<InventorySpec>): Decision {
  const key = keys.inventory(input.name);
  const entry = existing(snapshot, 'inventory', key, input.ifRevision);
  const { value } = entry;
  const specChanged = !equalJson(value.spec, input.spec);
  if (!specChanged && equalJson(value.metadata.labels, input.labels)) return alreadyDone(entry);
  const metadata = replacedMetadata(value.metadata, { labels: input.labels, specChanged });
  const inventory: Inventory = { ...value, metadata, spec: input.spec };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: inventory }] }, key, changed: true };
}

/** Its hosts follow: the leader removes them, those with holds once nothing is held there. */
export function deleteInventory(
  snapshot: Snapshot,
  input: { readonly name: string; readonly ifRevision?: number },
): Decision {
  const key = keys.inventory(input.name);
  const entry = existing(snapshot, 'inventory', key, input.ifRevision);
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: null }] }, key, changed: true };
}

/** A loss that waits is meant. Throws `Conflict` when another one, or none, waits. */
export function confirmLoss(
  snapshot: Snapshot,
  { name, hash }: { readonly name: string; readonly hash: string },
  ctx: Context,
): Decision {
  const key = keys.inventory(name);
  const entry = existing(snapshot, 'inventory', key);
  const { status } = entry.value;
  if (status.confirmed === hash) return alreadyDone(entry);
  if (status.waiting?.hash !== hash)
    throw new ApiError(
      'Conflict',
      status.waiting === undefined
        ? `inventory "${name}" waits for no confirmation`
        : `inventory "${name}" waits for the confirmation of ${status.waiting.hash}, the loss of ${status.waiting.gone} hosts`,
      { field: 'hash' },
    );
  const value: Inventory = { ...entry.value, status: { ...status, confirmed: hash } };
  const message = `the loss of ${status.waiting.gone} hosts is confirmed`;
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value },
        eventChange(value, { type: 'Warning', reason: 'LossConfirmed', message }, ctx),
      ],
    },
    key,
    changed: true,
  };
}
