// Change log: which hosts changed, in order, so that each ranking can mend itself only there, and only when it is used again.

import type { Slot } from './slot.ts';

/** Whoever is further behind than this builds anew. 65,536 × 4 bytes. */
const ringLength = 1 << 16;

export class ChangeLog {
  /** How many changes there have been. */
  end = 0;
  readonly #ring = new Int32Array(ringLength);

  /** `record`: the host's record changed, not only what is free there. */
  push(slot: Slot, record: boolean): void {
    this.#ring[this.end % ringLength] = slot * 2 + Number(record);
    this.end += 1;
  }

  /** Whether all changes after `start` are still known. */
  reaches(start: number): boolean {
    return this.end - start <= ringLength;
  }

  slotAt(index: number): Slot {
    return (this.#ring[index % ringLength] ?? 0) >> 1;
  }

  isRecordAt(index: number): boolean {
    return ((this.#ring[index % ringLength] ?? 0) & 1) === 1;
  }
}
