// What is wrong with a machine that runs, from two sources: its disk, and what its hypervisor says of how it stands. The disk says more, so it comes first.

import type { Trouble } from './hypervisor.ts';

export class Troubles {
  readonly #listeners: ((trouble: Trouble | undefined) => void)[] = [];
  #disk: Trouble | undefined;
  #standing: Trouble | undefined;
  #told: Trouble | undefined;

  disk(trouble: Trouble | undefined): void {
    this.#disk = trouble;
    this.#tell();
  }

  standing(trouble: Trouble | undefined): void {
    this.#standing = trouble;
    this.#tell();
  }

  /** Called at once when anything is wrong, and at each change. */
  listen(listener: (trouble: Trouble | undefined) => void): void {
    this.#listeners.push(listener);
    if (this.#told !== undefined) listener(this.#told);
  }

  #tell(): void {
    const next = this.#disk ?? this.#standing;
    if (next?.code === this.#told?.code && next?.message === this.#told?.message) return;
    this.#told = next;
    for (const listener of this.#listeners) listener(next);
  }
}
