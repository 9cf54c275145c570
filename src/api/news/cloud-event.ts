// An event as other programs get it: CloudEvents 1.0 (cloudevents.io), in structured mode. The mapping is pure, so that every face tells the
// same. docs/events.md is for those who read them.

import { type Static, Type } from 'typebox';
import type { Event } from '../resources/event.ts';
import { pluralOf } from '../resources/plural-of.ts';

const closed = { additionalProperties: false } as const;

export const CloudEvent = Type.Object(
  {
    specversion: Type.Literal('1.0'),
    id: Type.String({ description: 'the same each time that this event is sent' }),
    source: Type.String({ description: 'the fleet: a URN that a restore changes' }),
    type: Type.String({ description: 'berth.v1.KIND.REASON' }),
    subject: Type.String({ description: 'what it is about: projects/web/instances/a, or hosts/rack-7' }),
    time: Type.String({ description: 'RFC 3339' }),
    datacontenttype: Type.Literal('application/json'),
    sequence: Type.String({ description: 'the revision of the store as decimal digits; grows' }),
    partitionkey: Type.String({ description: 'the id of the subject: events of one are in order' }),
    traceparent: Type.Optional(
      Type.String({ description: 'of the request that created the subject (W3C Trace Context)' }),
    ),
    data: Type.Object(
      {
        subject: Type.Object(
          { kind: Type.String(), id: Type.String(), name: Type.String(), project: Type.String() },
          closed,
        ),
        level: Type.Enum(['Normal', 'Warning']),
        reason: Type.String({ description: 'CamelCase code for programs' }),
        message: Type.String({ description: 'a sentence for people' }),
        host: Type.Optional(Type.String()),
      },
      closed,
    ),
  },
  closed,
);
export type CloudEvent = Static<typeof CloudEvent>;

/** `fleet`: the epoch of the store. */
export function cloudEventOf({ metadata, spec }: Event, fleet: string): CloudEvent {
  const { subject, type: level, reason, message, host } = spec;
  const within = subject.project === '' ? '' : `projects/${subject.project}/`;
  return {
    specversion: '1.0',
    id: metadata.id,
    source: `urn:berth:${fleet}`,
    type: `berth.v1.${subject.kind}.${reason}`,
    subject: `${within}${pluralOf(subject.kind)}/${subject.name}`,
    time: new Date(metadata.createdAtMs).toISOString(),
    datacontenttype: 'application/json',
    sequence: String(metadata.revision),
    partitionkey: subject.id,
    ...(metadata.traceParent === undefined ? {} : { traceparent: metadata.traceParent }),
    data: { subject, level, reason, message, ...(host === undefined ? {} : { host }) },
  };
}

/** Whether the type is one of `pattern`: `berth.v1.instance.*`, `*`, or a type as it is. */
export function matchesType(pattern: string, type: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern;
}
