// Rules of instances and placement groups about where other instances are.

import { type Static, Type } from 'typebox';
import type { Labels } from './metadata.ts';

const closed = { additionalProperties: false } as const;

const labelKey = '^[A-Za-z0-9]([A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?$';

/** `host`, or the key of a label of hosts: `zone`, `rack`. */
const DomainKey = Type.String({
  pattern: labelKey,
  description: '`host`, or the key of a label of hosts: those with the same value are one domain',
});

const by = Type.String({ ...DomainKey, default: 'host' });
const required = Type.Boolean({
  default: true,
  description: 'false: prefer hosts that satisfy it, refuse no host',
});
const weight = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 100, description: 'its weight when it is not required; default 100' }),
);
const members = Type.Record(
  Type.String({ pattern: labelKey }),
  Type.String({ pattern: '^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$' }),
  { minProperties: 1, maxProperties: 16, additionalProperties: false },
);

export const AffinityRule = Type.Object(
  {
    to: Type.Unsafe<Labels>({ ...members, description: 'instances of the same project with all these labels' }),
    by,
    required,
    weight,
  },
  closed,
);
export type AffinityRule = Static<typeof AffinityRule>;

const maxSkew = Type.Integer({
  default: 1,
  minimum: 1,
  maximum: 1_000_000,
  description: 'largest difference between the fullest and the emptiest domain',
});

export const SpreadRule = Type.Object(
  {
    by: DomainKey,
    maxSkew,
    required,
    among: Type.Optional(
      Type.Unsafe<Labels>({
        ...members,
        description:
          'which instances are counted; default: those of its placement group, else those with all of its labels',
      }),
    ),
  },
  closed,
);
export type SpreadRule = Static<typeof SpreadRule>;

/** A rule of a placement group about its own members. */
export const GroupRule = Type.Object({ by, required, weight }, closed);
export type GroupRule = Static<typeof GroupRule>;

export const GroupSpread = Type.Object({ by: DomainKey, maxSkew, required }, closed);

export const MaxPerHost = Type.Integer({ minimum: 1, maximum: 1_000_000 });

/** Limit for each kind of rule: every rule adds to the cost of each decision. */
export const rulesMax = 8;
