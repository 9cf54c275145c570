// `berth whoami` and `berth can-i`: who the server takes you for, and what you may do.

import { Command } from 'commander';
import type { CanIRequest, WhoAmI } from '../../api/routes/access.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandExit } from '../exit-codes.ts';
import { kindOf } from '../kinds.ts';
import { fieldLines, type Format, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { globalFlags, openSession } from '../session.ts';
import { expiryText } from './token.ts';

export function whoAmICommand(cli: Cli): Command {
  return new Command('whoami')
    .description('Show your identity and your roles')
    .addOption(outputOption('value'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const who = await attempting('ask who you are', () => client.whoAmI());
      if (output === 'json' || output === 'yaml') return printValue(cli, output, who);
      cli.stdout.write(`${linesOf(who, cli.clock.nowMs()).join('\n')}\n`);
    });
}

function linesOf(who: WhoAmI, nowMs: number): string[] {
  const { kind, name, user, owner, share, expiresAtMs, roles } = who;
  return [
    ...fieldLines([
      ['you are', kind === 'admin' ? 'the admin (operator.token)' : `token ${name ?? ''}`],
      ['token id', who.tokenId],
      ['user', user && `${user.name ?? user.subject} (${user.provider})`],
      ['groups', user?.groups.join(', ')],
      ['made by', owner === undefined ? undefined : `token ${owner}`],
      ['share', share && `${share.verbs.join(', ')} of instance ${share.instance}`],
      ['expires', expiryText(expiresAtMs, nowMs)],
    ]),
    ...(roles.length === 0 && share === undefined ? ['no role: ask an administrator for a binding'] : []),
    ...roles.map(
      ({ role, project, binding }) =>
        `role      ${role} ${project === undefined ? 'in the whole fleet' : `in project ${project}`}${binding === undefined ? '' : `, by binding ${binding}`}`,
    ),
  ];
}

export function canICommand(cli: Cli): Command {
  return new Command('can-i')
    .description('Check whether you may do something; the exit code is 0 for yes, 1 for no')
    .argument('<verb>', 'read, create, update, delete, exec, console, logs, use, ...')
    .argument('<resource>', 'instance, job, volume, host, ...')
    .argument('[name]', 'of one object')
    .option('-q, --quiet', 'print nothing')
    .option('--whole-fleet', 'in all projects, instead of one')
    .addHelpText(
      'after',
      '\nExamples:\n  berth can-i create instance --project web\n  berth can-i console instance web-1 --project web',
    )
    .action(
      async (
        verb: string,
        word: string,
        name: string | undefined,
        { quiet, wholeFleet }: { quiet?: true; wholeFleet?: true },
        command: Command,
      ) => {
        const { client, project } = await openSession(cli, command);
        const resource = kindOf(word) ?? word; // also a plural
        const inProject = !wholeFleet && (ofProjects.has(resource) || globalFlags(command).project !== undefined);
        const question = {
          verb,
          resource,
          ...(inProject ? { project } : {}),
          ...(name === undefined ? {} : { name }),
        } as CanIRequest; // the server names the verbs and resources that it knows
        const { allowed, reason } = await attempting('ask what you may do', () => client.canI(question));
        if (!quiet) cli.stdout.write(allowed ? 'yes\n' : `no: ${reason ?? 'it is not permitted'}\n`);
        if (!allowed) throw new CommandExit(1);
      },
    );
}

/** Whose objects have a project, and which therefore are asked about in one. */
const ofProjects: ReadonlySet<string> = new Set([
  'instance',
  'job',
  'task',
  'workload',
  'warmPool',
  'jobTemplate',
  'spare',
  'group',
  'volume',
  'secret',
  'webhook',
  'event',
]);
