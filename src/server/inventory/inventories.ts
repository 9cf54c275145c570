// All inventories. Only the leader polls; another process goes on from the hosts that are there. It also removes the hosts of
// inventories that are gone.

import { parse } from '../../api/parse.ts';
import { InventorySpec } from '../../api/resources/inventory.ts';
import type { Timer } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { applyAbsent } from '../../core/operations/inventory/apply-nodes.ts';
import { createInventory } from '../../core/operations/inventory/inventory.ts';
import { orphans } from '../../core/operations/inventory/judge-list.ts';
import { vocabularyOf } from '../../core/scheduler/vocabulary.ts';
import { keys, prefixOf } from '../../core/state/keys.ts';
import { emptyPlan } from '../../core/state/plan.ts';
import { contextOf, decideAndCommit } from '../decide.ts';
import type { InventoryMeasure, PartReport } from '../outside.ts';
import { InventoryPoller, type PollerParts } from './inventory-poller.ts';

/** How often hosts of inventories that are gone are looked for. */
const sweepMs = 10_000;
const hostsPerCommit = 100;

export class Inventories {
  readonly #parts: PollerParts;
  /** By key of the inventory. */
  readonly #pollers = new Map<string, InventoryPoller>();
  #led = false;
  #timer: Timer | undefined;
  #forget: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: PollerParts) {
    this.#parts = parts;
  }

  /** This process leads from now on. */
  lead(): void {
    if (this.#led || this.#isStopped) return;
    this.#led = true;
    const { decider } = this.#parts;
    const prefix = prefixOf('inventory');
    this.#forget = decider.cache.onCommitted((key) => {
      if (key.startsWith(prefix)) this.#follow(key);
    });
    for (const { key } of decider.cache.listCommitted('inventory')) this.#follow(key);
    this.#inOrder(() => this.#createConfigured());
    this.#sweepLater();
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#led = false;
    this.#timer?.cancel();
    this.#forget?.();
    for (const poller of this.#pollers.values()) void poller.stop();
    this.#pollers.clear();
  }

  report(): readonly PartReport[] {
    return [...this.#pollers].map(([key, { trouble }]) => ({
      name: key,
      ok: trouble === undefined,
      message: trouble === undefined ? 'its source answers' : `its source fails: ${trouble}`,
    }));
  }

  /** Of all, on the server that leads. */
  inventories(): readonly InventoryMeasure[] {
    if (!this.#led) return [];
    const { cache, clock } = this.#parts.decider;
    return Array.from(cache.listCommitted('inventory'), ({ key, value: { metadata, status } }) => {
      const lastGoodAtMs = this.#pollers.get(key)?.lastGoodAtMs;
      return {
        ...{ inventory: metadata.name, hosts: status.hosts, fresh: status.state === 'Fresh' },
        ...(lastGoodAtMs === undefined ? {} : { ageMs: Math.max(0, clock.nowMs() - lastGoodAtMs) }),
      };
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    const pollers = [...this.#pollers.values()];
    this.stepDown();
    await Promise.all(pollers.map((poller) => poller.stop()));
    await this.#writing;
  }

  #inOrder(write: () => Promise<void>): void {
    this.#writing = this.#writing.then(() => (this.#led ? write() : undefined));
  }

  #sweepLater(): void {
    const { decider } = this.#parts;
    const sweep = (): void => {
      if (vocabularyOf(decider.cache).outside > 0) this.#inOrder(() => this.#sweep());
      this.#sweepLater();
    };
    this.#timer = decider.clock.setTimer(sweepMs, sweep, { background: true });
  }

  #follow(key: string): void {
    const inventory = this.#parts.decider.cache.committed('inventory', key)?.value;
    const polled = inventory?.spec.source.kind === 'push' ? undefined : inventory;
    const poller = this.#pollers.get(key);
    if (poller && poller.id !== polled?.metadata.id) {
      this.#pollers.delete(key);
      void poller.stop();
    }
    if (polled && !this.#pollers.has(key)) this.#pollers.set(key, new InventoryPoller(polled, this.#parts));
  }

  /** The inventories that the configuration names. One that has another source stays as it is. */
  async #createConfigured(): Promise<void> {
    const { decider, log, settings } = this.#parts;
    for (const name of settings.files.keys()) {
      const known = decider.cache.committed('inventory', keys.inventory(name))?.value;
      if (known !== undefined && known.spec.source.kind !== 'file')
        log.warn('an inventory has another source than the file in the configuration', { inventory: name });
      if (known !== undefined) continue;
      const spec = parse(InventorySpec, { source: { kind: 'file' } });
      const input = { project: '', name, labels: {}, spec };
      try {
        await decideAndCommit(decider, (snapshot, ctx) =>
          snapshot.get('inventory', keys.inventory(name)) ? { plan: emptyPlan } : createInventory(snapshot, input, ctx),
        );
      } catch (error) {
        log.warn('an inventory cannot be created', { inventory: name, error: describeError(error) });
      }
    }
  }

  async #sweep(): Promise<void> {
    const { decider, log } = this.#parts;
    try {
      for (const [inventory, hosts] of orphans(decider.cache)) {
        for (let i = 0; i < hosts.length && this.#led; i += hostsPerCommit) {
          const absent = { inventory, hosts: hosts.slice(i, i + hostsPerCommit), atOnce: true };
          if (applyAbsent(decider.cache, absent, contextOf(decider)).plan.changes.length === 0) continue;
          await decideAndCommit(decider, (snapshot, ctx) => {
            const back = snapshot.get('inventory', keys.inventory(inventory)) !== undefined;
            return back ? { plan: { changes: [] } } : applyAbsent(snapshot, absent, ctx);
          });
        }
      }
    } catch (error) {
      log.warn('hosts of removed inventories stay for now', { error: describeError(error) });
    }
  }
}
