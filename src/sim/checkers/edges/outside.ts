// Invariant 1, of hosts of other systems: what tasks hold there and what others use is never more than there is, although the reported usage
// does not know of fresh holds. Nothing of ours but tasks is there; a host stays while room is held on it, and at rest the list is what there is.

import type { Host } from '../../../api/resources/host.ts';
import type { Commit, RecordEvent } from '../../history.ts';
import type { Checker, Facts, NodeFacts } from '../checker.ts';

export const outsideChecker = (facts: Facts): Checker =>
  facts.nodes === undefined ? { invariant: 1 } : new OutsideChecker(facts, facts.nodes);

const classes = ['VCPU', 'MEMORY_MB'] as const;

class OutsideChecker implements Checker {
  readonly invariant = 1;
  readonly #facts: Facts;
  readonly #nodes: NodeFacts;

  constructor(facts: Facts, nodes: NodeFacts) {
    this.#facts = facts;
    this.#nodes = nodes;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const event of events) {
      const fault = this.#faultOf(event);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state } = this.#facts;
    const names = state.get('inventory', 'inventories/nodes') ? this.#nodes.names : [];
    for (const name of names) {
      const host = state.get('host', `hosts/${name}`);
      if (host?.status.outside === undefined) yield `${name} is in the inventory, and is no host`;
      else if (host.status.outside.missed !== undefined) yield `${name} is in the inventory, and counts as missing`;
      else yield* this.#wrongAmounts(name, host);
    }
    for (const { metadata, status } of state.list('host'))
      if (status.outside && !names.includes(metadata.name)) yield `${metadata.name} is a host, and in no inventory`;
  }

  #faultOf({ before, after }: RecordEvent): string | undefined {
    const { state } = this.#facts;
    if (before?.kind === 'host' && after === null && before.status.outside) {
      const { name } = before.metadata;
      for (const { host, consumer } of state.list('allocation'))
        if (host === name) return `host ${name} was removed while ${consumer.id} held room there`;
    }
    if (after?.kind === 'instance' && this.#isOutside(after.status.host))
      return `instance ${after.metadata.name} was bound to ${after.status.host}, a host of another system`;
    if (after?.kind !== 'allocation' || !this.#isOutside(after.host)) return undefined;
    const { consumer, host } = after;
    // A client of the Placement API holds room there as a task does: nothing of ours starts.
    return consumer.kind === 'task' || consumer.kind === 'outside'
      ? this.#faultOfRoom(host)
      : `${consumer.kind ?? 'instance'} ${consumer.id} holds room on ${host}`;
  }

  #isOutside(host: string | undefined): boolean {
    return host !== undefined && this.#facts.state.get('host', `hosts/${host}`)?.status.outside !== undefined;
  }

  #faultOfRoom(name: string): string | undefined {
    const node = this.#nodes.node(name);
    if (node === undefined) return undefined;
    for (const of of classes) {
      const held = this.#heldOn(name, of);
      const foreign = this.#nodes.isExact ? node.foreign[of] : 0;
      if (held + foreign > node.capacity[of])
        return `tasks hold ${held} ${of} on ${name}, others use ${foreign}, and it has ${node.capacity[of]}`;
    }
    return undefined;
  }

  #heldOn(name: string, of: string): number {
    let sum = 0;
    for (const { host, amounts } of this.#facts.state.list('allocation'))
      if (host === name) for (const each of Object.values(amounts)) sum += each[of] ?? 0;
    return sum;
  }

  /** When nothing is held there, what is reserved is what others use. */
  *#wrongAmounts(name: string, { status }: Host): Iterable<string> {
    const node = this.#nodes.node(name);
    for (const of of classes) {
      if (node === undefined || this.#heldOn(name, of) > 0) continue;
      const reserved = status.reserved?.[of] ?? 0;
      if (reserved !== node.foreign[of])
        yield `${reserved} ${of} of ${name} are reserved, and others use ${node.foreign[of]}`;
    }
  }
}
