// Consumers: by id, the key of the instance and those of its allocations. Nearly all have one allocation, which is
// stored without an array.

import { type FewKeys, listOf, withKey, withoutKey } from './few-keys.ts';

interface Consumer {
  instance: string | undefined;
  allocations: FewKeys;
}

export class Consumers {
  readonly #byId = new Map<string, Consumer>();

  instanceKey(id: string): string | undefined {
    return this.#byId.get(id)?.instance;
  }

  allocationKeys(id: string): readonly string[] {
    return listOf(this.#byId.get(id)?.allocations);
  }

  setInstance(id: string, key: string): void {
    this.#of(id).instance = key;
  }

  /** Unless another instance has the id by now. */
  deleteInstance(id: string, key: string): void {
    const consumer = this.#byId.get(id);
    if (consumer?.instance !== key) return;
    consumer.instance = undefined;
    this.#forgetEmpty(id, consumer);
  }

  /** The key must be new. */
  addAllocation(id: string, key: string): void {
    const consumer = this.#of(id);
    consumer.allocations = withKey(consumer.allocations, key);
  }

  deleteAllocation(id: string, key: string): void {
    const consumer = this.#byId.get(id);
    if (!consumer) return;
    consumer.allocations = withoutKey(consumer.allocations, key);
    this.#forgetEmpty(id, consumer);
  }

  #of(id: string): Consumer {
    let consumer = this.#byId.get(id);
    if (!consumer) this.#byId.set(id, (consumer = { instance: undefined, allocations: undefined }));
    return consumer;
  }

  #forgetEmpty(id: string, { instance, allocations }: Consumer): void {
    if (instance === undefined && allocations === undefined) this.#byId.delete(id);
  }
}
