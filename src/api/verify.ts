// `berth verify`: inconsistencies of the fleet: desired against claimed against observed.

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
    subject: Type.String({ description: 'its subject: `instance default/web-1`, `host h1`' }),
    host: Type.Optional(Type.String()),
    message: Type.String({ description: 'the inconsistency, with its numbers' }),
    cause: Type.String({ description: 'the likely cause' }),
    repair: Type.Optional(Type.String({ description: 'what --apply does; absent: no repair is possible here' })),
    destroys: Type.Optional(Type.Boolean({ description: 'the repair destroys data: it needs removeUnknown as well' })),
    ageMs: Type.Integer({ description: 'since when the control plane that answers has seen it' }),
  },
  closed,
);
export type Finding = Static<typeof Finding>;

export const VerifyRequest = Type.Object(
  {
    apply: Type.Boolean({ default: false, description: 'repair what can be repaired' }),
    removeUnknown: Type.Boolean({
      default: false,
      description: 'with apply: order hosts to remove unknown guests and volumes, with their data',
    }),
    olderThanMs: Type.Integer({
      default: 60_000,
      minimum: 0,
      maximum: 86_400_000,
      description: 'only findings at least this old: younger ones are mostly work in progress',
    }),
  },
  closed,
);
export type VerifyRequest = Static<typeof VerifyRequest>;

export const VerifyReport = Type.Object(
  {
    findings: Type.Array(Finding),
    /** Number of findings that are younger than the requested age. */
    young: Type.Integer({ minimum: 0 }),
    checked: Type.Object(
      {
        instances: Type.Integer(),
        allocations: Type.Integer(),
        providers: Type.Integer(),
        hosts: Type.Integer(),
        hostsHeard: Type.Integer({ description: 'hosts that send heartbeats; the state of the others is unknown' }),
      },
      closed,
    ),
    watchedMs: Type.Integer({ description: 'how long this control plane has watched: it knows of nothing older' }),
    repaired: Type.Array(Type.String(), { description: 'what was repaired, one sentence each' }),
  },
  closed,
);
export type VerifyReport = Static<typeof VerifyReport>;
