// Excused: the host whose agent lies, and the instances that were on it since. The invariants of guests are checked for all others.

import type { CommittedState, RecordEvent } from './history.ts';

export interface Excused {
  readonly host: (name: string) => boolean;
  readonly instance: (id: string) => boolean;
}

export function createExcused(state: CommittedState) {
  const hosts = new Set<string>();
  const instances = new Set<string>();
  return {
    host: (name: string): boolean => hosts.has(name),
    instance: (id: string): boolean => instances.has(id),
    /** From now on the checkers expect nothing of its guests. */
    distrust(host: string): void {
      if (hosts.has(host)) return;
      hosts.add(host);
      for (const allocation of state.list('allocation'))
        if (allocation.host === host) instances.add(allocation.consumer.id);
    },
    note(events: readonly RecordEvent[]): void {
      if (hosts.size === 0) return;
      for (const { after } of events)
        if (after?.kind === 'allocation' && hosts.has(after.host)) instances.add(after.consumer.id);
    },
  };
}
