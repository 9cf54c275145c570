// Image: where a guest's disk comes from and what it needs.

import { type Static, Type } from 'typebox';
import { fingerprint } from '../../base/hash.ts';
import { DottedName, type Resource, type ResourceDefinition } from './metadata.ts';

export const ImageSpec = Type.Object(
  {
    source: Type.String({
      description: 'http:, https: or file: URL of the image; of format container: docker://REGISTRY/NAME:TAG[@DIGEST]',
      pattern: '^(https?|file|docker)://[^\\s]+$',
      maxLength: 2048,
    }),
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
    decompress: Type.Enum(['none', 'zstd', 'gzip', 'xz'], {
      default: 'none',
      description: 'how the file at `source` is packed',
    }),
    format: Type.Enum(['qcow2', 'raw', 'container'], {
      default: 'qcow2',
      description: 'disk format after unpacking, never guessed; container: of programs, not of a machine',
    }),
    nocloud: Type.Boolean({ default: true, description: 'attach a cloud-init NoCloud seed' }),
    backend: Type.Optional(
      Type.String({ description: 'driver this image needs; default: any', pattern: '^[a-z][a-z0-9-]{0,31}$' }),
    ),
    architecture: Type.Enum(['amd64', 'arm64'], { default: 'amd64' }),
    aliases: Type.Array(Type.String({ pattern: '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$' }), {
      default: [],
      maxItems: 32,
    }),
    preload: Type.Boolean({ default: false, description: 'every fitting host fetches it before it is asked for' }),
    defaults: Type.Object(
      {
        cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 1024 })),
        memoryMiB: Type.Optional(Type.Integer({ minimum: 16, maximum: 67_108_864 })),
        diskGiB: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_048_576 })),
      },
      { additionalProperties: false, default: {}, description: 'what an instance gets that asks for nothing' },
    ),
  },
  { additionalProperties: false },
);
export type ImageSpec = Static<typeof ImageSpec>;

/** Short for what is fetched and how: two images with one key are the same bytes, as far as anyone can say who has not fetched them. */
export function imageKey({ source, checksum, decompress, format }: ImageSpec): string {
  return fingerprint(JSON.stringify([source, checksum ?? '', decompress, format]));
}

export type Image = Resource<'image', ImageSpec, Record<string, never>>;

export const imageDefinition = {
  kind: 'image',
  plural: 'images',
  idPrefix: 'img',
  scope: 'fleet',
  description: "Where a guest's disk comes from and what it needs.",
  name: DottedName,
  spec: ImageSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
