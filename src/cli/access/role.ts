// `berth role ...`: named sets of permissions, the built-in ones and your own.

import { Command } from 'commander';
import type { AccessResource, RoleRules, Verb } from '../../api/access.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { oneOf } from '../options/place-options.ts';
import { age, collect } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';

interface RoleOptions {
  readonly rule: readonly string[];
  readonly description?: string;
}

const seeRoles = { NotFound: '"berth role ls" shows the roles' } as const;

export function roleCommand(cli: Cli): Command {
  return new Command('role')
    .description('Roles: named sets of permissions')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(setCommand(cli))
    .addCommand(rmCommand(cli));
}

interface Shown {
  readonly metadata: { readonly name: string; readonly createdAtMs?: number };
  readonly spec: { readonly description: string; readonly rules: RoleRules };
  readonly builtIn: boolean;
}

/** Loaded late: it brings schemas. */
async function builtInRoles(): Promise<Shown[]> {
  const { builtInRoles: roles } = await import('../../api/access.ts');
  return Object.entries(roles).map(([name, spec]) => ({ metadata: { name }, spec, builtIn: true }));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all roles, the built-in ones first')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      // Who may not read custom roles still has the built-in ones.
      const { allowed } = await attempting('list roles', () => client.canI({ verb: 'read', resource: 'role' }));
      const custom = allowed ? (await attempting('list roles', () => listAll(client, 'role'))).items : [];
      const items: Shown[] = custom.map(({ metadata, spec }) => ({ metadata, spec, builtIn: false }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      const nowMs = cli.clock.nowMs();
      await printList(cli, output, {
        items: [...(await builtInRoles()), ...items],
        columns: [
          { header: 'NAME', value: ({ metadata }) => metadata.name },
          { header: 'BUILT IN', value: ({ builtIn }) => (builtIn ? 'yes' : 'no') },
          {
            header: 'AGE',
            value: ({ metadata: { createdAtMs } }) => (createdAtMs === undefined ? '' : age(nowMs - createdAtMs)),
            right: true,
          },
          { header: 'DESCRIPTION', value: ({ spec }) => spec.description },
        ],
        empty: 'no roles',
      });
      if (!allowed) cli.stderr.write('berth: custom roles are not shown: your token does not permit to read them\n');
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show what a role permits')
    .argument('<role>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const builtIn = (await builtInRoles()).find(({ metadata }) => metadata.name === name);
      const role = builtIn ?? (await custom());
      if (output === 'json' || output === 'yaml') return printValue(cli, output, role);
      const rules = tableLines(
        [
          { header: 'RESOURCE', value: ([resource]) => resource },
          { header: 'VERBS', value: ([, verbs]) => verbs.join(', ') },
        ],
        Object.entries(role.spec.rules),
      );
      const { description } = role.spec;
      cli.stdout.write(`${name}${description === '' ? '' : `: ${description}`}\n${rules.join('\n')}\n`);

      async function custom() {
        const { client } = await openSession(cli, command);
        return attempting(`show role "${name}"`, () => client.get('role', name), seeRoles);
      }
    });
}

const ruleHelp = 'a resource and its verbs, as instance=read,console; may be repeated';

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create a role')
    .argument('<name>')
    .option('--rule <resource=verbs>', ruleHelp, collect, [])
    .option('--description <text>', 'free text')
    .addHelpText(
      'after',
      '\nExample:\n  berth role create watcher --rule instance=read,logs --rule job=read,logs --rule event=read',
    )
    .action(async (name: string, { rule, description = '' }: RoleOptions, command: Command) => {
      const rules = await rulesOf(rule);
      if (Object.keys(rules).length === 0)
        throw usageError('a role without rules permits nothing', 'write --rule instance=read,console');
      const { client } = await openSession(cli, command);
      const spec = { description, rules };
      await attempting(`create role "${name}"`, () => client.create('role', { metadata: { name }, spec }));
      cli.stdout.write(`role ${name} created\n`);
    });
}

function setCommand(cli: Cli): Command {
  return new Command('set')
    .description('Change a role; every binding and token with it has the new rules at once')
    .argument('<role>')
    .option('--rule <resource=verbs>', `${ruleHelp}; RESOURCE= removes it; other resources stay`, collect, [])
    .option('--description <text>', 'free text')
    .action(async (name: string, { rule, description }: RoleOptions, command: Command) => {
      if (rule.length === 0 && description === undefined)
        throw usageError(`no change of role "${name}" is given`, '"berth role set --help" shows the options');
      const given = await rulesOf(rule, 'remove');
      const { client } = await openSession(cli, command);
      await attempting(
        `change role "${name}"`,
        () =>
          replace(client, {
            kind: 'role',
            name,
            change: ({ spec }) => ({
              description: description ?? spec.description,
              rules: Object.fromEntries(
                Object.entries({ ...spec.rules, ...given }).filter(([, verbs]) => verbs.length > 0),
              ),
            }),
          }),
        seeRoles,
      );
      cli.stdout.write(`role ${name} changed\n`);
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove roles that no binding and no token uses')
    .argument('<role...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove role "${name}"`, () => client.delete('role', name), seeRoles);
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

/** `remove`: no verbs take a resource away. */
async function rulesOf(texts: readonly string[], empty?: 'remove'): Promise<RoleRules> {
  const { accessResources, verbs } = await import('../../api/access.ts');
  const rules: Partial<Record<AccessResource, readonly Verb[]>> = {};
  for (const text of texts) {
    const at = text.indexOf('=');
    if (at < 1) throw usageError(`--rule cannot be "${text}"`, 'write --rule RESOURCE=VERB,VERB');
    const resource = oneOf('--rule', text.slice(0, at), accessResources);
    const words = text
      .slice(at + 1)
      .split(',')
      .filter((word) => word !== '');
    if (words.length === 0 && empty !== 'remove') throw usageError(`--rule "${text}" has no verbs`);
    rules[resource] = [...new Set([...(rules[resource] ?? []), ...words.map((word) => oneOf('--rule', word, verbs))])];
  }
  return rules;
}
