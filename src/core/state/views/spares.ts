// Spares by what holds their room, so that no change of a task or an instance needs a list of all spares.

import type { Spare } from '../../../api/resources/spare.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../snapshot.ts';

export const sparesOf = defineView((snapshot) => new Spares(snapshot));

class Spares implements View {
  /** Keys, by id of the task that holds the room, or of the instance that the spare is. */
  readonly #byHolder = new Map<string, string>();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('spare')) this.#byHolder.set(holderOf(value), key);
  }

  /** Key of the spare whose room this task or instance holds. */
  heldBy(id: string): string | undefined {
    return this.#byHolder.get(id);
  }

  apply({ kind, key, before, after }: RecordChange): void {
    if (kind !== 'spare') return;
    if (before?.kind === 'spare') this.#byHolder.delete(holderOf(before));
    if (after?.kind === 'spare') this.#byHolder.set(holderOf(after), key);
  }
}

function holderOf({ status }: Spare): string {
  return status.task ?? status.instance ?? '';
}
