// Container: one program of an instance whose image is a container image. The containers of an instance share its host,
// its network and its lifetime.

import { type Static, Type } from 'typebox';
import { GuestPort } from './guest.ts';
import { DottedName, Name } from './metadata.ts';
import { Mount, mountsMax } from './mount.ts';
import { SecretReference } from './secret.ts';

const closed = { additionalProperties: false } as const;

/** Arguments of programs cannot contain a zero byte. */
const Word = Type.String({ pattern: '^[^\\u0000]*$', maxLength: 8192 });
const Words = Type.Array(Word, { maxItems: 256 });

export const ContainerEnv = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_.-]{0,127}$', description: 'letters, digits, "_", "." and "-"' }),
  Type.Union([Type.String({ pattern: '^[^\\u0000]*$', maxLength: 32_768 }), SecretReference]),
  { default: {}, maxProperties: 128, additionalProperties: false },
);
/** Values, and references to values of secrets. */
export type Env = Readonly<Record<string, string | SecretReference>>;

export const ContainerPort = Type.Object(
  {
    containerPort: GuestPort.properties.guestPort,
    hostPort: GuestPort.properties.hostPort,
    protocol: GuestPort.properties.protocol,
  },
  closed,
);

export const containersMax = 16;

export const Container = Type.Object(
  {
    name: Name,
    image: Type.Optional(Type.String({ ...DottedName, description: "name of an image; default: the instance's" })),
    command: Type.Optional(
      Type.Array(Word, { minItems: 1, maxItems: 256, description: "replaces the image's entrypoint" }),
    ),
    args: Type.Optional({ ...Words, description: "replaces the image's command" }),
    env: Type.Unsafe<Env>(ContainerEnv),
    ports: Type.Array(ContainerPort, { default: [], maxItems: 64 }),
    cpus: Type.Optional(
      Type.Number({
        minimum: 0.01,
        maximum: 1024,
        description: 'how many it may use, also parts of one; default: those of the instance',
      }),
    ),
    memoryMiB: Type.Optional(
      Type.Integer({
        minimum: 6,
        maximum: 67_108_864,
        description: 'how much it may use; default: all of the instance',
      }),
    ),
    mounts: Type.Optional(Type.Array(Mount, { minItems: 1, maxItems: mountsMax })),
    stopGraceMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 600_000,
        description: "time that it has to end, at most that of the instance; default: the instance's",
      }),
    ),
    diskGiB: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_048_576,
        description: 'reserved for what it writes; its engine sets no limit',
      }),
    ),
  },
  closed,
);
export type Container = Static<typeof Container>;
