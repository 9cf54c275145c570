// Checks of a guest: what its host does again and again to find out whether the guest has started, is ready, and is alive.

import { type Static, Type } from 'typebox';
import { Name } from './metadata.ts';

const closed = { additionalProperties: false } as const;

const Port = Type.Integer({ minimum: 1, maximum: 65_535, description: 'of the guest; it need not be published' });
const ContainerName = Type.Optional(Type.String({ ...Name, description: 'default: the first container' }));

export const TcpCheck = Type.Object({ port: Port }, { ...closed, description: 'the guest accepts a connection' });

export const HttpCheck = Type.Object(
  {
    port: Port,
    path: Type.Optional(
      Type.String({ pattern: '^/[\\u0021-\\u007e]*$', maxLength: 1024, description: 'with its query; default: /' }),
    ),
    host: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9.:_\\[\\]-]+$',
        maxLength: 255,
        description: 'Host header; default: localhost',
      }),
    ),
  },
  { ...closed, description: 'the guest answers GET with a status from 200 to 399; redirects are not followed' },
);

export const ExecCheck = Type.Object(
  {
    command: Type.Array(Type.String({ pattern: '^[^\\u0000]*$', maxLength: 8192 }), { minItems: 1, maxItems: 256 }),
    container: ContainerName,
  },
  { ...closed, description: 'the command ends with code 0; a virtual machine needs a guest agent' },
);

export const ImageCheck = Type.Object(
  { container: ContainerName },
  { ...closed, description: 'the HEALTHCHECK of the container image passes' },
);

/** Exactly one of tcp, http, exec and image. */
export const Check = Type.Object(
  {
    tcp: Type.Optional(TcpCheck),
    http: Type.Optional(HttpCheck),
    exec: Type.Optional(ExecCheck),
    image: Type.Optional(ImageCheck),
    initialDelayMs: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 3_600_000, description: 'after the start of the guest; default: 0' }),
    ),
    periodMs: Type.Optional(Type.Integer({ minimum: 1000, maximum: 3_600_000, description: 'default: 10000' })),
    timeoutMs: Type.Optional(
      Type.Integer({ minimum: 100, maximum: 600_000, description: 'of one attempt; default: 1000' }),
    ),
    failures: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'in a row, until it counts as failed; default: 3' }),
    ),
    successes: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'in a row, until it counts as passed; default: 1' }),
    ),
  },
  closed,
);
export type Check = Static<typeof Check>;

export const checkNames = ['startup', 'readiness', 'liveness'] as const;
export type CheckName = (typeof checkNames)[number];

export const Checks = Type.Object(
  {
    startup: Type.Optional(
      Type.Unsafe<Check>({
        ...Check,
        description: 'until it passes, the other checks wait; when it fails, the guest fails',
      }),
    ),
    readiness: Type.Optional(
      Type.Unsafe<Check>({ ...Check, description: 'whether the guest is ready, instead of its own word' }),
    ),
    liveness: Type.Optional(
      Type.Unsafe<Check>({ ...Check, description: 'when it fails, the guest is ended and fails: see restartPolicy' }),
    ),
  },
  { ...closed, minProperties: 1 },
);
export type Checks = Static<typeof Checks>;

/** The check that a guest does not pass now. */
export const FailingCheck = Type.Object(
  { name: Type.Enum([...checkNames]), message: Type.String({ maxLength: 512 }) },
  closed,
);
export type FailingCheck = Static<typeof FailingCheck>;

/** Kinds of attempts; a check names exactly one. */
export const attemptKinds = ['tcp', 'http', 'exec', 'image'] as const;

export interface CheckTimes {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly failures: number;
  readonly successes: number;
}

export function timesOf(check: Check): CheckTimes {
  const { initialDelayMs = 0, periodMs = 10_000, timeoutMs = 1000, failures = 3, successes = 1 } = check;
  return { initialDelayMs, periodMs, timeoutMs, failures, successes };
}
