// The commits of a repository that is not there: each has one file, a program that its hash draws.

import { seededPrng } from '../../base/prng.ts';
import { drawScript } from '../workload/draw-script.ts';

/** It ends by itself: jobs of requests have an hour. */
export function programOfCommit(commit: string): string {
  return drawScript(seededPrng(Number.parseInt(commit.slice(0, 8), 16), commit), { mayHang: false });
}

const blockBytes = 512;

/** As `git archive` has it, with the names that a run disk wants. */
export function treeOfCommit(commit: string): Buffer {
  const program = Buffer.from(programOfCommit(commit));
  const header = Buffer.alloc(blockBytes);
  header.write('work/.solstice/job.sh', 0);
  header.write(`${program.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('0', 156);
  header.write('ustar\x0000', 257);
  return Buffer.concat([header, program, Buffer.alloc(-program.length & (blockBytes - 1))]);
}
