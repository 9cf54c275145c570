// The abort signals of operations under way or in line, by instance, so that a later operation can end them.

export interface OwnSignal {
  readonly signal: AbortSignal;
  /** The operation is over; its signal is aborted no more. */
  forget(): void;
}

export class AbortSignals {
  readonly #byInstance = new Map<string, Set<AbortController>>();

  register(instanceId: string): OwnSignal {
    const controller = new AbortController();
    const ofInstance = this.#byInstance.get(instanceId) ?? new Set();
    this.#byInstance.set(instanceId, ofInstance.add(controller));
    const forget = (): void => {
      ofInstance.delete(controller);
      if (ofInstance.size === 0 && this.#byInstance.get(instanceId) === ofInstance) this.#byInstance.delete(instanceId);
    };
    return { signal: controller.signal, forget };
  }

  abortAll(instanceId: string): void {
    for (const controller of this.#byInstance.get(instanceId) ?? []) controller.abort();
  }
}
