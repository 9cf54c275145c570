// Topology: which hosts share a rack, a zone, or another value of a host label. `host` is the topology of single hosts
// and needs none of this.

import type { Host } from '../../../api/resources/host.ts';
import type { Slot } from '../engine/slot.ts';

/** Hosts by the value of one of their labels. */
export interface Topology {
  /** By slot: the number of the host's domain; -1 for hosts without the label. */
  readonly domainOf: number[];
  /** By domain: the label's value. */
  readonly values: string[];
  /** Domains that have hosts. */
  readonly numberByValue: Map<string, number>;
  /** By domain: its hosts. */
  readonly slots: Set<Slot>[];
  /** Numbers of domains without hosts, reused by new domains. */
  readonly free: number[];
}

/** By slot. */
type Hosts = readonly (Host | undefined)[];

export class Topologies {
  readonly #hosts: Hosts;
  /** A number that changes whenever a host changes its domain. */
  version = 0;
  readonly #byKey = new Map<string, Topology>();

  constructor(hosts: Hosts) {
    this.#hosts = hosts;
  }

  /** The topology of a label key, built on demand. */
  of(key: string): Topology {
    let topology = this.#byKey.get(key);
    if (!topology) {
      this.#byKey.set(key, (topology = { domainOf: [], values: [], numberByValue: new Map(), slots: [], free: [] }));
      for (let slot = 0; slot < this.#hosts.length; slot++) place(topology, key, slot, this.#hosts);
    }
    return topology;
  }

  /** Applies the current labels of the host. Returns whether its domain changed. */
  update(slot: Slot): boolean {
    let moved = false;
    for (const [key, topology] of this.#byKey) moved = place(topology, key, slot, this.#hosts) || moved;
    if (moved) this.version += 1;
    return moved;
  }
}

function place(topology: Topology, key: string, slot: Slot, hosts: Hosts): boolean {
  const labels = hosts[slot]?.metadata.labels ?? {};
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  const before = topology.domainOf[slot] ?? -1;
  if (before >= 0 && topology.values[before] === value) return false;
  if (before >= 0) leave(topology, slot, before);
  topology.domainOf[slot] = value === undefined ? -1 : enter(topology, slot, value);
  return before >= 0 || value !== undefined;
}

function enter(topology: Topology, slot: Slot, value: string): number {
  const { values, numberByValue, slots, free } = topology;
  let domain = numberByValue.get(value);
  if (domain === undefined) {
    domain = free.pop() ?? values.length;
    values[domain] = value;
    slots[domain] ??= new Set();
    numberByValue.set(value, domain);
  }
  slots[domain]?.add(slot);
  return domain;
}

function leave({ values, numberByValue, slots, free }: Topology, slot: Slot, domain: number): void {
  const hosts = slots[domain];
  hosts?.delete(slot);
  if (hosts?.size !== 0) return;
  numberByValue.delete(values[domain] ?? '');
  free.push(domain);
}
