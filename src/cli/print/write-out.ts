// Bytes to standard output or error, only as fast as whoever reads there takes them.

import type { Output } from '../cli.ts';

/** Resolves when there is room for more. */
export async function writeOut(output: Output, bytes: Uint8Array): Promise<void> {
  output.write(bytes);
  if (output.writableNeedDrain === true) await new Promise<void>((resolve) => output.once?.('drain', resolve));
}
