// Vendor data: what the operator of a host has cloud-init do in each guest, beside the user-data: a file, read again for each guest. It is
// passed on as it is, never parsed, and never more of it than a guest's own user-data may have.

import { open } from 'node:fs/promises';
import { describeError } from '../base/log.ts';

/** As user-data. */
const bytesMax = 65_536;

/** Throws, with what to do: a guest without it would run, and lack what its host's operator relies on. */
export function vendorDataIn(path: string): () => Promise<string> {
  return async () => {
    let bytes: Uint8Array;
    try {
      bytes = await beginningOf(path);
    } catch (error) {
      throw new Error(`cannot read the vendor-data (vendorDataFile) at ${path}: ${describeError(error)}`, {
        cause: error,
      });
    }
    if (bytes.length > bytesMax)
      throw new Error(`the vendor-data (vendorDataFile) at ${path} is longer than the ${bytesMax} bytes it may have`);
    return new TextDecoder().decode(bytes);
  };
}

/** At most one byte more than may be. */
async function beginningOf(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r');
  try {
    if (!(await file.stat()).isFile()) throw new Error('it is not a regular file');
    const bytes = new Uint8Array(bytesMax + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
    }
  } finally {
    await file.close();
  }
}
