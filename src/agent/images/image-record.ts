// The cache's record of each published image, in a small JSON file beside it. When read, it is checked like any input.

import { type Static, Type } from 'typebox';
import { matches } from '../../api/parse.ts';

const closed = { additionalProperties: false } as const;

/** `<key>.json`: the image at `path` is complete; a file of another size or time of change was modified. */
export const ImageRecord = Type.Object(
  {
    key: Type.String(),
    names: Type.Array(Type.String()),
    path: Type.String(),
    format: Type.Enum(['qcow2', 'raw']),
    digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
    virtualSizeBytes: Type.Integer({ minimum: 0 }),
    sizeBytes: Type.Integer({ minimum: 0 }),
    changedAtMs: Type.Number(),
    /** Of the file at the source, as it was fetched: recorded even if no checksum was required. */
    sourceChecksum: Type.Optional(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' })),
    sourceBytes: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  closed,
);
export type ImageRecord = Static<typeof ImageRecord>;

/** `<key>.source.json`: the version of the server's file to which the bytes in `<key>.partial` belong. */
export const PartialRecord = Type.Object(
  {
    /** The server that sent the last of them. */
    source: Type.String(),
    validator: Type.Optional(Type.String()),
    totalBytes: Type.Optional(Type.Integer({ minimum: 0 })),
    /** The kernel's boot: after a power cut, data that was written before may have undetected holes. */
    bootId: Type.String(),
  },
  closed,
);
export type PartialRecord = Static<typeof PartialRecord>;

export function readRecord(text: string): ImageRecord | undefined {
  const value = parseJson(text);
  return matches(ImageRecord, value) ? value : undefined;
}

export function readPartialRecord(text: string): PartialRecord | undefined {
  const value = parseJson(text);
  return matches(PartialRecord, value) ? value : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a damaged record is ignored: the image is fetched again
  }
}
