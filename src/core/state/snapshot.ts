// Snapshot: what a decision reads. The live cache is one; nothing can change under a decision because it never awaits.

import type { Allocation, AnyRecord, Provider, RecordByKind, RecordKind } from './records.ts';

export interface Entry<T extends AnyRecord = AnyRecord> {
  readonly key: string;
  readonly value: T;
  /** As a Plan's condition wants it. */
  readonly revision: number;
}

/** What changed under a key, before and after, as decisions see it. */
export interface RecordChange {
  readonly key: string;
  readonly kind: RecordKind;
  readonly before: AnyRecord | null;
  readonly after: AnyRecord | null;
  /** Only room that was held came free, or was found to be held: decisions see the same record as before. */
  readonly onlyHeld?: true;
}

/** Something worked out from the records. It is told of every change before anyone else, so that no decision sees it late. */
export interface View {
  apply(change: RecordChange): void;
}

/** A view that is made once per snapshot, when it is first asked for, and from then on kept up to date. */
export function defineView<V extends View>(create: (snapshot: Snapshot) => V): (snapshot: Snapshot) => V {
  const made = new WeakMap<Snapshot, V>();
  return (snapshot) => {
    let view = made.get(snapshot);
    if (!view) {
      made.set(snapshot, (view = create(snapshot)));
      snapshot.follow(view);
    }
    return view;
  };
}

export interface Snapshot {
  get<K extends RecordKind>(kind: K, key: string): Entry<RecordByKind[K]> | undefined;
  /** The first made first, of kinds that are `writtenOnce`; of others nothing is said. */
  list<K extends RecordKind>(kind: K): Iterable<Entry<RecordByKind[K]>>;
  count(kind: RecordKind): number;
  instanceById(id: string): Entry<RecordByKind['instance']> | undefined;
  providersOfHost(host: string): readonly Entry<Provider>[];
  allocationsOnHost(host: string): Iterable<Entry<Allocation>>;
  /** As `allocationsOnHost`, and what is released there but not yet durably, or may yet be claimed: every form that may come true. */
  allocationsHeldOnHost(host: string): Iterable<Allocation>;
  /** The ports of the host that these hold, as `tcp/8080`; one may come twice. */
  portsHeldOnHost(host: string): Iterable<string>;
  /** How many instances and tasks these are of; disks of volumes are nobody's place. */
  heldOnHost(host: string): number;
  allocationsOfConsumer(id: string): readonly Entry<Allocation>[];
  /** Keys of the instances that wait for a host. */
  pendingInstanceKeys(): Iterable<string>;
  /** How much of each resource class of a provider is held, or may be: what is released counts until that is durable. Kept up to date, once it is not empty. */
  usedBy(providerId: string): ReadonlyMap<string, number>;
  /** The image with this name or alias. */
  imageByName(name: string): Entry<RecordByKind['image']> | undefined;
  /** When this process first heard of the host's present lease, on its own clock (never the writer's); what counts for nothing, as nobody could be heard then, is taken off. */
  leaseSeenAtMs(host: string): number | undefined;
  /** Tells `view` of every change from now on. */
  follow(view: View): void;
}
