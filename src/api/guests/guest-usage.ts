// Guest usage: CPU time, memory, disk and network traffic of guests, measured by the agents of their hosts. Kept in memory only.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

const amount = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** Counters begin at 0 with each start of a guest. What a driver cannot measure is absent. */
const counters = {
  cpuMs: amount(
    'CPU time since the start of the guest, in milliseconds; of a virtual machine including its hypervisor process',
  ),
  memoryBytes: amount("what it holds of its host's memory now"),
  diskReadBytes: Type.Optional(amount('read from its disks and volumes')),
  diskWrittenBytes: Type.Optional(amount('written to its disks and volumes')),
  networkReceivedBytes: Type.Optional(amount('received by the guest')),
  networkSentBytes: Type.Optional(amount('sent by the guest')),
} as const;

export const GuestCounters = Type.Object(counters, closed);
export type GuestCounters = Readonly<Static<typeof GuestCounters>>;

/** Guests in one heartbeat; further ones are not measured. */
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
        description: 'average number of CPUs in use since the previous measurement; absent after the first',
      }),
    ),
    ...counters,
  },
  closed,
);
export type InstanceUsage = Readonly<Static<typeof InstanceUsage>>;

export const InstanceUsageList = Type.Object(
  { items: Type.Array(InstanceUsage, { description: 'the highest CPU usage first' }) },
  closed,
);
export type InstanceUsageList = Readonly<Static<typeof InstanceUsageList>>;
