// A limit on how much runs at the same time. Who waits is served in order.

export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#free = max;
  }

  /** Whether the next one waits. */
  get full(): boolean {
    return this.#free <= 0;
  }

  /** Resolves with what gives the slot back, to be called once. `atOnce`: for what runs already: over the limit it counts too. */
  async take(signal: AbortSignal, { atOnce = false } = {}): Promise<() => void> {
    if (this.full && !atOnce) await this.#turn(signal);
    else this.#free -= 1;
    return () => {
      this.#free += 1;
      this.#serve();
    };
  }

  /** The slot passes to the one who waits, so that no other takes it before. */
  #serve(): void {
    const next = this.full ? undefined : this.#waiting.shift();
    if (next === undefined) return;
    this.#free -= 1;
    next();
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const serve = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        const at = this.#waiting.indexOf(serve);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(new Error('it was stopped while it waited'));
      };
      if (signal.aborted) return leave();
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(serve);
    });
  }
}
