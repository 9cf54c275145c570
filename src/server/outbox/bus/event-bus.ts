// The events of the whole fleet, to every event bus that is configured. Only the leader sends; another goes on from what is written down.

import type { Timer } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import { prefixOf } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import type { BusLag, PartReport } from '../../outside.ts';
import { EventFeed } from '../event-feed.ts';
import type { OpenBus } from './bus.ts';
import { BusSender } from './bus-sender.ts';

export interface EventBusParts {
  readonly decider: Decider;
  readonly leads: () => boolean;
  readonly log: Logger;
}

/** How soon a new leader begins. */
const lookMs = 2_000;

export class EventBus {
  readonly #parts: EventBusParts;
  readonly #buses: readonly { readonly name: string; readonly open: OpenBus }[];
  #senders: readonly BusSender[] = [];
  readonly #stopping = new Set<Promise<void>>();
  #feed: EventFeed | undefined;
  #timer: Timer | undefined;
  #forget: (() => void) | undefined;
  #isWoken = false;

  constructor(buses: readonly { readonly name: string; readonly open: OpenBus }[], parts: EventBusParts) {
    this.#buses = buses;
    this.#parts = parts;
  }

  start(): void {
    const events = prefixOf('event');
    this.#forget = this.#parts.decider.cache.onCommitted((key) => {
      if (this.#senders.length > 0 && key.startsWith(events)) this.#wakeSoon();
    });
    this.#watchLead();
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    for (const sender of this.#senders) {
      const stopping = sender.stop().finally(() => this.#stopping.delete(stopping));
      this.#stopping.add(stopping);
    }
    this.#senders = [];
    this.#feed?.stop();
    this.#feed = undefined;
  }

  report(): readonly PartReport[] {
    return this.#senders.map((sender) => sender.report());
  }

  lags(): readonly BusLag[] {
    return this.#senders.map((sender) => sender.lag());
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#forget?.();
    this.stepDown();
    await Promise.all(this.#stopping);
  }

  #watchLead(): void {
    const { decider, leads, log } = this.#parts;
    // Only when the former senders of this process have stopped: two of them would send in no order.
    if (leads() && this.#senders.length === 0 && this.#stopping.size === 0) {
      const feed = (this.#feed ??= new EventFeed(decider.cache));
      this.#senders = this.#buses.map((bus) => new BusSender({ ...bus, decider, feed, log }));
    }
    this.#timer = decider.clock.setTimer(lookMs, () => this.#watchLead(), { background: true });
  }

  /** Once for all that is committed together. */
  #wakeSoon(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => {
      this.#isWoken = false;
      for (const sender of this.#senders) sender.wake();
    });
  }
}
