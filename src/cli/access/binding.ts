// `berth binding ...`: who has which role, and where.

import { Command } from 'commander';
import type { BindingSpec } from '../../api/resources/binding.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { collect } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

interface CreateOptions {
  readonly role: string;
  readonly forProject?: string;
  readonly user: readonly string[];
  readonly group: readonly string[];
  readonly token: readonly string[];
}

const seeBindings = { NotFound: '"berth binding ls" shows the bindings' } as const;

export function bindingCommand(cli: Cli): Command {
  return new Command('binding')
    .description('Bindings: who has which role, in a project or in the whole fleet')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show the bindings that you may see')
    .option('--role <role>', 'only those of this role')
    .option('--for-project <project>', 'only those in this project')
    .addOption(outputOption('list'))
    .action(
      async (
        { output, role, forProject }: { output: Format; role?: string; forProject?: string },
        command: Command,
      ) => {
        const { client } = await openSession(cli, command);
        const { items } = await attempting('list bindings', () => listAll(client, 'binding'));
        await printList(cli, output, {
          items: items
            .filter(({ spec }) => role === undefined || spec.role === role)
            .filter(({ spec }) => forProject === undefined || spec.project === forProject)
            .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
          columns: kindViews.binding({ nowMs: cli.clock.nowMs() }),
          empty: 'no bindings; create one: berth binding create NAME --role ROLE --for-project PROJECT --token TOKEN',
        });
      },
    );
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a binding')
    .argument('<binding>')
    .addOption(outputOption('value', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const binding = await attempting(`show binding "${name}"`, () => client.get('binding', name), seeBindings);
      await printValue(cli, output === 'json' ? 'json' : 'yaml', binding);
    });
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Give a role to tokens, users or groups')
    .argument('<name>')
    .requiredOption('--role <role>', '"berth role ls" shows them')
    .option('--for-project <project>', 'where it applies; absent: in the whole fleet')
    .option('--token <name>', 'a token; may be repeated', collect, [])
    .option('--user <provider/subject>', 'a user of a login provider; may be repeated', collect, [])
    .option('--group <provider/name>', 'a group of a login provider; may be repeated', collect, [])
    .addHelpText(
      'after',
      `
Examples:
  berth binding create web-devs --role user --for-project web --group corp/developers
  berth binding create web-ci --role user --for-project web --token ci`,
    )
    .action(async (name: string, { role, forProject, ...who }: CreateOptions, command: Command) => {
      const subjects = subjectsOf(who);
      if (subjects.length === 0)
        throw usageError('a binding needs a subject that gets the role', 'name them: --token, --user or --group');
      const spec: BindingSpec = { role, subjects, ...(forProject === undefined ? {} : { project: forProject }) };
      const { client } = await openSession(cli, command);
      await attempting(`create binding "${name}"`, () => client.create('binding', { metadata: { name }, spec }));
      cli.stdout.write(`binding ${name} created\n`);
    });
}

function subjectsOf({ token, user, group }: Pick<CreateOptions, 'token' | 'user' | 'group'>): BindingSpec['subjects'] {
  return [
    ...token.map((name) => ({ kind: 'token' as const, name })),
    ...user.map((text) => ({ kind: 'user' as const, ...ofProvider('--user', text) })),
    ...group.map((text) => ({ kind: 'group' as const, ...ofProvider('--group', text) })),
  ];
}

/** The rest may hold slashes: Keycloak's groups do. */
function ofProvider(flag: string, text: string): { readonly provider: string; readonly name: string } {
  const at = text.indexOf('/');
  if (at < 1 || at === text.length - 1)
    throw usageError(`${flag} cannot be "${text}"`, `write ${flag} PROVIDER/NAME; PROVIDER as in the configuration`);
  return { provider: text.slice(0, at), name: text.slice(at + 1) };
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove bindings; the permissions end at once')
    .argument('<binding...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove binding "${name}"`, () => client.delete('binding', name), seeBindings);
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
