// The instances of each workload and each warm pool, so that no change of one needs a list of all instances.

import type { Instance } from '../../../api/resources/instance.ts';
import { keys } from '../keys.ts';
import type { Plan } from '../plan.ts';
import type { AnyRecord } from '../records.ts';
import { defineView, type Entry, type RecordChange, type Snapshot, type View } from '../snapshot.ts';

/** Of the workload or warm pool with this id, those that leave included. */
export function instancesOf(snapshot: Snapshot, ownerId: string): readonly Entry<Instance>[] {
  return [...copiesOf(snapshot).keysOf(ownerId)].flatMap((key) => snapshot.get('instance', key) ?? []);
}

/**
 * Conditions of a Plan that creates an instance where another one is gone: if the removal fails, which is not committed yet, that one is
 * still there, and one too many would be created.
 */
export function uncommittedRemovals(snapshot: Snapshot, ownerId: string): NonNullable<Plan['conditions']> {
  return [...snapshot.goneUncommitted('instance')]
    .filter((instance) => ownerOf(instance) === ownerId)
    .map(({ metadata }) => ({ key: keys.instance(metadata.project, metadata.name), ifRevision: 0 }));
}

const copiesOf = defineView((snapshot) => new Copies(snapshot));

class Copies implements View {
  readonly #byOwner = new Map<string, Set<string>>();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('instance')) this.#add(ownerOf(value), key);
  }

  /** Keys of the instances of the workload or warm pool with this id. */
  keysOf(ownerId: string): ReadonlySet<string> {
    return this.#byOwner.get(ownerId) ?? none;
  }

  apply({ kind, key, before, after }: RecordChange): void {
    if (kind !== 'instance') return;
    const [was, is] = [ownerOf(before), ownerOf(after)];
    if (was === is) return;
    const known = this.#byOwner.get(was ?? '');
    if (known?.delete(key) && known.size === 0) this.#byOwner.delete(was ?? '');
    this.#add(is, key);
  }

  #add(owner: string | undefined, key: string): void {
    if (owner === undefined) return;
    const known = this.#byOwner.get(owner);
    if (known) known.add(key);
    else this.#byOwner.set(owner, new Set([key]));
  }
}

const none: ReadonlySet<string> = new Set();

function ownerOf(record: AnyRecord | null): string | undefined {
  return record?.kind === 'instance' ? (record.status.workload?.id ?? record.status.warmPool?.id) : undefined;
}
