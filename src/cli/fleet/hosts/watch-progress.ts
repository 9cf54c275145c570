// Shows how a plan that the server carries out goes on, until it has ended.

import { sleep } from '../../../base/clock.ts';
import type { Cli } from '../../cli.ts';

const pollMs = 1_000;

interface Watched<Progress> {
  readonly look: () => Promise<Progress>;
  /** It is printed again when these have changed. */
  readonly steps: (now: Progress) => unknown;
  readonly print: (now: Progress) => Promise<void>;
  /** Throws when it has ended badly. */
  readonly isOver: (now: Progress) => boolean;
}

export async function watchProgress<Progress>(
  cli: Cli,
  { look, steps, print, isOver }: Watched<Progress>,
): Promise<void> {
  let printed = '';
  for (;;) {
    const now = await look();
    const text = JSON.stringify(steps(now));
    if (text !== printed) await print(now);
    printed = text;
    if (isOver(now)) return;
    await sleep(cli.clock, pollMs, cli.interruption());
  }
}
