// Writes bytes to standard output or error at the speed of their reader.

import type { Output } from '../cli.ts';

/** Resolves when more can be written. */
export async function writeOut(output: Output, bytes: Uint8Array): Promise<void> {
  output.write(bytes);
  if (output.writableNeedDrain === true) await new Promise<void>((resolve) => output.once?.('drain', resolve));
}
