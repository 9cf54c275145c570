// Invariant 6 as an agent sees it: the stream of its assignments begins with a sync and never goes back. Whenever it says "up to here",
// it has delivered what the host holds room for, as it was then or has become since.

import type { AssignmentEvent } from '../../api/agent-protocol.ts';
import type { CommittedState, Written } from '../history.ts';

export interface AssignmentCheckOptions {
  readonly state: CommittedState;
  readonly host: string;
}

/** Compares one stream of one host with the history. Returns a function that says what is wrong with the next event. */
export function createAssignmentCheck(options: AssignmentCheckOptions): (event: AssignmentEvent) => string | undefined {
  const check = new AssignmentCheck(options);
  return (event) => check.faultOf(event);
}

class AssignmentCheck {
  readonly #state: CommittedState;
  readonly #host: string;
  /** By key of an allocation: the revision of its newest assignment. */
  readonly #delivered = new Map<string, number>();
  readonly #dropped = new Set<string>();
  #events = 0;
  /** Everything up to this revision was delivered. */
  #complete = 0;

  constructor({ state, host }: AssignmentCheckOptions) {
    this.#state = state;
    this.#host = host;
  }

  faultOf(event: AssignmentEvent): string | undefined {
    this.#events += 1;
    const inPlace = (this.#events === 1) === (event.type === 'sync');
    const fault = inPlace ? this.#takeIn(event) : 'it does not begin with its only sync';
    return fault && `of the assignments of ${this.#host}, ${fault} (${event.type} at ${event.revision})`;
  }

  #takeIn(event: AssignmentEvent): string | undefined {
    switch (event.type) {
      case 'sync':
        return this.#sync(event);
      case 'put':
        return this.#put(keyOf(event.assignment), event.assignment);
      case 'put-volume':
        return this.#put(keyOfVolume(event.volume), event.volume);
      case 'drop':
        return this.#drop(keyOf(event));
      case 'drop-volume':
        return this.#drop(keyOfVolume(event));
      case 'ping':
        // The ping after the sync only says how new some of the sync was.
        return this.#events === 2 ? undefined : this.#missingAt(event.revision);
    }
  }

  #sync({ assignments, volumes = [], revision }: Extract<AssignmentEvent, { type: 'sync' }>): string | undefined {
    for (const assignment of assignments) {
      const fault = this.#put(keyOf(assignment), assignment);
      if (fault !== undefined) return fault;
    }
    for (const volume of volumes) {
      const fault = this.#put(keyOfVolume(volume), volume);
      if (fault !== undefined) return fault;
    }
    return this.#missingAt(revision);
  }

  #put(key: string, { revision }: { readonly revision: number }): string | undefined {
    const before = this.#delivered.get(key);
    if (this.#dropped.has(key)) return `${key} came again after it was dropped`;
    if (before !== undefined && revision < before) return `${key} went back from ${before}`;
    if (this.#state.written(key).every(({ deleted }) => deleted)) return `${key} was told, and never was`;
    this.#delivered.set(key, revision);
    return undefined;
  }

  #drop(key: string): string | undefined {
    if (!this.#delivered.delete(key)) return `${key} was dropped, and never told`;
    this.#dropped.add(key);
    return undefined;
  }

  /** An allocation that existed from that revision until now must have been delivered; one that did not exist must not. */
  #missingAt(at: number): string | undefined {
    if (at < this.#complete) return `it went back from ${this.#complete}`;
    this.#complete = at;
    for (const key of this.#state.allocatedOn(this.#host)) {
      const since = heldSince(this.#state.written(key));
      if (since <= at && !this.#delivered.has(key))
        return `${key} has held room since ${since}, and at ${at} is not told`;
    }
    for (const key of this.#delivered.keys()) {
      const gone = goneSince(this.#state.written(key));
      if (gone !== undefined && gone <= at) return `${key} was released at ${gone}, and at ${at} is still told`;
    }
    return undefined;
  }
}

/** Only a restore brings back an allocation that was released. */
function heldSince(writes: readonly Written[]): number {
  const released = writes.findLastIndex(({ deleted }) => deleted);
  return writes[released + 1]?.revision ?? 0;
}

function goneSince(writes: readonly Written[]): number | undefined {
  const last = writes.at(-1);
  return last?.deleted ? last.revision : undefined;
}

function keyOf({ instanceId, incarnation }: { readonly instanceId: string; readonly incarnation: number }): string {
  return `allocations/${instanceId}.${incarnation}`;
}

function keyOfVolume({ volumeId, life = 1 }: { readonly volumeId: string; readonly life?: number }): string {
  return `allocations/${volumeId}.${life}`;
}
