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

export interface DeadLetterQueue {
  list(): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }>;
  show(id: string): Promise<DeadLetter>;
  retry(id: string): Promise<DeadLetter>;
  drop(id: string): Promise<DeadLetter>;
}

interface OutsidePart {
  report(): readonly PartReport[];
  readonly deadLetters?: DeadLetterQueue;
  lags?(): readonly BusLag[];
}

/** Parts are added while the process starts, after the routes that show them. */
export class Outside {
  readonly #parts: OutsidePart[] = [];

  add(part: OutsidePart): void {
    this.#parts.push(part);
  }

  reports(): readonly PartReport[] {
    return this.#parts.flatMap((part) => part.report());
  }

  lags(): readonly BusLag[] {
    return this.#parts.flatMap((part) => part.lags?.() ?? []);
  }

  /** Undefined: no broker is configured. */
  get deadLetters(): DeadLetterQueue | undefined {
    return this.#parts.find(({ deadLetters }) => deadLetters !== undefined)?.deadLetters;
  }
}
