// All webhooks. Only the leader sends; another process goes on from what is written down.

import type { Logger } from '../../../base/log.ts';
import { prefixOf } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import type { PartReport, WebhookMeasures, WebhookOutcome } from '../../outside.ts';
import { EventFeed } from '../event-feed.ts';
import type { Post } from './post.ts';
import { WebhookSender } from './webhook-sender.ts';

interface WebhooksParts {
  readonly decider: Decider;
  readonly post: Post;
  readonly log: Logger;
  readonly version: string;
}

export class Webhooks {
  readonly #parts: WebhooksParts;
  /** By key of the webhook. */
  readonly #senders = new Map<string, WebhookSender>();
  /** Since this process began. */
  readonly #outcomes: Record<WebhookOutcome, number> = { delivered: 0, failed: 0, parked: 0 };
  #feed: EventFeed | undefined;
  #forget: (() => void) | undefined;
  #isWoken = false;
  #isStopped = false;

  constructor(parts: WebhooksParts) {
    this.#parts = parts;
  }

  /** This process leads from now on. */
  lead(): void {
    if (this.#isStopped) return;
    const { cache } = this.#parts.decider;
    const [webhooks, events, secrets] = [prefixOf('webhook'), prefixOf('event'), prefixOf('secretValues')];
    this.#forget ??= cache.onCommitted((key) => {
      if (key.startsWith(webhooks)) this.#follow(key);
      else if (this.#senders.size > 0 && (key.startsWith(events) || key.startsWith(secrets))) this.#wakeSoon();
    });
    for (const { key } of cache.listCommitted('webhook')) this.#follow(key);
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    void this.#end();
  }

  report(): readonly PartReport[] {
    if (this.#senders.size === 0) return [];
    return [{ name: 'webhooks', ok: true, message: `events are sent to ${this.#senders.size} receivers` }];
  }

  webhooks(): WebhookMeasures {
    return { outcomes: this.#outcomes, backlogs: [...this.#senders.values()].map((sender) => sender.backlog()) };
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#end();
  }

  async #end(): Promise<void> {
    this.#forget?.();
    this.#forget = undefined;
    this.#feed?.stop();
    this.#feed = undefined;
    const senders = [...this.#senders.values()];
    this.#senders.clear();
    await Promise.all(senders.map((sender) => sender.stop()));
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
      const counted = (outcome: WebhookOutcome): void => void (this.#outcomes[outcome] += 1);
      this.#senders.set(key, new WebhookSender(entry, { ...this.#parts, feed, counted }));
    }
    this.#wakeSoon();
  }

  /** Once for all that is committed together. */
  #wakeSoon(): void {
    if (this.#isWoken) return;
    this.#isWoken = true;
    queueMicrotask(() => {
      this.#isWoken = false;
      for (const sender of this.#senders.values()) sender.wake();
    });
  }
}
