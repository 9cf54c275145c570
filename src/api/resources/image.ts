// Image: the source of a guest's disk, and what it needs.

import { type Static, Type } from 'typebox';
import { fingerprint } from '../../base/hash.ts';
import { Firmware, firmwareHelp, tpmHelp } from '../instances/firmware.ts';
import { DottedName, Name, type Resource, type ResourceDefinition } from './metadata.ts';

/** No user name or password in the URL: a spec is visible to everyone who may read images. */
const ImageSource = Type.String({
  description:
    'an http:, https: or file: URL without a password in it, oci://REGISTRY/NAME:TAG, or berth://sha256/<64 hex> for an uploaded file; of format container: docker://REGISTRY/NAME:TAG[@DIGEST]',
  pattern:
    '^(https?://[^\\s/?#@]+([/?#]\\S*)?|file://\\S+|oci://[^\\s/?#@]+/[^\\s?#]+|docker://\\S+|berth://sha256/[0-9a-f]{64})$',
  maxLength: 2048,
});

export const ImageSpec = Type.Object(
  {
    source: ImageSource,
    mirrors: Type.Optional(
      Type.Array(ImageSource, { maxItems: 16, description: 'tried in this order when `source` is unavailable' }),
    ),
    localPath: Type.Optional(
      Type.String({
        description: 'where hosts keep the image; default: their image cache',
        pattern: '^/[^\\u0000]*$',
        maxLength: 1024,
      }),
    ),
    checksum: Type.Optional(
      Type.String({
        description: 'sha256 of the file at `source`, as `sha256:<64 hex>`',
        pattern: '^sha256:[0-9a-f]{64}$',
      }),
    ),
    sizeBytes: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2 ** 53 - 1,
        description: 'of the file at `source`; another size is refused',
      }),
    ),
    decompress: Type.Enum(['none', 'zstd', 'gzip', 'xz'], {
      default: 'none',
      description: 'compression of the file at `source`',
    }),
    format: Type.Enum(['qcow2', 'raw', 'container'], {
      default: 'qcow2',
      description: 'disk format after unpacking, never guessed; container: a container image',
    }),
    nocloud: Type.Boolean({ default: true, description: 'attach a cloud-init NoCloud seed' }),
    defaultUser: Type.Optional(
      Type.String({
        description: 'user who gets the SSH keys of an instance, and logs in by ssh, unless another is named',
        pattern: '^[a-z_][a-z0-9_-]{0,31}$',
      }),
    ),
    backend: Type.Optional(
      Type.String({ description: 'driver this image needs; default: any', pattern: '^[a-z][a-z0-9-]{0,31}$' }),
    ),
    architecture: Type.Enum(['amd64', 'arm64'], { default: 'amd64' }),
    firmware: Type.Optional(
      Type.Unsafe<Firmware>({
        ...Firmware,
        description: `${firmwareHelp}; for instances that do not name one; default: bios`,
      }),
    ),
    tpm: Type.Optional(Type.Boolean({ description: `${tpmHelp}; for instances that do not say; default: false` })),
    aliases: Type.Array(Type.String({ pattern: '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$' }), {
      default: [],
      maxItems: 32,
    }),
    preload: Type.Boolean({
      default: false,
      description: 'every matching host fetches it before an instance needs it',
    }),
    prefetch: Type.Optional(
      Type.Object(
        {
          hosts: Type.Array(Name, { default: [], maxItems: 1024, uniqueItems: true }),
          pools: Type.Array(Name, { default: [], maxItems: 1024, uniqueItems: true }),
        },
        { additionalProperties: false, description: 'only these hosts fetch it before an instance needs it' },
      ),
    ),
    pinned: Type.Optional(
      Type.Boolean({ description: 'hosts that have it keep it, even beyond the budget of their caches' }),
    ),
    pullPolicy: Type.Optional(
      Type.Enum(['IfNotPresent', 'Always'], {
        description:
          'of format container. Always: its tag is pulled again for each new instance; default: IfNotPresent',
      }),
    ),
    defaults: Type.Object(
      {
        cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
        memoryMiB: Type.Optional(Type.Integer({ minimum: 16, maximum: 67_108_864 })),
        diskGiB: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_048_576 })),
      },
      { additionalProperties: false, default: {}, description: 'default resources of instances' },
    ),
  },
  { additionalProperties: false },
);
export type ImageSpec = Static<typeof ImageSpec>;

/**
 * Identifies what is fetched and how: two images with one key have the same content, as far as known without fetching.
 */
export function imageKey({ source, checksum, decompress, format }: ImageSpec): string {
  return fingerprint(JSON.stringify([source, checksum ?? '', decompress, format]));
}

export type Image = Resource<'image', ImageSpec, Record<string, never>>;

export const imageDefinition = {
  kind: 'image',
  plural: 'images',
  idPrefix: 'img',
  scope: 'fleet',
  description: "The source of a guest's disk, and its requirements.",
  name: DottedName,
  spec: ImageSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
