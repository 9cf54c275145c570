// All inventories. Only the leader polls; another process goes on from the hosts that are there. It also removes the hosts of
// inventories that are gone.

import type { Timer } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { applyAbsent } from '../../core/operations/inventory/apply-nodes.ts';
import { orphans } from '../../core/operations/inventory/judge-list.ts';
import { vocabularyOf } from '../../core/scheduler/vocabulary.ts';
import { keys, prefixOf } from '../../core/state/keys.ts';
import { contextOf, decideAndCommit } from '../decide.ts';
import type { PartReport } from '../outside.ts';
import { InventoryPoller, type PollerParts } from './inventory-poller.ts';

/** How soon a new leader begins. */
const lookMs = 2_000;
/** Hosts of inventories that are gone are looked for every ten seconds. */
const looksPerSweep = 5;
const hostsPerCommit = 100;

export class Inventories {
  readonly #parts: PollerParts;
  /** By key of the inventory. */
  readonly #pollers = new Map<string, InventoryPoller>();
  #led = false;
  #looks = 0;
  #timer: Timer | undefined;
  #forget: (() => void) | undefined;
  #sweeping: Promise<void> = Promise.resolve();

  constructor(parts: PollerParts) {
    this.#parts = parts;
  }

  start(): void {
    const prefix = prefixOf('inventory');
    this.#forget = this.#parts.decider.cache.onCommitted((key) => {
      if (this.#led && key.startsWith(prefix)) this.#follow(key);
    });
    this.#watchLead();
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#led = false;
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

  async stop(): Promise<void> {
    this.#led = false;
    this.#timer?.cancel();
    this.#forget?.();
    await Promise.all([...this.#pollers.values()].map((poller) => poller.stop()));
    this.#pollers.clear();
    await this.#sweeping;
  }

  #watchLead(): void {
    const { decider, leads } = this.#parts;
    const led = leads();
    if (led && !this.#led) for (const { key } of decider.cache.listCommitted('inventory')) this.#follow(key);
    if (!led && this.#led) this.stepDown();
    this.#led = led;
    if (led && this.#looks++ % looksPerSweep === 0 && vocabularyOf(decider.cache).outside > 0)
      this.#sweeping = this.#sweeping.then(() => this.#sweep());
    this.#timer = decider.clock.setTimer(lookMs, () => this.#watchLead(), { background: true });
  }

  #follow(key: string): void {
    const inventory = this.#parts.decider.cache.committed('inventory', key)?.value;
    const polled = inventory?.spec.source.kind === 'http' ? inventory : undefined;
    const poller = this.#pollers.get(key);
    if (poller && poller.id !== polled?.metadata.id) {
      this.#pollers.delete(key);
      void poller.stop();
    }
    if (polled && !this.#pollers.has(key)) this.#pollers.set(key, new InventoryPoller(polled, this.#parts));
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
