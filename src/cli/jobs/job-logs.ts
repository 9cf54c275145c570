// `berth job logs NAME`: what the command of a job has printed, each stream to its own.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { parseInteger } from '../options/units.ts';
import { openSession } from '../session.ts';
import { JobOutput } from './job-output.ts';
import { hasEnded, standing } from './job-view.ts';

interface LogsOptions {
  readonly follow?: true;
  readonly attempt?: string;
  readonly timestamps?: true;
}

export function logsCommand(cli: Cli): Command {
  return new Command('logs')
    .description("Print a job's output")
    .argument('<job>')
    .option('-f, --follow', 'follow it until the job has ended, or Ctrl-C')
    .option('--attempt <number>', 'of this attempt; default: the last')
    .option('--timestamps', 'print the time before each line')
    .action(async (name: string, options: LogsOptions, command: Command) => {
      const asked =
        options.attempt === undefined ? undefined : parseInteger('--attempt', options.attempt, { min: 1, max: 16 });
      const session = await openSession(cli, command);
      await attempting(
        `read the log of job "${name}"`,
        async () => {
          const job = await session.client.get('job', name, { project: session.project });
          const timestamps = options.timestamps === true;
          const output = new JobOutput({ cli, session, job, timestamps, signal: cli.interruption() });
          if (options.follow === undefined) {
            await output.print(asked);
            if (job.status.attempts.length === 0 && !hasEnded(job.status.phase))
              cli.stderr.write(`job "${name}" has no output yet: ${standing(job, cli.clock.nowMs())}\n`);
          } else if (asked === undefined) await output.followAll(Math.max(1, job.status.attempt));
          else await output.followAttempt(asked);
        },
        { NotFound: '"berth job ls" shows the jobs, "berth job show NAME" their attempts' },
      );
    });
}
