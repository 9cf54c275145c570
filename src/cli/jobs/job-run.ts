// `berth job run`: creates a job, prints its output, and ends with its exit code. Ctrl-C cancels the job.

import { Command } from 'commander';
import { sleep } from '../../base/clock.ts';
import { ApiError } from '../../api/errors.ts';
import type { Job } from '../../api/resources/job.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { type Format, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession, type Session } from '../session.ts';
import { type JobOptions, jobOf, withJobOptions } from './job-options.ts';
import { JobOutput } from './job-output.ts';
import { conclude } from './job-view.ts';

interface RunOptions extends JobOptions {
  readonly detach?: true;
  readonly timestamps?: true;
  readonly idempotencyKey?: string;
  readonly output: Format;
}

export function runCommand(cli: Cli): Command {
  return withJobOptions(new Command('run').description('Run a command once, in a fresh instance'))
    .option('-n, --name <name>', 'name of the job; default: made from the label')
    .option('--detach', 'print the name of the job and do not wait for it')
    .option('--timestamps', 'print the time before each line')
    .option('--idempotency-key <key>', 'repeating a request with the same key creates no second job')
    .addOption(outputOption('one'))
    .addHelpText(
      'after',
      '\nStandard output and error are those of the command, and so is the exit code. 124: it timed out; 125: it could not be carried out;\n123: it was cancelled. Ctrl-C cancels the job; a second one leaves it alone.',
    )
    .action(async (first: string | undefined, rest: readonly string[], options: RunOptions, command: Command) => {
      if (options.output !== 'table' && !options.detach) throw usageError('-o needs --detach');
      const words = argumentsOf(command, first === undefined ? [] : [first, ...rest]);
      const { name, project, labels, spec } = await jobOf(cli, words, options);
      const session = await openSession(cli, command);
      if (project !== undefined && project !== session.project)
        throw usageError(
          `the file is of project "${project}", and the command of project "${session.project}"`,
          `add --project ${project}, or remove metadata.project`,
        );
      const job = await attempting(
        'create the job',
        () =>
          session.client.create(
            'job',
            { metadata: { ...(name === undefined ? {} : { name }), project: session.project, labels }, spec },
            options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey },
          ),
        { AlreadyExists: `remove the existing one: berth job rm ${name ?? 'NAME'}` },
      );
      await runOrDetach(cli, session, job, options);
    });
}

/** Prints its output and ends with its exit code, or names it. */
export async function runOrDetach(
  cli: Cli,
  session: Session,
  job: Job,
  { detach: detached, output, timestamps }: Pick<RunOptions, 'detach' | 'output' | 'timestamps'>,
): Promise<void> {
  if (detached) return detach(cli, job, output);
  conclude(await runToItsEnd(cli, session, job, timestamps === true), cli.clock.nowMs(), (line) =>
    cli.stderr.write(`${line.startsWith(' ') ? '' : 'berth: '}${line}\n`),
  );
}

/** What stands before `--` is the label; without `--` the first word is. */
export function argumentsOf(
  command: Command,
  all: readonly string[],
): { readonly label: string | undefined; readonly words: readonly string[] } {
  let root = command;
  while (root.parent) root = root.parent;
  const { rawArgs } = root as Command & { readonly rawArgs: readonly string[] }; // the library has it, and its types have not
  const dashes = rawArgs.indexOf('--');
  const afterDashes = dashes < 0 ? all.length - 1 : rawArgs.length - dashes - 1;
  const before = all.slice(0, Math.max(0, all.length - afterDashes));
  if (before.length > 1)
    throw usageError(
      `"${before[1]}" is one word too many before --`,
      'write the command after --: berth job run LABEL -- COMMAND',
    );
  return { label: before[0], words: all.slice(before.length) };
}

async function detach(cli: Cli, job: Job, format: Format): Promise<void> {
  if (format === 'json' || format === 'yaml') return printValue(cli, format, job);
  printNames(cli, [job]);
  const { name } = job.metadata;
  if (cli.stderr.isTTY) cli.stderr.write(`accepted; follow it with: berth job logs -f ${name}, berth job ls --watch\n`);
}

async function runToItsEnd(cli: Cli, session: Session, job: Job, timestamps: boolean): Promise<Job> {
  const { name } = job.metadata;
  const over = new AbortController();
  const interruption = cli.interruption();
  const cancel = (): void => void cancelJob(cli, session, { name, signal: over.signal });
  if (cli.stderr.isTTY) cli.stderr.write(`job ${name}\n`);
  if (interruption.aborted) cancel();
  else interruption.addEventListener('abort', cancel, { once: true });
  try {
    const output = new JobOutput({ cli, session, job, timestamps, signal: over.signal });
    return await attempting(`follow job "${name}"`, () => output.followAll(1));
  } finally {
    interruption.removeEventListener('abort', cancel);
    over.abort();
  }
}

const retryMs = 1_000;

/** Until the server has taken it, or the job has ended. */
async function cancelJob(
  cli: Cli,
  { client, project }: Session,
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
): Promise<void> {
  cli.stderr.write(`berth: cancelling job "${name}"; Ctrl-C again leaves it alone (berth job show ${name})\n`);
  while (!signal.aborted) {
    try {
      await client.cancelJob(name, { project });
      return;
    } catch (error) {
      if (error instanceof ApiError && error.code !== 'Unavailable') {
        if (error.code !== 'Conflict' && error.code !== 'NotFound') cli.stderr.write(`berth: ${error.message}\n`);
        return; // it has ended by itself, or is gone
      }
      await sleep(cli.clock, retryMs, signal);
    }
  }
}
