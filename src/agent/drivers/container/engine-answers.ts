// What an engine answers, as far as the driver reads it. Every answer is checked against these schemas.

import { type Static, Type } from 'typebox';

const Nullable = <Schema extends Parameters<typeof Type.Optional>[0]>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));
const Labels = Type.Record(Type.String(), Type.String());

export const Version = Type.Object({
  Version: Type.String(),
  ApiVersion: Type.String({ pattern: '^\\d+\\.\\d+$' }),
  MinAPIVersion: Type.Optional(Type.String({ pattern: '^\\d+\\.\\d+$' })),
  Arch: Type.String(),
  Components: Nullable(Type.Array(Type.Object({ Name: Type.String() }))),
});

export const Image = Type.Object({
  Id: Type.String({ minLength: 1 }),
  RepoDigests: Nullable(Type.Array(Type.String())),
  Architecture: Type.String(),
});
export type EngineImage = Static<typeof Image>;

/** A container as inspect shows it, without its environment, which may hold secrets. */
export const Container = Type.Object({
  Id: Type.String({ minLength: 1 }),
  Image: Type.String(),
  State: Type.Object({
    /** created, running, paused, restarting, stopping, removing, exited, dead. */
    Status: Type.String(),
    ExitCode: Type.Integer(),
    OOMKilled: Type.Optional(Type.Boolean()),
    StartedAt: Type.Optional(Type.String()),
    FinishedAt: Type.Optional(Type.String()),
    Health: Nullable(Type.Object({ Status: Type.Optional(Type.String()) })),
  }),
  Config: Type.Object({
    Labels: Nullable(Labels),
    StopSignal: Nullable(Type.Union([Type.String(), Type.Integer()])),
    Healthcheck: Nullable(
      Type.Object({ Test: Nullable(Type.Array(Type.String())), Interval: Nullable(Type.Integer()) }),
    ),
  }),
  HostConfig: Type.Object({
    /** Bytes; 0: no limit. */
    Memory: Type.Optional(Type.Number()),
    PortBindings: Nullable(
      Type.Record(
        Type.String(),
        Type.Union([Type.Null(), Type.Array(Type.Object({ HostPort: Type.Optional(Type.String()) }))]),
      ),
    ),
  }),
  NetworkSettings: Type.Optional(
    Type.Object({
      IPAddress: Type.Optional(Type.String()),
      Networks: Nullable(Type.Record(Type.String(), Type.Object({ IPAddress: Type.Optional(Type.String()) }))),
    }),
  ),
});
export type EngineContainer = Static<typeof Container>;

/** Usage of a container; engines omit what they cannot count. */
export const Stats = Type.Object({
  cpu_stats: Type.Object({ cpu_usage: Type.Object({ total_usage: Type.Optional(Type.Number()) }) }),
  memory_stats: Nullable(
    Type.Object({
      usage: Type.Optional(Type.Number()),
      stats: Nullable(Type.Record(Type.String(), Type.Number())),
    }),
  ),
  blkio_stats: Nullable(
    Type.Object({
      io_service_bytes_recursive: Nullable(Type.Array(Type.Object({ op: Type.String(), value: Type.Number() }))),
    }),
  ),
  networks: Nullable(Type.Record(Type.String(), Type.Object({ rx_bytes: Type.Number(), tx_bytes: Type.Number() }))),
});
export type EngineStats = Static<typeof Stats>;

export const Network = Type.Object({
  Id: Type.String(),
  Driver: Type.String(),
  Options: Nullable(Labels),
  IPAM: Type.Object({
    Config: Nullable(Type.Array(Type.Object({ Subnet: Type.String(), Gateway: Type.Optional(Type.String()) }))),
  }),
});

export const PodmanNetwork = Type.Object({ network_interface: Type.String() });

export const Listed = Type.Array(
  Type.Object({ Id: Type.String({ minLength: 1 }), State: Type.Optional(Type.String()), Labels: Nullable(Labels) }),
);
export type ListedContainer = Static<typeof Listed>[number];

export const Event = Type.Object({
  Action: Type.String(),
  Actor: Type.Object({ ID: Type.String(), Attributes: Nullable(Labels) }),
});
export type EngineEvent = Static<typeof Event>;

export const PullLine = Type.Object({
  id: Type.Optional(Type.String()),
  error: Type.Optional(Type.String()),
  progressDetail: Nullable(Type.Object({ current: Type.Optional(Type.Number()), total: Type.Optional(Type.Number()) })),
});
export type PullLine = Static<typeof PullLine>;

export const PathStat = Type.Object({ name: Type.String(), mode: Type.Integer({ minimum: 0 }) });
