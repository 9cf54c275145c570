// The lines of an audit log, in order, over all its files.

import { createReadStream } from 'node:fs';
import { auditFiles, type AuditFileName, parseLine } from './audit-folder.ts';

export interface ReadLine {
  readonly file: string;
  readonly text: string;
  /** Undefined: it is no line of an audit log. */
  readonly fields: Readonly<Record<string, unknown>> | undefined;
  /** It was not written to its end. */
  readonly torn?: true;
}

/** Files that hold nothing from `fromSeq` on are not read. Ends after the newest line there is when it comes to it. */
export async function* readLines(
  directory: string,
  { fromSeq = 0 }: { readonly fromSeq?: number } = {},
): AsyncGenerator<ReadLine, void> {
  const files = auditFiles(directory);
  for (const [i, file] of files.entries()) {
    if ((files[i + 1]?.firstSeq ?? Number.POSITIVE_INFINITY) <= fromSeq) continue;
    for await (const line of linesOf(file)) {
      const seq = line.fields?.['seq'];
      if (typeof seq !== 'number' || seq >= fromSeq) yield line;
    }
  }
}

async function* linesOf({ path, name }: AuditFileName): AsyncGenerator<ReadLine, void> {
  let rest = '';
  // A deleted file is what a reader may meet: retention does not wait for it.
  const pieces: AsyncIterable<string> = createReadStream(path, { encoding: 'utf8' });
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const text of lines) yield { file: name, text, fields: parseLine(text) };
  }
  if (rest !== '') yield { file: name, text: rest, fields: parseLine(rest), torn: true };
}
