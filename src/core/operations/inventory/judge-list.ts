// Judges a whole list before anything is applied: which known hosts are missing from it, and whether a person must confirm that. Also writes
// the state of the inventory afterwards.

import type { Inventory, InventoryStatus } from '../../../api/resources/inventory.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { fingerprint } from '../../../base/hash.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { missedMax } from './apply-nodes.ts';
import type { NodeList } from './read-nodes.ts';

export type Judgement =
  /** `absent`: hosts that the list lacks; `confirmed`: somebody has said that they are gone. */
  | { readonly apply: true; readonly absent: readonly string[]; readonly confirmed: boolean }
  | { readonly apply: false; readonly waiting: { readonly hash: string; readonly gone: number } };

/** Fewer absent hosts than this need no confirmation, however few there are. */
const lossMin = 3;

export function judgeList(
  snapshot: Snapshot,
  { metadata, spec, status }: Inventory,
  list: Extract<NodeList, { ok: true }>,
): Judgement {
  const present = new Set([...list.nodes.map(({ name }) => name), ...list.skipped.keys()]);
  const known = hostsOf(snapshot, metadata.name);
  const absent = known.filter(({ name }) => !present.has(name));
  const lost = absent.filter(({ missed }) => missed < missedMax).map(({ name }) => name);
  const counted = known.filter(({ missed }) => missed < missedMax).length;
  const names = absent.map(({ name }) => name);
  const isMuch = lost.length >= lossMin && lost.length > counted * spec.lossShareMax;
  const isAll = present.size === 0 && lost.length > 0;
  if (!isMuch && !isAll) return { apply: true, absent: names, confirmed: false };
  const hash = fingerprint(lost.sort().join('\n'));
  if (status.confirmed === hash) return { apply: true, absent: names, confirmed: true };
  return { apply: false, waiting: { hash, gone: lost.length } };
}

/** The hosts of an inventory, and how many lists in a row lacked each. */
export function hostsOf(snapshot: Snapshot, inventory: string): { readonly name: string; readonly missed: number }[] {
  const hosts: { name: string; missed: number }[] = [];
  for (const { value } of snapshot.list('host')) {
    const origin = value.status.outside;
    if (origin?.inventory === inventory) hosts.push({ name: value.metadata.name, missed: origin.missed ?? 0 });
  }
  return hosts;
}

/** Hosts whose inventory was removed, by its name. */
export function orphans(snapshot: Snapshot): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const { value } of snapshot.list('host')) {
    const inventory = value.status.outside?.inventory;
    if (inventory === undefined || snapshot.get('inventory', keys.inventory(inventory))) continue;
    const others = found.get(inventory);
    if (others) others.push(value.metadata.name);
    else found.set(inventory, [value.metadata.name]);
  }
  return found;
}

/** Writes down a new state of the inventory. What is as before is not written, so that an unchanged list costs nothing. */
export function noteState(
  snapshot: Snapshot,
  { name, id, status }: { readonly name: string; readonly id: string; readonly status: InventoryStatus },
  ctx: Context,
): { readonly plan: Plan } {
  const entry = snapshot.get('inventory', keys.inventory(name));
  if (entry?.value.metadata.id !== id) return { plan: emptyPlan };
  const { status: before } = entry.value;
  // A confirmation that came in between stays.
  const { confirmed } = before;
  const kept = confirmed === undefined || status.state !== 'Held' ? status : { ...status, confirmed };
  const { lastGoodAtMs: was, ...rest } = before;
  const { lastGoodAtMs: _is, ...next } = kept;
  if (equalJson(rest, next) && (next.state !== 'Fresh' || was !== undefined)) return { plan: emptyPlan };
  const value: Inventory = { ...entry.value, status: kept };
  const turned = before.state !== status.state;
  const type = status.state === 'Fresh' ? 'Normal' : 'Warning';
  return {
    plan: {
      changes: [
        { key: entry.key, ifRevision: entry.revision, value },
        ...(turned
          ? [eventChange(value, { type, reason: `Inventory${status.state}`, message: status.message }, ctx)]
          : []),
      ],
    },
  };
}
