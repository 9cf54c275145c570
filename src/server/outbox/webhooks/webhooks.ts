// All webhooks. Only the leader sends; another process goes on from what is written down.

import type { Logger } from '../../../base/log.ts';
import type { Timer } from '../../../base/clock.ts';
import { prefixOf } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import type { PartReport } from '../../outside.ts';
import { EventFeed } from './event-feed.ts';
import type { Post } from './post.ts';
import { WebhookSender } from './webhook-sender.ts';

interface WebhooksParts {
  readonly decider: Decider;
  readonly post: Post;
  readonly leads: () => boolean;
  readonly log: Logger;
  readonly version: string;
}

/** How soon a new leader begins. */
const lookMs = 2_000;

export class Webhooks {
  readonly #parts: WebhooksParts;
  /** By key of the webhook. */
  readonly #senders = new Map<string, WebhookSender>();
  #feed: EventFeed | undefined;
  #led = false;
  #timer: Timer | undefined;
  #forget: (() => void) | undefined;
  #isWoken = false;

  constructor(parts: WebhooksParts) {
    this.#parts = parts;
  }

  start(): void {
    const [webhooks, events, secrets] = [prefixOf('webhook'), prefixOf('event'), prefixOf('secretValues')];
    this.#forget = this.#parts.decider.cache.onCommitted((key) => {
      if (!this.#led) return;
      if (key.startsWith(webhooks)) this.#follow(key);
      else if (this.#senders.size > 0 && (key.startsWith(events) || key.startsWith(secrets))) this.#wakeSoon();
    });
    this.#watchLead();
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#led = false;
    for (const sender of this.#senders.values()) void sender.stop();
    this.#senders.clear();
    this.#feed?.stop();
    this.#feed = undefined;
  }

  report(): readonly PartReport[] {
    if (this.#senders.size === 0) return [];
    return [{ name: 'webhooks', ok: true, message: `events are sent to ${this.#senders.size} receivers` }];
  }

  async stop(): Promise<void> {
    this.#led = false;
    this.#timer?.cancel();
    this.#forget?.();
    await Promise.all([...this.#senders.values()].map((sender) => sender.stop()));
    this.#senders.clear();
    this.#feed?.stop();
  }

  #watchLead(): void {
    const { decider, leads } = this.#parts;
    const led = leads();
    if (led && !this.#led) {
      this.#led = true;
      for (const { key } of decider.cache.listCommitted('webhook')) this.#follow(key);
    }
    this.#led = led;
    this.#timer = decider.clock.setTimer(lookMs, () => this.#watchLead(), { background: true });
  }

  #follow(key: string): void {
    const entry = this.#parts.decider.cache.committed('webhook', key);
    const sender = this.#senders.get(key);
    if (sender && sender.id !== entry?.value.metadata.id) {
      this.#senders.delete(key);
      void sender.stop();
    }
    if (entry && !this.#senders.has(key)) {
      const feed = (this.#feed ??= new EventFeed(this.#parts.decider.cache));
      this.#senders.set(key, new WebhookSender(entry, { ...this.#parts, feed }));
    }
    this.#wakeSoon();
  }

  /** Once for all that is committed together. */
  #wakeSoon(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => {
      this.#isWoken = false;
      if (this.#led) for (const sender of this.#senders.values()) sender.wake();
    });
  }
}
