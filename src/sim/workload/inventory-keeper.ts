// The keeper of an inventory of outside hosts: has its source polled, confirms some losses, and pauses a host now and then.

import { ApiError } from '../../api/errors.ts';
import type { FalseNodes } from '../world/false-nodes.ts';
import { type Caller, pickOne, textOf } from './caller.ts';

export interface InventoryKeeperOptions {
  readonly caller: Caller;
  readonly nodes: FalseNodes;
}

export const inventoryName = 'nodes';

export class InventoryKeeper {
  readonly #caller: Caller;
  readonly #nodes: FalseNodes;

  constructor({ caller, nodes }: InventoryKeeperOptions) {
    this.#caller = caller;
    this.#nodes = nodes;
  }

  async run(): Promise<void> {
    const { prng, parts } = this.#caller;
    const { url, intervalMs } = this.#nodes;
    const spec = { source: { kind: 'http' as const, url }, intervalMs };
    const made = await this.#caller.insist((client) =>
      client.create('inventory', { metadata: { name: inventoryName }, spec }, { idempotencyKey: 'inventory' }),
    );
    this.#caller.trace(() => `inventory -> ${textOf(made)}`);
    while (await this.#caller.nextTurn(10 * parts.scenario.betweenCallsMsMean)) {
      if (prng.chance(1, 2)) await this.#confirm();
      else await this.#pause(prng.chance(1, 2));
    }
    for (const _ of this.#nodes.names) await this.#pause(false);
  }

  async #confirm(): Promise<void> {
    const known = await this.#caller.insist((client) => client.get('inventory', inventoryName));
    const waiting = known instanceof ApiError ? undefined : known.status.waiting;
    if (waiting === undefined) return;
    const answer = await this.#caller.insist((client) => client.confirmInventory(inventoryName, waiting.hash));
    if (!(answer instanceof ApiError)) this.#caller.parts.tally.hit('inventory-confirmed');
  }

  async #pause(paused: boolean): Promise<void> {
    const name = pickOne(this.#nodes.names, this.#caller.prng) ?? '';
    const found = await this.#caller.insist((client) => client.get('host', name));
    if (found instanceof ApiError) return; // it has not come yet, or is gone
    const { labels, revision } = found.metadata;
    const body = { metadata: { labels, revision }, spec: { ...found.spec, paused } };
    const answer = await this.#caller.insist((client) => client.replace('host', name, body));
    this.#caller.trace(() => `${paused ? 'pause' : 'resume'} ${name} -> ${textOf(answer)}`);
  }
}
