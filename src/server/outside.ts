// What the control plane knows of the systems around it: their state for /readyz?verbose, and the dead letters of the
// broker. It never makes the control plane unready: that serves without them.

import type { DeadLetter } from '../api/dead-letter.ts';

/** What a part that talks to another system says of itself. */
export interface PartReport {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
}

/** What has yet to be sent to an event bus. */
export interface BusLag {
  readonly bus: string;
  readonly events: number;
  /** Of the oldest of them; 0: there is none. */
  readonly ageMs: number;
}

/** What became of an attempt: `failed` is tried again, `parked` was the last. */
export type WebhookOutcome = 'delivered' | 'failed' | 'parked';

/** What one receiver has yet to be sent. */
export interface WebhookBacklog {
  /** PROJECT/NAME. */
  readonly webhook: string;
  readonly waiting: number;
  readonly parked: number;
  /** Events that were not looked at yet, whether it wants them or not. */
  readonly unread: number;
  /** Of the oldest that waits; 0: there is none. */
  readonly ageMs: number;
}

export interface WebhookMeasures {
  readonly outcomes: Readonly<Record<WebhookOutcome, number>>;
  readonly backlogs: readonly WebhookBacklog[];
}

/** How an inventory is. */
export interface InventoryMeasure {
  readonly inventory: string;
  readonly hosts: number;
  /** The last list is applied. */
  readonly fresh: boolean;
  /** Since the last good list; absent: none came, or lists are pushed. */
  readonly ageMs?: number;
}

export interface DeadLetterQueue {
  list(): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }>;
  show(id: string): Promise<DeadLetter>;
  retry(id: string): Promise<DeadLetter>;
  drop(id: string): Promise<DeadLetter>;
}

/** A part of the server that talks to another system. */
export interface OutsidePart {
  report?(): readonly PartReport[];
  readonly deadLetters?: DeadLetterQueue;
  lags?(): readonly BusLag[];
  webhooks?(): WebhookMeasures;
  inventories?(): readonly InventoryMeasure[];
}

/** Parts are added while the process starts, after the routes that show them. */
export class Outside {
  readonly #parts: OutsidePart[] = [];

  add(part: OutsidePart): void {
    this.#parts.push(part);
  }

  reports(): readonly PartReport[] {
    return this.#parts.flatMap((part) => part.report?.() ?? []);
  }

  lags(): readonly BusLag[] {
    return this.#parts.flatMap((part) => part.lags?.() ?? []);
  }

  /** Undefined: this process sends none. */
  webhooks(): WebhookMeasures | undefined {
    return this.#parts.find((part) => part.webhooks !== undefined)?.webhooks?.();
  }

  inventories(): readonly InventoryMeasure[] {
    return this.#parts.flatMap((part) => part.inventories?.() ?? []);
  }

  /** Undefined: no broker is configured. */
  get deadLetters(): DeadLetterQueue | undefined {
    return this.#parts.find(({ deadLetters }) => deadLetters !== undefined)?.deadLetters;
  }
}
