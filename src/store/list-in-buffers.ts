// The result of a list whose values are views of a few large buffers that are not used for anything else.

import { giveBack } from '../base/give-back.ts';
import type { Entry, Listed, Revision } from './store.ts';

export class ListInBuffers implements Listed {
  readonly entries: Entry[];
  readonly revision: Revision;
  readonly #buffers: readonly Uint8Array[];

  constructor(entries: Entry[], revision: Revision, buffers: readonly Uint8Array[]) {
    this.entries = entries;
    this.revision = revision;
    this.#buffers = buffers;
  }

  release(): void {
    for (const buffer of this.#buffers) giveBack(buffer);
  }
}
