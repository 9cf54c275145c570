// What an event bus is sent in place of events that were deleted before it took them.

import type { CloudEvent } from './cloud-event.ts';

/** The same id each time that the gap is told. */
export function gapEvent(
  { after, until }: { readonly after: number; readonly until: number },
  { fleet, nowMs }: { readonly fleet: string; readonly nowMs: number },
): CloudEvent {
  return {
    specversion: '1.0',
    id: `gap_${after}_${until}`,
    source: `urn:berth:${fleet}`,
    type: 'berth.v1.fleet.Gap',
    subject: 'fleet',
    time: new Date(nowMs).toISOString(),
    datacontenttype: 'application/json',
    sequence: String(until),
    partitionkey: fleet,
    data: {
      subject: { kind: 'fleet', id: fleet, name: 'fleet', project: '' },
      level: 'Warning',
      reason: 'Gap',
      message: `events after revision ${after}, up to ${until}, may be missing: they were deleted before they were sent; read the resources again`,
    },
  };
}
