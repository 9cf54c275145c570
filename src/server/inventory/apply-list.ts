// Applies a list of nodes: judged as a whole, then a few hosts at a time, each with a condition on what it was decided on. A crash in
// between leaves some hosts as they were; the next list finds them. Hosts without a change need no commit.

import type { Inventory, InventoryStatus } from '../../api/resources/inventory.ts';
import type { Clock } from '../../base/clock.ts';
import { fingerprint } from '../../base/hash.ts';
import { applyAbsent, applyNodes, type NodesOf } from '../../core/operations/inventory/apply-nodes.ts';
import { hostsOf, judgeList, noteState } from '../../core/operations/inventory/judge-list.ts';
import type { Node, NodeList } from '../../core/operations/inventory/read-nodes.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Context } from '../../core/state/context.ts';
import { keys } from '../../core/state/keys.ts';
import type { Plan } from '../../core/state/plan.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { inSlices } from '../in-slices.ts';

export interface ListParts {
  readonly cache: Cache;
  readonly clock: Clock;
  readonly context: () => Context;
  /** Commits; with its author, where it has one. */
  readonly decide: <D extends { readonly plan: Plan }>(
    decide: (snapshot: Snapshot, ctx: Context) => D,
  ) => Promise<{ readonly decision: D }>;
}

/** Holds older than two intervals are in the usage that the source reports. */
const settleIntervals = 2;
const hostsPerCommit = 100;
const skippedMax = 16;

/** The state that the list led to, which is written down. `asOfMs`: the list knows nothing that came later. */
export async function applyList(
  parts: ListParts,
  inventory: Inventory,
  { list, asOfMs }: { readonly list: NodeList; readonly asOfMs: number },
): Promise<InventoryStatus> {
  if (!list.ok) return noteStale(parts, inventory, `the list is refused: ${list.why}`);
  const { name } = inventory.metadata;
  const verdict = judgeList(parts.cache, inventory, list);
  if (!verdict.apply) {
    const { waiting } = verdict;
    const message = `the list lacks ${waiting.gone} hosts; if they are gone: berth inventory confirm ${name} ${waiting.hash}`;
    const { confirmed: _confirmed, ...before } = inventory.status;
    return note(parts, inventory, { ...before, state: 'Held', message, waiting });
  }
  const { pool, intervalMs } = inventory.spec;
  const of = { inventory: name, pool, asOfMs, settleMs: settleIntervals * intervalMs };
  const { differing, refused } = await differingOf(parts, of, list.nodes);
  for (const nodes of chunksOf(differing))
    await parts.decide((snapshot, ctx) => onlyWhile(snapshot, inventory, applyNodes(snapshot, { ...of, nodes }, ctx)));
  for (const hosts of chunksOf(verdict.absent)) {
    const absent = { inventory: name, hosts, atOnce: verdict.confirmed };
    if (applyAbsent(parts.cache, absent, parts.context()).plan.changes.length === 0) continue;
    await parts.decide((snapshot, ctx) => onlyWhile(snapshot, inventory, applyAbsent(snapshot, absent, ctx)));
  }
  const skipped = [...list.skipped, ...refused].map(([node, why]) => `${node.slice(0, 80)}: ${why}`.slice(0, 256));
  const hosts = hostsOf(parts.cache, name).length;
  return note(parts, inventory, {
    state: 'Fresh',
    message: skipped.length === 0 ? `${hosts} hosts` : `${hosts} hosts; nodes left out: ${skipped.length}`,
    lastGoodAtMs: parts.context().nowMs,
    hash: hashOf(list.nodes),
    hosts,
    skipped: skipped.slice(0, skippedMax),
  });
}

/** The last good list stays. */
export function noteStale(
  parts: ListParts,
  inventory: Inventory,
  message: string,
  lastGoodAtMs = inventory.status.lastGoodAtMs,
): Promise<InventoryStatus> {
  const { lastGoodAtMs: _last, ...before } = inventory.status;
  return note(parts, inventory, {
    ...before,
    state: 'Stale',
    message: message.slice(0, 2048),
    ...(lastGoodAtMs === undefined ? {} : { lastGoodAtMs }),
  });
}

async function note(parts: ListParts, inventory: Inventory, status: InventoryStatus): Promise<InventoryStatus> {
  const { name, id } = inventory.metadata;
  const noted = { name, id, status };
  if (noteState(parts.cache, noted, parts.context()).plan.changes.length > 0)
    await parts.decide((snapshot, ctx) => noteState(snapshot, noted, ctx));
  return status;
}

/** An empty Plan if the inventory was removed, or removed and created again, in the meantime. */
function onlyWhile<D extends { readonly plan: Plan }>(snapshot: Snapshot, { metadata }: Inventory, decision: D): D {
  const now = snapshot.get('inventory', keys.inventory(metadata.name));
  return now?.value.metadata.id === metadata.id ? decision : { ...decision, plan: { changes: [] } };
}

interface Difference {
  readonly differing: readonly Node[];
  readonly refused: ReadonlyMap<string, string>;
}

function differingOf(parts: ListParts, of: Omit<NodesOf, 'nodes'>, nodes: readonly Node[]): Promise<Difference> {
  const { cache, clock, context } = parts;
  function* steps(): Generator<void, Difference> {
    const differing: Node[] = [];
    const refused = new Map<string, string>();
    const ctx = context();
    for (const node of nodes) {
      const trial = applyNodes(cache, { ...of, nodes: [node] }, ctx);
      if (trial.plan.changes.length > 0) differing.push(node);
      for (const { name, why } of trial.refused) refused.set(name, why);
      yield;
    }
    return { differing, refused };
  }
  return inSlices(clock, steps());
}

function* chunksOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += hostsPerCommit) yield items.slice(i, i + hostsPerCommit);
}

/** Of what they are, without what changes all the time. */
function hashOf(nodes: readonly Node[]): string {
  return fingerprint(JSON.stringify(nodes.map(({ usage: _usage, guests: _guests, ...node }) => node)));
}
