// `berth host restore`: what a drain has moved away returns to its host, one instance after another. Each move is a plan of its own, applied
// by its hash; the command can be repeated after any failure, and continues with what is left.

import { Command } from 'commander';
import type { UserClient } from '../../../api/client/user-client.ts';
import { ApiError } from '../../../api/errors.ts';
import { hostStateName } from '../../../api/resources/host-state.ts';
import { guestActionText, type PlannedGuest } from '../../../api/plans/host-plan.ts';
import type { MigrationPlan } from '../../../api/plans/migration-plan.ts';
import { fingerprint } from '../../../base/hash.ts';
import { describeError } from '../../../base/log.ts';
import type { Cli } from '../../cli.ts';
import { attempting, CommandError, exitCodes, usageError } from '../../exit-codes.ts';
import { untilMoved } from '../../instances/migrate.ts';
import { waitForInstance } from '../../instances/wait.ts';
import { applyCommand } from '../../print/apply-command.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../../print/output.ts';
import { outputOption } from '../../print/output-option.ts';
import { visible } from '../../print/terminal.ts';
import { openSession, type Session } from '../../session.ts';

interface Flags {
  readonly apply?: string;
  readonly yes?: true;
  readonly output: Format;
}

interface Return {
  readonly project: string;
  readonly name: string;
  readonly id: string;
  readonly action: 'moves live' | 'moves cold' | 'stays';
  readonly from?: string | undefined;
  readonly hash?: string;
  /** Why it stays. */
  readonly why?: string;
}

export function restoreCommand(cli: Cli): Command {
  return new Command('restore')
    .description('Show the plan to move back what the last drain of a host has moved away; with --apply carry it out')
    .argument('<host>')
    .option('--apply <hash>', 'carry out the plan with this hash; refused when it has changed')
    .option('-y, --yes', 'carry out the plan as it is now')
    .addOption(outputOption('value'))
    .action(async (host: string, flags: Flags, command: Command) => {
      if (flags.apply !== undefined && flags.yes) throw usageError('give only one of --apply and --yes');
      const session = await openSession(cli, command);
      await attempting(`restore host "${host}"`, () => restore(cli, session, { host, flags, command }), {
        NotFound: 'only a host that was drained can be restored: berth host drain HOST',
      });
    });
}

async function restore(
  cli: Cli,
  session: Session,
  {
    host,
    flags: { apply, yes, output },
    command,
  }: { readonly host: string; readonly flags: Flags; readonly command: Command },
): Promise<void> {
  const returns = await returnsTo(session.client, host);
  const hash = fingerprint(JSON.stringify(returns.map(({ id, action, hash: its }) => [id, action, its])));
  if (apply === undefined && !yes) {
    if (output === 'json' || output === 'yaml') return printValue(cli, output, { host, hash, instances: returns });
    return void cli.stdout.write(
      `${planLines(cli, { host, hash, returns, next: applyCommand(command, hash) }).join('\n')}\n`,
    );
  }
  if (apply !== undefined && apply !== hash)
    throw new ApiError('Conflict', `the plan has changed; look at it again: berth host restore ${host}`);
  const failures = await moveAll(cli, session, { host, returns });
  if (failures > 0)
    throw new CommandError(exitCodes.badOutcome, `${failures} of ${returns.length} instances did not return`, {
      advice: `repeat the command to continue with them: berth host restore ${host}`,
    });
}

/** Instances that are gone, or back already, are left out. */
async function returnsTo(client: UserClient, host: string): Promise<Return[]> {
  const [{ phase, guests }, { spec, status }] = await Promise.all([client.showDrain(host), client.get('host', host)]);
  if (phase === 'Draining' || phase === 'Planned')
    throw new ApiError(
      'Conflict',
      phase === 'Draining'
        ? `the host is being drained; end that first: berth host drain ${host} --cancel`
        : `the last drain of the host was shown, and not applied`,
    );
  if (hostStateName({ spec, status }) === 'Draining')
    throw new ApiError('Conflict', `the host is still closed; open it first: berth host drain ${host} --cancel`);
  const moved = guests.filter(
    ({ kind, action, progress }) => kind === 'instance' && action === 'move' && progress === 'done',
  );
  const returns: Return[] = [];
  for (const guest of moved) {
    const back = await returnOf(client, guest, host);
    if (back) returns.push(back);
  }
  return returns;
}

/** As it left: live if that is possible. */
async function returnOf(client: UserClient, guest: PlannedGuest, host: string): Promise<Return | undefined> {
  const { project, name, id } = guest;
  const planOf = async (live: boolean): Promise<MigrationPlan | undefined> =>
    (await client.migrateInstance(name, { project }, { to: host, ...(live ? { live } : {}) })).plan;
  try {
    const { metadata, status } = await client.get('instance', name, { project });
    if (metadata.id !== id || status.host === host) return undefined;
    const live = guestActionText(guest) === 'moved live' ? await planOf(true) : undefined;
    const plan = live?.obstacles.length === 0 ? live : await planOf(false);
    if (!plan) return undefined;
    const { from, hash, kind, obstacles } = plan;
    if (obstacles.length > 0)
      return { project, name, id, from, action: 'stays', why: obstacles.map(({ message }) => message).join('; ') };
    return { project, name, id, from, action: kind === 'live' ? 'moves live' : 'moves cold', hash };
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NotFound') return undefined;
    throw error;
  }
}

function planLines(
  cli: Cli,
  {
    host,
    hash,
    returns,
    next,
  }: { readonly host: string; readonly hash: string; readonly returns: readonly Return[]; readonly next: string },
): string[] {
  if (returns.length === 0) return [`Nothing returns to host ${host}: what the drain has moved is back, or gone.`];
  const movable = returns.some(({ action }) => action !== 'stays');
  return [
    `Plan to restore host ${host}: its instances return one after the other.`,
    '',
    ...tableLines(columns, returns, { colours: coloursFor(cli.stdout, cli.environment) }),
    '',
    ...(movable ? [`Plan ${hash}. Apply it with:`, visible(`  ${next}`)] : []),
  ];
}

const columns: readonly Column<Return>[] = [
  { header: 'NAME', value: ({ project, name }) => (project === 'default' ? name : `${project}/${name}`) },
  { header: 'FROM', value: ({ from }) => from ?? '' },
  {
    header: 'ACTION',
    value: ({ action }) => action,
    paint: (cell, { action }, colours) => (action === 'stays' ? colours.red(cell) : cell),
  },
  { header: 'WHY', value: ({ why }) => why ?? '' },
];

/** The number of those that did not return. */
async function moveAll(
  cli: Cli,
  session: Session,
  { host, returns }: { readonly host: string; readonly returns: readonly Return[] },
): Promise<number> {
  let failures = 0;
  const failed = (name: string, why: string): void => {
    failures += 1;
    cli.stderr.write(`berth: ${visible(`${name}: ${why}`)}\n`);
  };
  for (const { project, name, id, action, hash, why = '' } of returns) {
    if (hash === undefined) {
      failed(name, why);
      continue;
    }
    const options = { to: host, ...(action === 'moves live' ? { live: true } : {}) };
    try {
      await session.client.migrateInstance(name, { project }, { ...options, apply: hash });
      await waitForInstance(cli, { ...session, project }, { id, name, judge: untilMoved(name) });
      cli.stdout.write(`${visible(`${name} is back on ${host}`)}\n`);
    } catch (error) {
      if (!(error instanceof ApiError) && !(error instanceof CommandError)) throw error;
      failed(name, describeError(error));
    }
  }
  return failures;
}
