// A few places, each with something of its own: what wants one waits in order until one is free.

interface Slot<T> {
  readonly value: T;
}

export class Slots<T> {
  readonly #free: Slot<T>[];
  readonly #waiting: ((slot: Slot<T>) => void)[] = [];

  constructor(values: readonly T[]) {
    this.#free = values.map((value) => ({ value }));
  }

  /** Throws the signal's reason when it aborts before there is a place. */
  async run<Result>(signal: AbortSignal, work: (value: T) => Promise<Result>): Promise<Result> {
    signal.throwIfAborted();
    const slot = this.#free.shift() ?? (await this.#wait(signal));
    try {
      return await work(slot.value);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free.push(slot);
      else next(slot);
    }
  }

  #wait(signal: AbortSignal): Promise<Slot<T>> {
    return new Promise((resolve, reject) => {
      const take = (slot: Slot<T>): void => {
        signal.removeEventListener('abort', giveUp);
        resolve(slot);
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(take);
    });
  }
}
