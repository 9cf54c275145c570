// Closing: what a process has opened, to be closed in reverse order.

export class Closing {
  readonly #steps: (() => unknown)[] = [];

  add(step: () => unknown): void {
    this.#steps.push(step);
  }

  /** The last added first, each after the one before has ended. */
  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) await step();
  }
}
