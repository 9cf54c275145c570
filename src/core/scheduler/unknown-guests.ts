// Unknown guests on hosts, by the instance they belong to: guests of which the host's records say nothing.
// Kept by the fleet from the hosts' reports. After a restore these are the guests created after the backup.

import type { Host } from '../../api/resources/host.ts';
import type { Slot } from './engine/slot.ts';

export class UnknownGuests {
  /** By instance id and slot: the incarnations present. */
  readonly #byInstance = new Map<string, Map<Slot, readonly number[]>>();

  of(instanceId: string): ReadonlyMap<Slot, readonly number[]> | undefined {
    return this.#byInstance.get(instanceId);
  }

  apply(slot: Slot, before: Host | undefined, after: Host | undefined): void {
    const was = before?.status.unknownGuests ?? none;
    const is = after?.status.unknownGuests ?? none;
    if (was === is) return;
    for (const { instanceId } of was) {
      const slots = this.#byInstance.get(instanceId);
      if (slots?.delete(slot) && slots.size === 0) this.#byInstance.delete(instanceId);
    }
    for (const { instanceId, incarnation } of is) {
      const slots = this.#byInstance.get(instanceId) ?? new Map<Slot, readonly number[]>();
      this.#byInstance.set(instanceId, slots.set(slot, [...(slots.get(slot) ?? []), incarnation]));
    }
  }
}

const none: Host['status']['unknownGuests'] = [];
