// The gate for a whole file on this machine: unpacks it beside itself, looks at what came out, and removes that again. The control plane
// has uploaded images pass it, so that nothing is accepted that every host would refuse.

import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import type { ImageSpec } from '../../../api/resources/image.ts';
import { DriverError } from '../../host/driver-error.ts';
import { writeImage } from './image-file.ts';
import { checkImage, defaultVirtualBytesMax } from './image-gate.ts';
import { bombBytes } from './bomb.ts';
import { readLocalFile } from '../fetch/image-source.ts';
import { unpack } from './unpack.ts';

export type Inspected =
  | { readonly ok: true; readonly digest: string; readonly virtualSizeBytes: number }
  | { readonly ok: false; readonly reason: string };

export interface InspectOptions {
  readonly format: ImageSpec['format'];
  readonly decompress: ImageSpec['decompress'];
  /** Unpacked. */
  readonly bytesMax?: number;
}

/** Throws the disk's error; what is wrong with the image is a reason. */
export async function inspectImage(path: string, { format, decompress, bytesMax }: InspectOptions): Promise<Inspected> {
  if (format === 'container')
    return { ok: false, reason: 'container images are not uploaded: push it to a registry, and say docker://…' };
  const unpacked = `${path}.unpacking`;
  const signal = new AbortController().signal;
  let packedBytes = 0;
  try {
    const source = readLocalFile(
      pathToFileURL(path).href,
      { signal, bytesMax: Number.MAX_SAFE_INTEGER },
      async ({ totalBytes }) => {
        packedBytes = totalBytes ?? 0;
      },
    );
    const { digest } = await writeImage(
      unpacked,
      unpack(source, decompress, signal),
      {
        bytesMax: bytesMax ?? 64 * 1024 ** 3,
        allowedBytes: () => bombBytes(packedBytes),
        allowedInAll: () => bombBytes(packedBytes),
      },
      () => {},
    );
    const file = await open(unpacked, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const verdict = await checkImage(file, format, { virtualBytesMax: defaultVirtualBytesMax });
      return verdict.ok ? { ok: true, digest, virtualSizeBytes: verdict.virtualSizeBytes } : verdict;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof DriverError && (error.code === 'ImageInvalid' || error.code === 'ImageTooLarge'))
      return { ok: false, reason: error.message };
    throw error;
  } finally {
    await rm(unpacked, { force: true });
  }
}
