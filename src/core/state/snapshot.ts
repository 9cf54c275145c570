// Snapshot: what a decision reads. The live cache is one; nothing changes under a decision because it never awaits.

import type { Allocation, AnyRecord, Provider, RecordByKind, RecordKind } from './records.ts';

export interface Entry<T extends AnyRecord = AnyRecord> {
  readonly key: string;
  readonly value: T;
  /** For the conditions of a Plan. */
  readonly revision: number;
}

/** A change under a key, before and after, as decisions see it. */
export interface RecordChange {
  readonly key: string;
  readonly kind: RecordKind;
  readonly before: AnyRecord | null;
  readonly after: AnyRecord | null;
  /** Only the held room changed: decisions see the same record as before. */
  readonly onlyHeld?: true;
}

/**
 * Data derived from the records. It applies every change before other listeners, so that no decision sees stale data.
 */
export interface View {
  apply(change: RecordChange): void;
}

/** A view that is created once per snapshot, on demand, and updated from then on. */
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
  /** Oldest first for kinds that are `writtenOnce`; unordered for others. */
  list<K extends RecordKind>(kind: K): Iterable<Entry<RecordByKind[K]>>;
  count(kind: RecordKind): number;
  /** Records that are deleted by an uncommitted Plan of this process: they are back when it fails. */
  goneUncommitted<K extends RecordKind>(kind: K): Iterable<RecordByKind[K]>;
  instanceById(id: string): Entry<RecordByKind['instance']> | undefined;
  providersOfHost(host: string): readonly Entry<Provider>[];
  allocationsOnHost(host: string): Iterable<Entry<Allocation>>;
  /** As `allocationsOnHost`, plus uncommitted releases and claims: every form that may become final. */
  allocationsHeldOnHost(host: string): Iterable<Allocation>;
  /** The host ports that these hold, as `tcp/8080`; may repeat one. */
  portsHeldOnHost(host: string): Iterable<string>;
  /** The number of instances and tasks among these, without volumes. */
  heldOnHost(host: string): number;
  allocationsOfConsumer(id: string): readonly Entry<Allocation>[];
  /** Keys of the instances that wait for a host. */
  pendingInstanceKeys(): Iterable<string>;
  /**
   * How much of each resource class of a provider is held or may be: a release counts as held until it is durable.
   * Updated in place, once it is not empty.
   */
  usedBy(providerId: string): ReadonlyMap<string, number>;
  /** The image with this name or alias. */
  imageByName(name: string): Entry<RecordByKind['image']> | undefined;
  /**
   * When this process first saw the host's current lease, on its own clock (never the writer's), plus the silence that
   * does not count.
   */
  leaseSeenAtMs(host: string): number | undefined;
  /** The same for a host that has no lease: since when, as far as this process knows. */
  leaseLostAtMs(host: string): number;
  /** Passes every later change to `view`. */
  follow(view: View): void;
}
