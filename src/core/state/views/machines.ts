// Hosts by machine, for hosts that share measured amounts. Nearly always there is one host per machine.

import type { Host } from '../../../api/resources/host.ts';
import { KeysByGroup } from '../few-keys.ts';
import { defineView, type Entry, type RecordChange, type Snapshot, type View } from '../snapshot.ts';

export const machinesOf = defineView((snapshot) => new Machines(snapshot));

class Machines implements View {
  readonly #keys = new KeysByGroup();

  constructor(snapshot: Snapshot) {
    for (const { key, value } of snapshot.list('host')) this.#change(key, null, value);
  }

  /** Keys of the hosts on this machine. */
  of(machineId: string): readonly string[] {
    return this.#keys.of(machineId);
  }

  apply({ key, before, after }: RecordChange): void {
    this.#change(key, before?.kind === 'host' ? before : null, after?.kind === 'host' ? after : null);
  }

  #change(key: string, before: Host | null, after: Host | null): void {
    const old = before ? machineOf(before) : undefined;
    const now = after ? machineOf(after) : undefined;
    if (old === now) return;
    if (old !== undefined) this.#keys.delete(old, key);
    if (now !== undefined) this.#keys.add(now, key);
  }
}

/** The machine whose resources the host shares; undefined when its agent does not report which amounts it measured. */
function machineOf({ status }: Host): string | undefined {
  return status.measured === undefined ? undefined : status.machineId;
}

/** The other hosts on its machine, in no order. */
export function besideHost(snapshot: Snapshot, host: Host): readonly Entry<Host>[] {
  const machineId = machineOf(host);
  if (machineId === undefined) return [];
  const { name } = host.metadata;
  return machinesOf(snapshot)
    .of(machineId)
    .flatMap((key) => {
      const entry = snapshot.get('host', key);
      return entry === undefined || entry.value.metadata.name === name ? [] : [entry];
    });
}
