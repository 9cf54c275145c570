// Whether events were deleted before a webhook was sent them: it was paused, or there was no leader, for longer than events are kept. What this
// process saw come is known; for what came before it, the age of the position and the number of events tell whether any can be gone.

import type { Decider } from '../../decide.ts';
import type { EventFeed, EventsRead } from '../event-feed.ts';

/** Events are deleted a few hundred at a time, so that their number is a little below the limit after it. */
const nearlyAll = 0.9;

interface Position {
  /** What was read up to here. */
  readonly after: number;
  /** Every event after it is later than this. */
  readonly readAtMs: number;
}

/** Up to which revision events may be missing; undefined: none is, or it cannot be said yet. */
export function lostUntil(
  { cache, clock, policy }: Decider,
  feed: EventFeed,
  { position: { after, readAtMs }, read }: { readonly position: Position; readonly read: EventsRead },
): number | undefined {
  if (feed.sawAllSince(after)) return read.deletedUntil;
  const first = read.events[0]?.metadata.revision;
  if (first === undefined && read.more) return undefined;
  const mayBeOld = clock.nowMs() - readAtMs >= policy.eventsKeptMs;
  const mayBeMany = cache.count('event') >= policy.eventsMax * nearlyAll;
  if (!mayBeOld && !mayBeMany) return undefined;
  // The oldest are deleted first: while one up to the position is kept, none after it is gone.
  if ((feed.oldestKept() ?? Number.POSITIVE_INFINITY) <= after) return undefined;
  return first === undefined ? cache.revision : first - 1;
}
