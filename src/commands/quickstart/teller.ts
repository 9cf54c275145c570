// Teller: prints the quickstart's steps, each with its duration.

import type { Cli } from '../../cli/cli.ts';
import { coloursFor } from '../../cli/print/output.ts';
import { startProgress } from '../../cli/print/progress.ts';
import { seconds } from '../../cli/options/units.ts';

export interface Teller {
  line(text: string): void;
  done(text: string, tookMs?: number): void;
  step<T>(
    doing: string,
    work: (progress: (text: string) => void) => Promise<T>,
    done: (result: T) => string,
  ): Promise<T>;
}

export function teller(cli: Cli): Teller {
  const colours = coloursFor(cli.stdout, cli.environment);
  const line = (text: string): void => void cli.stdout.write(`${text}\n`);
  const done = (text: string, tookMs?: number): void =>
    line(`${colours.green('✔')} ${text}${tookMs === undefined ? '' : colours.dim(`  ${seconds(tookMs)}`)}`);
  return {
    line,
    done,
    async step(doing, work, doneText) {
      const progress = startProgress(cli);
      const startedMs = cli.clock.monotonicMs();
      progress.update(doing);
      try {
        const result = await work((text) => progress.update(`${doing}: ${text}`));
        progress.end();
        done(doneText(result), cli.clock.monotonicMs() - startedMs);
        return result;
      } finally {
        progress.end();
      }
    },
  };
}
