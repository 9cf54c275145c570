// Polls the source of one inventory, one poll at a time. While the source fails the last good list stays.
//
//   wait (interval ± 10 %) ──▶ fetch ──list, or unchanged──▶ apply ──▶ wait
//                                └────────failed────▶ note that it is stale ──▶ wait longer, up to 5 min

import type { Inventory, InventorySource } from '../../api/resources/inventory.ts';
import type { Timer } from '../../base/clock.ts';
import { backoffMs } from '../../base/backoff.ts';
import type { WebFetch } from '../../base/fetch-json.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { keys } from '../../core/state/keys.ts';
import { type NodeList, readNodes } from '../../core/operations/inventory/read-nodes.ts';
import { contextOf, decideAndCommit, type Decider } from '../decide.ts';
import { applyList, type ListParts, noteStale } from './apply-list.ts';
import { type Fetched, fetchNodes } from './fetch-nodes.ts';
import type { InventorySettings } from './inventory-settings.ts';
import { readNodesFile } from './read-nodes-file.ts';

export interface PollerParts {
  readonly decider: Decider;
  readonly fetch: WebFetch;
  readonly settings: InventorySettings;
  readonly leads: () => boolean;
  readonly log: Logger;
}

function placeOf(source: InventorySource): string {
  return source.kind === 'http' ? source.url : source.kind;
}

const delayMsMax = 300_000;
const jitter = 0.1;
const idleMs = 2_000;

export class InventoryPoller {
  readonly id: string;
  readonly #name: string;
  readonly #parts: PollerParts;
  readonly #stopped = new AbortController();
  #timer: Timer | undefined;
  #running: Promise<void> = Promise.resolve();
  #failures = 0;
  /** The last list that was read, for when the source says that it is unchanged: holds on hosts grow older. */
  #last: { readonly list: NodeList; readonly url: string; readonly etag: string | undefined } | undefined;
  #lastGoodAtMs: number | undefined;
  #trouble: string | undefined;

  constructor({ metadata, status }: Inventory, parts: PollerParts) {
    this.id = metadata.id;
    this.#lastGoodAtMs = status.lastGoodAtMs;
    this.#name = metadata.name;
    this.#parts = parts;
    this.#next(0);
  }

  /** Why the last poll failed. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /** Of the last good list; undefined: none has come. */
  get lastGoodAtMs(): number | undefined {
    return this.#lastGoodAtMs;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#timer?.cancel();
    await this.#running;
  }

  #next(delayMs: number): void {
    if (this.#stopped.signal.aborted) return;
    this.#timer = this.#parts.decider.clock.setTimer(
      delayMs,
      () => {
        this.#running = this.#run();
      },
      { background: true },
    );
  }

  async #run(): Promise<void> {
    const inventory = this.#current();
    if (!inventory) {
      this.#next(idleMs); // this process may lead again before anybody stops this poller
      return;
    }
    try {
      this.#trouble = await this.#poll(inventory);
    } catch (error) {
      this.#trouble = describeError(error);
      this.#parts.log.warn('inventory is not applied', { inventory: this.#name, error: this.#trouble });
    }
    this.#failures = this.#trouble === undefined ? 0 : this.#failures + 1;
    this.#next(this.#delayMs(inventory.spec.intervalMs));
  }

  #delayMs(intervalMs: number): number {
    const { prng } = this.#parts.decider;
    if (this.#failures > 1)
      return Math.max(
        intervalMs,
        backoffMs(this.#failures, { delayMsMin: intervalMs, delayMsMax: Math.max(delayMsMax, intervalMs) }, prng),
      );
    const spread = Math.floor(intervalMs * jitter);
    return intervalMs - spread + prng.below(2 * spread + 1);
  }

  /** Why it failed, or undefined. */
  async #poll(inventory: Inventory): Promise<string | undefined> {
    const { clock } = this.#parts.decider;
    const url = placeOf(inventory.spec.source);
    const asOfMs = clock.nowMs();
    const fetched = await this.#ask(inventory.spec.source, this.#last?.url === url ? this.#last.etag : undefined);
    // It may have been changed, or another process may lead, since the question went out.
    const now = this.#current();
    if (!now || now.metadata.generation !== inventory.metadata.generation) return undefined;
    if (fetched.kind === 'failed') {
      await noteStale(this.#listParts(), now, `the source fails: ${fetched.why}`, this.#lastGoodAtMs);
      return fetched.why;
    }
    if (fetched.kind === 'list') this.#last = { list: readNodes(fetched.json), url, etag: fetched.etag };
    const list = this.#last?.list;
    if (list === undefined) return undefined;
    if (!list.ok) {
      await noteStale(this.#listParts(), now, `the list is refused: ${list.why}`, this.#lastGoodAtMs);
      return list.why;
    }
    const { state } = await applyList(this.#listParts(), now, { list, asOfMs });
    if (state === 'Fresh') this.#lastGoodAtMs = Math.floor(clock.nowMs());
    return undefined;
  }

  async #ask(source: InventorySource, etag: string | undefined): Promise<Fetched> {
    const { settings, fetch, decider } = this.#parts;
    switch (source.kind) {
      case 'http': {
        const { url } = source;
        let authorization: string | undefined;
        try {
          authorization = await settings.authorizationFor(url);
        } catch (error) {
          return { kind: 'failed', why: describeError(error) };
        }
        return fetchNodes({ fetch, clock: decider.clock }, { url, etag, authorization, signal: this.#stopped.signal });
      }
      case 'file': {
        const path = settings.files.get(this.#name);
        if (path !== undefined) return readNodesFile(path, etag);
        return { kind: 'failed', why: 'inventoryFiles of the server that leads has no file for it' };
      }
      case 'push':
        return { kind: 'failed', why: 'it is pushed' }; // it was replaced since this began
    }
  }

  #current(): Inventory | undefined {
    const { decider, leads } = this.#parts;
    if (this.#stopped.signal.aborted || !leads()) return undefined;
    const inventory = decider.cache.committed('inventory', keys.inventory(this.#name))?.value;
    return inventory?.metadata.id === this.id ? inventory : undefined;
  }

  #listParts(): ListParts {
    const { decider } = this.#parts;
    return {
      cache: decider.cache,
      clock: decider.clock,
      context: () => contextOf(decider),
      decide: (decide) => decideAndCommit(decider, decide),
    };
  }
}
