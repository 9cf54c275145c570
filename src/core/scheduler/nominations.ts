// Nominations: which hosts have room reserved for which pending instances, from the status of the instances. Kept by
// the fleet, so that a rule can enforce the reservations.

import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { requestOf } from './request.ts';

export interface Nominee {
  readonly key: string;
  readonly id: string;
  readonly name: string;
  readonly priority: number;
  /** All amounts that the instance asks for. */
  readonly assigned: Amounts;
}

export class Nominations {
  readonly #snapshot: Snapshot;
  readonly #byHost = new Map<string, Map<string, Nominee>>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    for (const { key, value } of snapshot.list('instance')) this.apply(key, null, value);
  }

  /** Number of hosts with a reservation. */
  get size(): number {
    return this.#byHost.size;
  }

  has(host: string): boolean {
    return this.#byHost.has(host);
  }

  on(host: string): Iterable<Nominee> {
    return this.#byHost.get(host)?.values() ?? nobody;
  }

  apply(key: string, before: Instance | null, after: Instance | null): void {
    const was = before?.status.nomination?.host;
    const is = after?.status.nomination?.host;
    if (was === undefined && is === undefined) return;
    if (was !== undefined) {
      const nominees = this.#byHost.get(was);
      if (nominees?.delete(key) && nominees.size === 0) this.#byHost.delete(was);
    }
    if (is === undefined || !after || after.metadata.deletionRequestedAtMs !== undefined) return;
    let nominees = this.#byHost.get(is);
    if (!nominees) this.#byHost.set(is, (nominees = new Map()));
    const { metadata, spec } = after;
    const { assigned } = requestOf(this.#snapshot, after);
    nominees.set(key, { key, id: metadata.id, name: metadata.name, priority: spec.priority ?? 0, assigned });
  }
}

const nobody: readonly Nominee[] = [];
