// Tasks: the pending ones, and those with an allocation, by host. Indexed so that no change needs a list of all tasks.

import type { Task } from '../../../api/resources/task.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../snapshot.ts';

export const tasksOf = defineView((snapshot) => new Tasks(snapshot));

class Tasks implements View {
  /** Keys of pending tasks. */
  readonly pending = new Set<string>();
  /** Keys of tasks with an allocation, by host. */
  readonly #byHost = new Map<string, Set<string>>();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('task')) this.#add(key, value);
  }

  placedOn(host: string): Iterable<string> {
    return this.#byHost.get(host) ?? [];
  }

  apply({ key, kind, before, after }: RecordChange): void {
    if (kind !== 'task') return;
    if (before?.kind === 'task') this.#remove(key, before);
    if (after?.kind === 'task') this.#add(key, after);
  }

  #add(key: string, { status }: Task): void {
    if (status.phase === 'Pending') this.pending.add(key);
    if (status.phase !== 'Placed' || status.host === undefined) return;
    const held = this.#byHost.get(status.host);
    if (held) held.add(key);
    else this.#byHost.set(status.host, new Set([key]));
  }

  #remove(key: string, { status }: Task): void {
    this.pending.delete(key);
    const held = this.#byHost.get(status.host ?? '');
    if (held?.delete(key) && held.size === 0) this.#byHost.delete(status.host ?? '');
  }
}
