// `berth migrate`: the plan to move an instance to another host, then the move by the hash of the plan.

import { Command } from 'commander';
import type { UserClient } from '../../api/client/user-client.ts';
import type { MigrateOptions, MigrationPlan } from '../../api/plans/migration-plan.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Migration } from '../../api/resources/migration.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandExit, exitCodes, usageError } from '../exit-codes.ts';
import { refuseNeedless } from '../options/needless-options.ts';
import { bytes, parseBandwidth } from '../options/units.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession, type Session } from '../session.ts';
import { type Judge, waitForInstance } from './wait.ts';

interface Flags {
  readonly live?: true;
  readonly to?: string;
  readonly bandwidth?: string;
  readonly apply?: string;
  readonly yes?: true;
  readonly wait?: true;
  readonly cancel?: true;
  readonly output: Format;
}

/** What a plan depends on. */
const choices: readonly (keyof Flags)[] = ['live', 'to', 'bandwidth'];

export function migrateCommand(cli: Cli): Command {
  return new Command('migrate')
    .description('Show the plan to move an instance to another host; with --apply carry it out')
    .argument('<instance>')
    .option('--live', 'move it while it runs, with a pause of a moment; default: stop it while it is copied')
    .option('--to <host>', 'move it to this host; default: the best one')
    .option('--bandwidth <size>', 'copy at most this much per second, such as 100MiB; default: no limit')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .option('-y, --yes', 'carry out the plan as it is now')
    .option('-w, --wait', 'show its progress until it has ended')
    .option('--cancel', 'cancel a move that is not committed; the instance stays on its host')
    .addOption(outputOption('value'))
    .action(async (name: string, flags: Flags, command: Command) => {
      const verbs = [flags.apply, flags.yes, flags.cancel].filter((flag) => flag !== undefined);
      if (verbs.length > 1) throw usageError('give only one of --apply, --yes and --cancel');
      if (flags.cancel) refuseNeedless(command, [...choices, 'wait'], '--cancel');
      if (flags.wait && verbs.length === 0) refuseNeedless(command, choices, '--wait without --apply or --yes');
      const options = optionsOf(flags);
      const session = await openSession(cli, command);
      await attempting(`move instance "${name}"`, () => migrate(cli, session, { name, flags, options, command }));
    });
}

interface Asked {
  readonly name: string;
  readonly flags: Flags;
  readonly options: MigrateOptions;
  readonly command: Command;
}

function optionsOf({ live, to, bandwidth }: Flags): MigrateOptions {
  return {
    ...(live === undefined ? {} : { live }),
    ...(to === undefined ? {} : { to }),
    ...(bandwidth === undefined ? {} : { bytesPerSecondMax: parseBandwidth('--bandwidth', bandwidth) }),
  };
}

async function migrate(cli: Cli, session: Session, { name, flags, options, command }: Asked): Promise<void> {
  const { client, project } = session;
  const { output, apply, yes, wait, cancel } = flags;
  if (cancel) return tell(cli, output, name, await client.cancelMigration(name, { project }));
  const hash = apply ?? (yes ? await hashNow(client, { name, project, options }) : undefined);
  if (hash !== undefined) {
    const { migration } = await client.migrateInstance(name, { project }, { ...options, apply: hash });
    if (migration && !wait) return tell(cli, output, name, migration);
  } else if (!wait) {
    const { plan } = await client.migrateInstance(name, { project }, options);
    if (plan) await printPlan(cli, output, plan, applyCommand(command, plan.hash));
    if (plan && plan.obstacles.length > 0) throw new CommandExit(exitCodes.badOutcome);
    return;
  }
  const { metadata } = await client.get('instance', name, { project });
  const moved = await waitForInstance(cli, session, { id: metadata.id, name, judge: untilMoved(name) });
  await tell(cli, output, name, moved);
}

async function hashNow(
  client: UserClient,
  asked: { readonly name: string; readonly project: string; readonly options: MigrateOptions },
): Promise<string | undefined> {
  const { name, project, options } = asked;
  return (await client.migrateInstance(name, { project }, options)).plan?.hash;
}

async function printPlan(cli: Cli, output: Format, plan: MigrationPlan, next: string): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, plan);
  cli.stdout.write(
    `${planLines(plan, next)
      .map((line) => visible(line))
      .join('\n')}\n`,
  );
}

function planLines({ instance, kind, from, to, way, copies, obstacles, hash }: MigrationPlan, next: string): string[] {
  if (obstacles.length > 0)
    return [
      `Instance ${instance} cannot move${from === undefined ? '' : ` from ${from}`}:`,
      ...obstacles.map(({ code, message }) => `  ${code}: ${message}`),
    ];
  return [
    `Plan to move instance ${instance} from ${from} to ${to}: ${
      kind === 'live'
        ? 'it keeps running while its disk and its memory are copied, and is paused for a moment.'
        : 'it is stopped while its files are copied, and then starts there.'
    }`,
    ...copies.map(({ what, gibMax }) => `  copied: ${what}${gibMax === 0 ? '' : `, at most ${gibMax} GiB`}`),
    `  transport: ${way === 'direct' ? 'from host to host' : 'through the control plane'}`,
    '',
    `Plan ${hash}. Apply it with:`,
    `  ${next}`,
  ];
}

async function tell(cli: Cli, output: Format, name: string, migration: Migration): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, migration);
  cli.stdout.write(`${visible(`${name}: ${textOfMigration(migration)}`)}\n`);
}

function textOfMigration({ step, from, to, seen, message, stoodStillMs }: Migration): string {
  const amount = seen?.ofBytes === undefined ? '' : `, ${bytes(seen.bytes)} of ${bytes(seen.ofBytes)}`;
  const why = message ?? seen?.message;
  const still = stoodStillMs === undefined ? '' : `, stood still for ${stoodStillMs} ms`;
  return `${step}, from ${from} to ${to}${amount}${still}${why === undefined ? '' : `: ${why}`}`;
}

/** Done when the instance runs on its new host, or is stopped there. */
export function untilMoved(name: string): Judge<'instance', Migration> {
  return (instance: Instance | undefined) => {
    const migration = instance?.status.migration;
    if (!instance) return { failed: `instance "${name}" was removed` };
    if (!migration) return { failed: `instance "${name}" does not move` };
    const { step, to } = migration;
    if (step === 'Failed' || step === 'Cancelled')
      return {
        failed: `instance "${name}" did not move: ${textOfMigration(migration)}`,
        advice: `berth events ${name}`,
      };
    const { phase, host } = instance.status;
    const rests = phase === 'Running' || phase === 'Stopped';
    if (step === 'Done' && (host !== to || rests)) return { done: migration };
    if (step === 'Done' && (phase === 'Failed' || phase === 'Exited'))
      return { failed: `instance "${name}" moved to ${to}, and is ${phase} there`, advice: `berth events ${name}` };
    return { waiting: textOfMigration(migration) };
  };
}
