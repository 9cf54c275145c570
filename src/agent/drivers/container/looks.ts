// Looks at something on request, one look at a time. A request during a look leads to another look after it, so that the
// answer is never older than the request.

import type { Clock, Timer } from '../../../base/clock.ts';

export interface LooksOptions<State> {
  readonly clock: Clock;
  readonly look: () => Promise<State>;
  /** Aborted: no further looks. */
  readonly over: AbortSignal;
  /** A look that `soon` started has failed; another follows after `retryMs`. */
  readonly onFailure: (error: unknown) => void;
  readonly retryMs: number;
}

export class Looks<State> {
  readonly #options: LooksOptions<State>;
  #looking: Promise<State> | undefined;
  #again = false;
  #retry: Timer | undefined;

  constructor(options: LooksOptions<State>) {
    this.#options = options;
  }

  now(): Promise<State> {
    this.#again = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Looks, and repeats it after a failure. */
  soon(): void {
    const { clock, over, retryMs, onFailure } = this.#options;
    if (over.aborted) return;
    this.now().catch((error: unknown) => {
      onFailure(error);
      this.#retry?.cancel(); // several callers may have waited for this one look
      this.#retry = clock.setTimer(retryMs, () => this.soon(), { background: true });
    });
  }

  async #look(): Promise<State> {
    for (;;) {
      this.#again = false;
      const state = await this.#options.look();
      if (!this.#again || this.#options.over.aborted) return state;
    }
  }
}
