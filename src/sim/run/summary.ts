// The change of one record in a line of the trace.

import type { RecordEvent } from '../history.ts';

/** Nothing for records of events: they say what other changes say. */
export function summaryOf({ key, before, after }: RecordEvent): string | [] {
  if (key.startsWith('events/')) return [];
  const what = before === null ? 'new' : after === null ? 'gone' : 'changed';
  if (after?.kind !== 'instance') return `${what} ${key}`;
  const { phase, host, incarnation, observedGeneration } = after.status;
  const why = after.status.conditions.map(({ type, reason }) => `${type}:${reason}`).join(' ');
  return `${what} ${key} ${after.metadata.id} ${phase} on ${host ?? '-'} inc ${incarnation} gen ${observedGeneration}/${after.metadata.generation} want ${after.spec.powerState} [${why}]`;
}
