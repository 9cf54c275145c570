// The limits of requests as they are configured; defaults stand only here. No honest fleet, however many hosts stand behind one address,
// should meet the defaults: docs/limits.md has the reasons.

import { type Static, Type } from 'typebox';

const number = (byDefault: number, description: string, maximum = 10_000_000) =>
  Type.Integer({ default: byDefault, minimum: 1, maximum, description });

export const LimitsConfig = Type.Object(
  {
    addressRequestsPerSecond: number(200, 'requests without a valid token from one address, or one IPv6 /64'),
    addressBurst: number(2_000, 'of these, how many at once'),
    failedLoginsPerMinute: number(10, 'invalid tokens from one address before answers to it are delayed', 100_000),
    tokenRequestsPerSecond: number(2_000, 'requests with one token'),
    tokenBurst: number(20_000, 'of these, how many at once'),
    hostRequestsPerSecond: number(500, 'requests of one host'),
    hostBurst: number(5_000, 'of these, how many at once'),
    tokenConnections: number(4_096, 'open connections with one token'),
    hostConnections: number(256, 'open connections of one host'),
    tokenStreams: number(1_024, 'open consoles, commands, screens, forwarded ports, logs and downloads with one token'),
    hostStreams: number(256, 'open downloads of one host'),
    tokenWatches: number(4_096, 'open watches with one token'),
    hostWatches: number(64, 'open watches of one host'),
  },
  { additionalProperties: false, default: {} },
);
export type LimitsConfig = Static<typeof LimitsConfig>;
