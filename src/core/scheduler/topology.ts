// Topology: which hosts share a rack, a zone, or whatever a label of hosts names. `host` is the topology of single hosts and needs none
// of this.

import type { Host } from '../../api/resources/host.ts';
import type { Slot } from './slot.ts';

/** Hosts by the value of one of their labels. */
export interface Topology {
  /** By slot: the number of the host's domain; -1 for hosts without the label. */
  readonly domainOf: number[];
  /** By domain: the label's value. */
  readonly values: string[];
  readonly numberByValue: Map<string, number>;
  /** By domain: its hosts. */
  readonly slots: Set<Slot>[];
}

/** By slot. */
type Hosts = readonly (Host | undefined)[];

export class Topologies {
  readonly #hosts: Hosts;
  readonly #byKey = new Map<string, Topology>();

  constructor(hosts: Hosts) {
    this.#hosts = hosts;
  }

  /** The topology of a label key, made when first asked for. */
  of(key: string): Topology {
    let topology = this.#byKey.get(key);
    if (!topology) {
      this.#byKey.set(key, (topology = { domainOf: [], values: [], numberByValue: new Map(), slots: [] }));
      for (let slot = 0; slot < this.#hosts.length; slot++) place(topology, key, slot, this.#hosts);
    }
    return topology;
  }

  /** The host's labels may have changed. Answers whether it is in another domain now. */
  update(slot: Slot): boolean {
    let moved = false;
    for (const [key, topology] of this.#byKey) moved = place(topology, key, slot, this.#hosts) || moved;
    return moved;
  }
}

function place(topology: Topology, key: string, slot: Slot, hosts: Hosts): boolean {
  const labels = hosts[slot]?.metadata.labels ?? {};
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  const before = topology.domainOf[slot] ?? -1;
  let domain = value === undefined ? -1 : (topology.numberByValue.get(value) ?? -1);
  if (value !== undefined && domain < 0) {
    domain = topology.values.push(value) - 1;
    topology.numberByValue.set(value, domain);
    topology.slots.push(new Set());
  }
  topology.domainOf[slot] = domain;
  if (before === domain) return false;
  topology.slots[before]?.delete(slot);
  topology.slots[domain]?.add(slot);
  return true;
}
