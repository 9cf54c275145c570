// Reads the list of a commit's files (`git ls-tree -r -t -l -z`) and refuses a commit that is too much. Keeps nothing of it.

import { CommitCount, type CommitLimits, pathLengthMax } from './commit-limits.ts';

/** A header of the archive comes with each entry, and its files are filled up to blocks. */
const block = 512;

/** Throws `RepositoryRefused`. */
export async function checkTree(input: AsyncIterable<Uint8Array>, limits: CommitLimits, what: string): Promise<void> {
  const count = new CommitCount(limits, what);
  let rest = '';
  for await (const chunk of input) {
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\0');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const tab = line.indexOf('\t');
      const size = Number(line.slice(0, tab).trimEnd().split(' ').at(-1)) || 0; // `-`: a directory
      count.add(line.slice(tab + 1), block + Math.ceil(size / block) * block);
    }
    if (rest.length > 2 * pathLengthMax) throw count.refused('it contains a path that is too long');
  }
}
