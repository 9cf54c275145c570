// Guest usage: the processor time, memory, disk and network traffic of guests, as the agents of their hosts measure it. Kept in memory only.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

const amount = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** Counters begin at 0 with each start of a guest. What a driver cannot measure is absent. */
const counters = {
  cpuMs: amount('processor time since the guest was started, in milliseconds; of a virtual machine with what runs it'),
  memoryBytes: amount("what it holds of its host's memory now"),
  diskReadBytes: Type.Optional(amount('read from its disks and volumes')),
  diskWrittenBytes: Type.Optional(amount('written to its disks and volumes')),
  networkReceivedBytes: Type.Optional(amount('received by the guest')),
  networkSentBytes: Type.Optional(amount('sent by the guest')),
} as const;

export const GuestCounters = Type.Object(counters, closed);
export type GuestCounters = Readonly<Static<typeof GuestCounters>>;

/** Guests in one heartbeat; those beyond are not measured. */
export const measuredGuestsMax = 1024;

export const GuestUsageReport = Type.Object(
  {
    sampledMs: amount("on the agent's monotonic clock"),
    guests: Type.Array(
      Type.Object(
        { instanceId: Type.String({ maxLength: 64 }), incarnation: Type.Integer({ minimum: 0 }), ...counters },
        closed,
      ),
      { maxItems: measuredGuestsMax },
    ),
  },
  closed,
);
export type GuestUsageReport = Readonly<Static<typeof GuestUsageReport>>;
export type GuestUsage = GuestUsageReport['guests'][number];

export const InstanceUsage = Type.Object(
  {
    project: Type.String(),
    instance: Type.String(),
    host: Type.String(),
    measuredAtMs: Type.Integer({ description: 'when this server received it, in milliseconds since 1970' }),
    cpus: Type.Optional(
      Type.Number({
        minimum: 0,
        description: 'processors in use on average since the measurement before; absent after the first',
      }),
    ),
    ...counters,
  },
  closed,
);
export type InstanceUsage = Readonly<Static<typeof InstanceUsage>>;

export const InstanceUsageList = Type.Object(
  { items: Type.Array(InstanceUsage, { description: 'the one with the most processors in use first' }) },
  closed,
);
export type InstanceUsageList = Readonly<Static<typeof InstanceUsageList>>;
