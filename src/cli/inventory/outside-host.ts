// Hosts of inventories as lists show them: where they come from, and how old what is known of them is.

import { ApiError } from '../../api/errors.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Inventory } from '../../api/resources/inventory.ts';
import { age, amountText } from '../options/units.ts';
import { listAll } from '../print/follow.ts';

export type Inventories = ReadonlyMap<string, Inventory>;

/** The inventories that these hosts come from; undefined: none does. Without the right to read inventories it is empty. */
export async function inventoriesOf(client: UserClient, hosts: readonly Host[]): Promise<Inventories | undefined> {
  if (!hosts.some(({ status }) => status.outside !== undefined)) return undefined;
  try {
    const { items } = await listAll(client, 'inventory');
    return new Map(items.map((inventory) => [inventory.metadata.name, inventory]));
  } catch (error) {
    if (error instanceof ApiError && (error.code === 'Forbidden' || error.code === 'NotFound')) return new Map();
    throw error;
  }
}

/** `metal`, or `metal, 12m old`; empty for hosts with agents. */
export function originText({ outside }: Host['status'], inventories: Inventories | undefined, nowMs: number): string {
  if (outside === undefined) return '';
  const stale = staleText(inventories?.get(outside.inventory), nowMs);
  const missing = outside.missed === undefined ? undefined : `absent from ${outside.missed} lists`;
  return [outside.inventory, stale, missing].filter((part) => part !== undefined).join(', ');
}

export function originLines(
  status: Host['status'],
  inventories: Inventories | undefined,
  nowMs: number,
): [string, string][] {
  const { outside } = status;
  if (outside === undefined) return [];
  const usage = Object.entries(outside.usage).map(([resourceClass, used]) => amountText(resourceClass, used));
  const lines: [string, string | undefined][] = [
    ['inventory', originText(status, inventories, nowMs)],
    ['address', outside.ip],
    ['model', outside.model],
    ['usage', `${usage.join(', ')}, changed ${age(nowMs - outside.reportedAtMs)} ago`],
  ];
  return lines.flatMap(([field, value]) => (value === undefined ? [] : [[field, value]]));
}

function staleText(inventory: Inventory | undefined, nowMs: number): string | undefined {
  if (inventory === undefined || inventory.status.state === 'Fresh') return undefined;
  const { lastGoodAtMs } = inventory.status;
  return lastGoodAtMs === undefined ? 'of unknown age' : `${age(nowMs - lastGoodAtMs)} old`;
}
