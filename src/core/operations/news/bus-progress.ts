// How far an event bus has come. It only grows: a former leader that hears late what the bus acknowledged takes nothing back.

import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { BusProgress } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

export function advanceBus(snapshot: Snapshot, progress: BusProgress): { readonly plan: Plan } {
  const key = keys.busProgress(progress.name);
  const known = snapshot.get('busProgress', key);
  if (known !== undefined && known.value.revision >= progress.revision) return { plan: emptyPlan };
  return { plan: { changes: [{ key, ifRevision: known?.revision ?? 0, value: progress }] } };
}
