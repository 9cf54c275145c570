// The events of the whole fleet, to every event bus that is configured. Only the leader sends; another goes on from what is written down.

import type { Logger } from '../../../base/log.ts';
import { prefixOf } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import type { BusLag, PartReport } from '../../outside.ts';
import { EventFeed } from '../event-feed.ts';
import type { OpenBus } from './bus.ts';
import { BusSender } from './bus-sender.ts';

export interface EventBusParts {
  readonly decider: Decider;
  readonly log: Logger;
}

export class EventBus {
  readonly #parts: EventBusParts;
  readonly #buses: readonly { readonly name: string; readonly open: OpenBus }[];
  #senders: readonly BusSender[] = [];
  readonly #stopping = new Set<Promise<void>>();
  #feed: EventFeed | undefined;
  #forget: (() => void) | undefined;
  #leads = false;
  #isWoken = false;
  #isStopped = false;

  constructor(buses: readonly { readonly name: string; readonly open: OpenBus }[], parts: EventBusParts) {
    this.#buses = buses;
    this.#parts = parts;
  }

  /** This process leads from now on. */
  lead(): void {
    if (this.#isStopped) return;
    this.#leads = true;
    this.#begin();
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#leads = false;
    this.#forget?.();
    this.#forget = undefined;
    this.#feed?.stop();
    this.#feed = undefined;
    for (const sender of this.#senders) {
      const stopping = sender.stop().finally(() => {
        this.#stopping.delete(stopping);
        this.#begin();
      });
      this.#stopping.add(stopping);
    }
    this.#senders = [];
  }

  report(): readonly PartReport[] {
    return this.#senders.map((sender) => sender.report());
  }

  lags(): readonly BusLag[] {
    return this.#senders.map((sender) => sender.lag());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.stepDown();
    await Promise.all(this.#stopping);
  }

  /** Only when the former senders of this process have stopped: two of them would send in no order. */
  #begin(): void {
    if (!this.#leads || this.#senders.length > 0 || this.#stopping.size > 0) return;
    const { decider, log } = this.#parts;
    const events = prefixOf('event');
    const feed = new EventFeed(decider.cache);
    this.#feed = feed;
    this.#forget = decider.cache.onCommitted((key) => {
      if (key.startsWith(events)) this.#wakeSoon();
    });
    this.#senders = this.#buses.map((bus) => new BusSender({ ...bus, decider, feed, log }));
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
