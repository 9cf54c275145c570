// What a sender needs of a broker. Each kind of broker has it; conformance is that what `send` has resolved for survives the broker.

import type { CloudEvent } from '../../../api/news/cloud-event.ts';

export interface Bus {
  /** The revision of the newest event of this fleet (`source`) that the broker has; undefined: the broker does not tell, or has none. */
  last(source: string): Promise<number | undefined>;
  /** Resolves when the broker has acknowledged all. Those of one subject arrive in this order. */
  send(events: readonly CloudEvent[]): Promise<void>;
  /** What is under way may fail. */
  close(): Promise<void>;
}

/** Connects. Rejects when the broker cannot be reached: the caller tries again. */
export type OpenBus = () => Promise<Bus>;

export const mediaType = 'application/cloudevents+json; charset=utf-8';

/** `events.<project>.<kind>.<reason>`; what belongs to no project has `_`. */
export function routeOf({ data: { subject, reason } }: CloudEvent): string {
  const words = [subject.project || '_', subject.kind, reason];
  return `events.${words.map((word) => word.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)).join('.')}`;
}

/** Errors of connections to several addresses have no message of their own. */
export function busError(error: unknown): unknown {
  const [first] = error instanceof AggregateError ? error.errors : [];
  return first ?? error;
}
