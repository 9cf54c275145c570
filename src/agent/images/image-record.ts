// What the cache remembers of each published image, in a small JSON file beside it. Read back, it is checked like any input.

import { type Static, Type } from 'typebox';
import { matches } from '../../api/parse.ts';

const closed = { additionalProperties: false } as const;

/** `<key>.json`: the image at `path` is whole, and these are its size and time of change if nobody touched it. */
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
    /** Of the file at the source, as it was fetched: what was not required is at least recorded. */
    sourceChecksum: Type.Optional(Type.String({ pattern: '^sha256:[0-9a-f]{64}$' })),
    sourceBytes: Type.Optional(Type.Integer({ minimum: 0 })),
  },
  closed,
);
export type ImageRecord = Static<typeof ImageRecord>;

/** `<key>.source.json`: which version of the server's file the bytes in `<key>.partial` are of. */
export const PartialRecord = Type.Object(
  {
    /** The server that the last of them came from. */
    source: Type.String(),
    validator: Type.Optional(Type.String()),
    totalBytes: Type.Optional(Type.Integer({ minimum: 0 })),
    /** The kernel's boot: what was written before a power cut may have holes where nobody looks. */
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
    return undefined; // a damaged record is no record: the image is fetched again
  }
}
