// A watch of events as Server-Sent Events (html.spec.whatwg.org, "Server-sent events"): each is a CloudEvent, and its id is the revision, with
// which a browser continues after a broken connection.

import { cloudEventOf } from '../../../api/news/cloud-event.ts';
import type { Event } from '../../../api/resources/event.ts';
import { isRecord } from '../../../base/is-record.ts';
import type { RouteRequest } from '../route.ts';

export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no', // a proxy that keeps events back
} as const;

export function wantsEventStream({ headers }: Pick<RouteRequest, 'headers'>): boolean {
  return (headers['accept'] ?? '').split(',').some((type) => type.trim().split(';')[0] === 'text/event-stream');
}

/** The revision that the client has seen last; undefined: it begins. */
export function lastEventId({ headers }: Pick<RouteRequest, 'headers'>): number | undefined {
  const text = headers['last-event-id'] ?? '';
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** `lines`: of a watch. An event that is deleted, because it is old, is no news. */
export async function* eventStreamOf(lines: AsyncIterable<unknown>, fleet: string): AsyncGenerator<Uint8Array> {
  yield text('retry: 2000\n\n');
  for await (const line of lines) {
    if (!isRecord(line)) continue;
    if (line['type'] === 'put' && isEvent(line['resource'])) {
      const event = cloudEventOf(line['resource'], fleet);
      yield text(`id: ${event.sequence}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    } else if (line['type'] === 'bookmark') yield text(`: nothing new up to ${String(line['revision'])}\n\n`);
  }
}

function isEvent(resource: unknown): resource is Event {
  return isRecord(resource) && resource['kind'] === 'event';
}

function text(part: string): Uint8Array {
  return Buffer.from(part);
}
