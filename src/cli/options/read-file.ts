// Reads an input named by the user: a regular file, a pipe or `-` for standard input, up to a size limit.

import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Cli } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { fileFailure } from './file-failure.ts';

interface ReadOptions {
  /** Its name in messages: "user-data". */
  readonly what: string;
  readonly bytesMax: number;
}

/** The file's text. Throws `CommandError` that names the file. */
export async function readTextFile(
  cli: Pick<Cli, 'stdin'>,
  path: string,
  { what, bytesMax }: ReadOptions,
): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  const take = (piece: string | Uint8Array): void => {
    const bytes = Buffer.from(piece);
    size += bytes.length;
    if (size > bytesMax) throw usageError(`cannot read ${what} from ${path}: it is larger than ${bytesMax} bytes`);
    pieces.push(bytes);
  };
  if (path === '-') {
    for await (const piece of cli.stdin) take(piece);
  } else {
    try {
      const file = await open(path, constants.O_RDONLY);
      try {
        const stat = await file.stat();
        if (!stat.isFile() && !stat.isFIFO()) throw usageError(`cannot read ${what} from ${path}: it is not a file`);
        for await (const piece of file.createReadStream({
          autoClose: false,
          highWaterMark: Math.min(bytesMax + 1, 65_536),
        }))
          take(piece);
      } finally {
        await file.close();
      }
    } catch (error) {
      throw fileFailure(error, `read ${what} from ${path}`);
    }
  }
  return new TextDecoder('utf-8', { fatal: false }).decode(Buffer.concat(pieces));
}
