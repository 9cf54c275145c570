// Snapshot: what a decision reads. The live cache is one; nothing can change under a decision because it never awaits.

import type { Allocation, AnyRecord, Provider, RecordByKind, RecordKind } from './records.ts';

export interface Entry<T extends AnyRecord = AnyRecord> {
  readonly key: string;
  readonly value: T;
  /** As a Plan's condition wants it. */
  readonly revision: number;
}

export interface Snapshot {
  get<K extends RecordKind>(kind: K, key: string): Entry<RecordByKind[K]> | undefined;
  list<K extends RecordKind>(kind: K): Iterable<Entry<RecordByKind[K]>>;
  count(kind: RecordKind): number;
  instanceById(id: string): Entry<RecordByKind['instance']> | undefined;
  providersOfHost(host: string): readonly Entry<Provider>[];
  allocationsOnHost(host: string): Iterable<Entry<Allocation>>;
  allocationsOfConsumer(id: string): readonly Entry<Allocation>[];
  /** Keys of the instances that wait for a host. */
  pendingInstanceKeys(): Iterable<string>;
  /** How much of each resource class of a provider is held, or may be: what is released counts until that is durable. */
  usedBy(providerId: string): ReadonlyMap<string, number>;
  /** The image with this name or alias. */
  imageByName(name: string): Entry<RecordByKind['image']> | undefined;
  /** When this process first heard of the host's present lease, on its own clock (never the writer's). */
  leaseSeenAtMs(host: string): number | undefined;
}
