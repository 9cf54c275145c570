// One line on standard error with the progress of long work: redrawn on a terminal, a new line for each change
// elsewhere.

import type { Timer } from '../../base/clock.ts';
import type { Cli } from '../cli.ts';
import { coloursFor } from './output.ts';
import { visible } from './terminal.ts';
import { seconds } from '../options/units.ts';

export interface Progress {
  update(text: string): void;
  /** Clears the line. Harmless when repeated. */
  end(): void;
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const frameMs = 120;
const wipe = '\r\u001b[2K';

export function startProgress(cli: Pick<Cli, 'stderr' | 'clock' | 'environment'>): Progress {
  return cli.stderr.isTTY && cli.environment['TERM'] !== 'dumb' ? liveLine(cli) : plainLines(cli);
}

function plainLines({ stderr }: Pick<Cli, 'stderr'>): Progress {
  let last = '';
  return {
    update(text) {
      const steady = text.replace(/\s*\d+(\.\d+)? ?%/, ''); // percents would fill a log
      if (steady === last) return;
      last = steady;
      stderr.write(`${visible(text)}\n`);
    },
    end() {},
  };
}

function liveLine({ stderr, clock, environment }: Pick<Cli, 'stderr' | 'clock' | 'environment'>): Progress {
  const colours = coloursFor(stderr, environment);
  const startedMs = clock.monotonicMs();
  let text = '';
  let frame = 0;
  let timer: Timer | undefined;
  const draw = (): void => {
    const line = `${text}  ${seconds(clock.monotonicMs() - startedMs)}`;
    stderr.write(
      `${wipe}${colours.cyan(frames[frame % frames.length] ?? '')} ${line.slice(0, Math.max(10, (stderr.columns ?? 80) - 3))}`,
    );
    frame++;
    timer = clock.setTimer(frameMs, draw, { background: true });
  };
  return {
    update(next) {
      text = visible(next);
      if (!timer) draw();
    },
    end() {
      if (!timer) return;
      timer.cancel();
      timer = undefined;
      stderr.write(wipe);
    },
  };
}
