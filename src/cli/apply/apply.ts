// `berth apply -f FILE` makes resources what files say, and `berth diff -f FILE` shows what it would do.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, CommandExit, exitCodes, failureOf, usageError } from '../exit-codes.ts';
import { collect } from '../options/units.ts';
import { coloursFor, type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession, type Session } from '../session.ts';
import { applyChange } from './apply-changes.ts';
import { type ApplyPlan, type Change, planApply } from './apply-plan.ts';
import { readDocuments } from './documents.ts';
import { nameOf, planLines } from './print-plan.ts';

/** As in Terraform. A comparison that fails has another code, so that a script can tell them apart. */
const wouldChange = 2;

interface ApplyOptions {
  readonly filename: readonly string[];
  readonly dryRun?: true;
  readonly prune?: true;
  readonly selector?: string;
  readonly output: Format;
}

export function applyCommand(cli: Cli): Command {
  return withOptions(new Command('apply'))
    .description('Create and change resources to match files')
    .option('--dry-run', 'show what would change, and change nothing; the exit code is 2 when something would')
    .addHelpText('after', help)
    .action(async (options: ApplyOptions, command: Command) => {
      if (options.dryRun) return compare(cli, options, command);
      const { session, plan } = await planned(cli, options, command);
      await apply(cli, session, plan, options);
    });
}

export function diffCommand(cli: Cli): Command {
  return withOptions(new Command('diff'))
    .description('Show what "berth apply" would change; the exit code is 2 when something would')
    .action((options: ApplyOptions, command: Command) => compare(cli, options, command));
}

async function compare(cli: Cli, options: ApplyOptions, command: Command): Promise<void> {
  const { plan } = await planned(cli, options, command).catch((error: unknown) => {
    if (!(error instanceof CommandError) || error.exitCode !== wouldChange) throw error;
    throw new CommandError(exitCodes.internal, error.message, { advice: error.advice, cause: error.cause });
  });
  await tell(cli, options, plan);
}

function withOptions(command: Command): Command {
  return command
    .usage('-f FILE [options]')
    .requiredOption(
      '-f, --filename <path>',
      'file or folder of YAML or JSON documents, or "-" for standard input; may be repeated',
      collect,
      [],
    )
    .option(
      '--prune',
      'delete resources that match --selector, are of a kind and project of the files, and are in none of them',
    )
    .option('-l, --selector <selector>', 'with --prune: labels of the resources that may be deleted')
    .addOption(outputOption('value'));
}

const help = `
A document has the fields kind, metadata (name, project, labels) and spec, as "berth get KIND NAME -o yaml" prints them.
A field that a file does not name gets its default. Everything is checked by the server before anything is written.`;

async function planned(
  cli: Cli,
  { filename, prune, selector }: ApplyOptions,
  command: Command,
): Promise<{ session: Session; plan: ApplyPlan }> {
  if (filename.length === 0) throw usageError('no file is given', 'name one with -f FILE, or -f - for standard input');
  if (prune && !selector) throw usageError('--prune needs --selector', 'for example -l app=web');
  if (selector && !prune) throw usageError('--selector does nothing without --prune');
  const session = await openSession(cli, command);
  const wanted = await readDocuments(cli, filename, session.project);
  const plan = await attempting('compare with the server', () =>
    planApply(session, wanted, prune && selector ? { selector } : undefined),
  );
  for (const { wanted: one, error } of plan.refused) {
    const field = error.field === undefined || error.message.includes(error.field) ? '' : ` (${error.field})`;
    cli.stderr.write(failureOf(usageError(`${one.place}: ${nameOf(one)}: ${error.message}${field}`)).text);
  }
  if (plan.refused.length > 0)
    throw usageError(`${plan.refused.length} of ${wanted.length} resources cannot be created; nothing was changed`);
  return { session, plan };
}

async function tell(cli: Cli, { output }: ApplyOptions, plan: ApplyPlan): Promise<void> {
  await print(cli, output, plan, { applied: false });
  if (plan.changes.some(({ action }) => action !== 'none')) throw new CommandExit(wouldChange);
}

/** What is done stays done when a later one fails: the same command goes on where it stopped. */
async function apply(cli: Cli, session: Session, plan: ApplyPlan, { output }: ApplyOptions): Promise<void> {
  const due = plan.changes.filter(({ action }) => action !== 'none');
  const done: Change[] = [];
  try {
    for (const change of due) {
      await applyChange(session, change);
      done.push(change);
    }
  } catch (error) {
    if (done.length > 0) cli.stderr.write(`${done.length} of ${due.length} changes were made before this failed:\n`);
    throw error;
  }
  await print(cli, output, plan, { applied: true });
}

async function print(cli: Cli, output: Format, plan: ApplyPlan, { applied }: { applied: boolean }): Promise<void> {
  if (output === 'json' || output === 'yaml') {
    const changes = plan.changes.map(({ action, kind, project, name, fields, effects, rollout }) => ({
      action,
      kind,
      ...(project === '' ? {} : { project }),
      name,
      fields,
      ...(effects ? { effects } : {}),
      ...(rollout ? { rollout } : {}),
    }));
    return printValue(cli, output, { applied, changes });
  }
  const lines = planLines(plan, coloursFor(cli.stdout, cli.environment), { applied });
  cli.stdout.write(`${lines.join('\n')}\n`);
}
