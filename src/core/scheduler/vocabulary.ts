// Vocabulary: which pools, drivers and owners of dedicated hosts exist, so that a misspelt name is reported at once.
// Updated on every change of a host.

import type { Host } from '../../api/resources/host.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';

export const vocabularyOf = defineView((snapshot) => new Vocabulary(snapshot));

export class Vocabulary implements View {
  hosts = 0;
  /** Number of hosts that come from inventories. */
  outside = 0;
  /** Number of hosts in each pool, with each driver, dedicated to each project. */
  readonly pools = new Map<string, number>();
  readonly drivers = new Map<string, number>();
  readonly owners = new Map<string, number>();

  constructor(snapshot: Snapshot) {
    for (const { value } of snapshot.list('host')) this.#count(value, 1);
  }

  apply({ kind, before, after }: RecordChange): void {
    if (kind !== 'host') return;
    const old = before?.kind === 'host' ? before : null;
    const host = after?.kind === 'host' ? after : null;
    if (
      old &&
      host &&
      old.spec === host.spec &&
      old.status.drivers === host.status.drivers &&
      !old.status.outside === !host.status.outside
    )
      return;
    if (old) this.#count(old, -1);
    if (host) this.#count(host, 1);
  }

  #count({ spec, status }: Host, sign: 1 | -1): void {
    this.hosts += sign;
    if (status.outside) this.outside += sign;
    if (spec.pool !== undefined) add(this.pools, spec.pool, sign);
    if (spec.dedicatedTo !== undefined) add(this.owners, spec.dedicatedTo, sign);
    for (const { name } of status.drivers) add(this.drivers, name, sign);
  }
}

function add(counts: Map<string, number>, word: string, sign: 1 | -1): void {
  const count = (counts.get(word) ?? 0) + sign;
  if (count === 0) counts.delete(word);
  else counts.set(word, count);
}
