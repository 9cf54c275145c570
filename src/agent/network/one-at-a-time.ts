// Runs one action at a time. All calls that come during a run share the one run that follows it.

export class OneAtATime {
  readonly #act: () => Promise<void>;
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #latest: Promise<unknown> = Promise.resolve();

  constructor(act: () => Promise<void>) {
    this.#act = act;
  }

  /** Resolves after a run that began after the call. */
  run(): Promise<void> {
    const run = this.#current === undefined ? this.#start() : this.#startAfter(this.#current);
    this.#latest = run.catch(() => {}); // the caller handles the error
    return run;
  }

  /** Resolves when all runs that were asked for have ended. Never rejects. */
  async quiet(): Promise<void> {
    await this.#latest;
  }

  #start(): Promise<void> {
    this.#current = this.#act().finally(() => {
      this.#current = undefined;
    });
    return this.#current;
  }

  #startAfter(current: Promise<void>): Promise<void> {
    this.#next ??= current
      .catch(() => {}) // the callers of the current run handle the error
      .then(() => {
        this.#next = undefined;
        return this.#start();
      });
    return this.#next;
  }
}
