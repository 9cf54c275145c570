// Audit: what of the fleet does not fit together: desired against claimed against observed.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const FindingCode = Type.Enum([
  'OverUse',
  'Miscounted',
  'RoomLeaked',
  'RoomMissing',
  'OrphanRecord',
  'UnknownGuest',
  'UnknownVolume',
  'SecondGuest',
  'GuestUnconfirmed',
  'Stuck',
]);
export type FindingCode = Static<typeof FindingCode>;

export const Finding = Type.Object(
  {
    code: FindingCode,
    subject: Type.String({ description: 'what it is about: `instance default/web-1`, `host h1`' }),
    host: Type.Optional(Type.String()),
    message: Type.String({ description: 'what does not fit, with its numbers' }),
    cause: Type.String({ description: 'how it comes about' }),
    repair: Type.Optional(Type.String({ description: 'what --apply does; missing: nothing can be done here' })),
    destroys: Type.Optional(
      Type.Boolean({ description: 'the repair destroys something: it needs removeUnknown, too' }),
    ),
    ageMs: Type.Integer({ description: 'since when the control plane that answers has seen it' }),
  },
  closed,
);
export type Finding = Static<typeof Finding>;

export const AuditRequest = Type.Object(
  {
    apply: Type.Boolean({ default: false, description: 'repair what can be repaired' }),
    removeUnknown: Type.Boolean({
      default: false,
      description:
        'with apply: order hosts to remove guests and volumes that no record stands for, with all that is on them',
    }),
    olderThanMs: Type.Integer({
      default: 60_000,
      minimum: 0,
      maximum: 86_400_000,
      description: 'only what has been so for that long: younger things are mostly under way',
    }),
  },
  closed,
);
export type AuditRequest = Static<typeof AuditRequest>;

export const AuditReport = Type.Object(
  {
    findings: Type.Array(Finding),
    /** Findings that are younger than asked for. */
    young: Type.Integer({ minimum: 0 }),
    checked: Type.Object(
      {
        instances: Type.Integer(),
        allocations: Type.Integer(),
        providers: Type.Integer(),
        hosts: Type.Integer(),
        hostsHeard: Type.Integer({ description: 'whose agents are heard: of the others nothing is known now' }),
      },
      closed,
    ),
    watchedMs: Type.Integer({ description: 'for how long this control plane has looked: nothing is older to it' }),
    repaired: Type.Array(Type.String(), { description: 'what was done, a sentence each' }),
  },
  closed,
);
export type AuditReport = Static<typeof AuditReport>;
