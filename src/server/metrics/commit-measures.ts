// Counts commits and placements for the metrics.

import type { Clock } from '../../base/clock.ts';
import type { CommitMeasures } from '../commit.ts';
import type { Activity } from './activity.ts';

export function commitMeasures(activity: Activity, clock: Clock): CommitMeasures {
  return {
    begins(plans) {
      const startedMs = clock.monotonicMs();
      return (outcome) => activity.committed({ outcome, plans, tookMs: clock.monotonicMs() - startedMs });
    },
    placed(incarnation, afterMs) {
      activity.placed(incarnation === 1 ? Math.max(0, afterMs) : undefined);
    },
  };
}
