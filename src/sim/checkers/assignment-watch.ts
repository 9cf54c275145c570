// Invariant 6 as an agent sees it: the stream of its assignments begins with a sync, never goes back, and whenever it says "up to here"
// what it has told is what the host holds room for, as it was then or has become since.

import type { AssignmentEvent } from '../../api/agent-protocol.ts';
import type { CommittedState, Written } from '../history.ts';

/** Holds one stream of one host to the history; each call says what is wrong with an event. */
export function createAssignmentCheck({
  state,
  host,
}: {
  readonly state: CommittedState;
  readonly host: string;
}): (event: AssignmentEvent) => string | undefined {
  /** Of each allocation's key, the revision of its newest assignment. */
  const told = new Map<string, number>();
  const dropped = new Set<string>();
  let events = 0;
  /** Up to here all is told. */
  let complete = 0;

  const put = (key: string, { revision }: { readonly revision: number }): string | undefined => {
    const before = told.get(key);
    if (dropped.has(key)) return `${key} came again after it was dropped`;
    if (before !== undefined && revision < before) return `${key} went back from ${before}`;
    if (state.written(key).every(({ deleted }) => deleted)) return `${key} was told, and never was`;
    told.set(key, revision);
    return undefined;
  };

  const drop = (key: string): string | undefined => {
    if (!told.delete(key)) return `${key} was dropped, and never told`;
    dropped.add(key);
    return undefined;
  };

  const takeIn = (event: AssignmentEvent): string | undefined => {
    switch (event.type) {
      case 'sync':
        for (const assignment of event.assignments) {
          const fault = put(keyOf(assignment), assignment);
          if (fault !== undefined) return fault;
        }
        for (const volume of event.volumes ?? []) {
          const fault = put(keyOfVolume(volume), volume);
          if (fault !== undefined) return fault;
        }
        return missingAt(event.revision);
      case 'put':
        return put(keyOf(event.assignment), event.assignment);
      case 'put-volume':
        return put(keyOfVolume(event.volume), event.volume);
      case 'drop':
        return drop(keyOf(event));
      case 'drop-volume':
        return drop(keyOfVolume(event));
      case 'ping':
        // The one behind the sync only says how new some of the sync was.
        return events === 2 ? undefined : missingAt(event.revision);
    }
  };

  /** What held room here from that revision to this day must have been told; what was free all that time must not. */
  const missingAt = (at: number): string | undefined => {
    if (at < complete) return `it went back from ${complete}`;
    complete = at;
    const held = state.allocatedOn(host);
    for (const key of held) {
      const since = heldSince(state.written(key));
      if (since <= at && !told.has(key)) return `${key} has held room since ${since}, and at ${at} is not told`;
    }
    for (const key of told.keys()) {
      const gone = goneSince(state.written(key));
      if (gone !== undefined && gone <= at) return `${key} was released at ${gone}, and at ${at} is still told`;
    }
    return undefined;
  };

  return (event) => {
    events += 1;
    const inPlace = (events === 1) === (event.type === 'sync');
    const fault = inPlace ? takeIn(event) : 'it does not begin with its only sync';
    return fault && `of the assignments of ${host}, ${fault} (${event.type} at ${event.revision})`;
  };
}

/** Only a restore brings back what was released. */
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

function keyOfVolume({ volumeId }: { readonly volumeId: string }): string {
  return `allocations/${volumeId}.1`;
}
