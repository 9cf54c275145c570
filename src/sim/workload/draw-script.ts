// Programs in the language of the driver `fake`, and the lines that they print.

import type { Prng } from '../../base/prng.ts';
import { parseProgram } from '../../agent/drivers/fake/program.ts';

export function drawScript(prng: Prng, { mayHang = true } = {}): string {
  const lines: string[] = [];
  for (let i = prng.below(6); i > 0; i--) {
    lines.push(`echo line ${i}${prng.chance(1, 3) ? ' >&2' : ''}`);
    if (prng.chance(1, 2)) lines.push(`sleep ${prng.below(40) / 10}`);
  }
  const hangs = prng.chance(1, 10);
  lines.push(hangs && mayHang ? 'hang' : `exit ${prng.chance(2, 3) ? 0 : 1 + prng.below(3)}`);
  return `${lines.join('\n')}\n`;
}

/** What it prints when it runs to its end. */
export function printedBy(script: string, stream: 'stdout' | 'stderr'): string {
  return parseProgram(script)
    .flatMap((step) => (step.do === 'write' && step.stream === stream ? [step.text] : []))
    .join('');
}
