// `berth config check` and `berth config show`: the configuration of a server or an agent, without starting it.

import { Command, Option } from 'commander';
import type { ConfigOrigin } from '../../api/config.ts';
import type { Cli } from '../../cli/cli.ts';
import { usageError } from '../../cli/exit-codes.ts';
import { readYamlFile } from '../../cli/options/yaml-file.ts';
import { type Format, printTable, printValue } from '../../cli/print/output.ts';
import { outputOption } from '../../cli/print/output-option.ts';
import { withoutSecrets } from './hidden-secrets.ts';
import { type Resolved, type Role, resolveAgent, resolveRole, resolveServer, roleOfKeys, roles } from './roles.ts';

interface RoleFlags {
  readonly server?: true;
  readonly agent?: true;
}

export function configCommand(cli: Cli): Command {
  return new Command('config')
    .description('Check and show the configuration of servers and agents')
    .addCommand(checkCommand(cli))
    .addCommand(showCommand(cli));
}

function checkCommand(cli: Cli): Command {
  return withRoleOptions(new Command('check'))
    .description('Check a configuration file, without starting anything; environment variables are not read')
    .argument('<file>', 'YAML file of a server or an agent; without --server or --agent its keys tell which')
    .action(async (file: string, flags: RoleFlags) => {
      const role = roleOf(flags) ?? roleOfKeys(await readYamlFile(file, 'the configuration'));
      const fileOnly = { environment: {} };
      const { origins } = await (role === 'server' ? resolveServer(fileOnly, file) : resolveAgent(fileOnly, file));
      const set = [...origins.values()].filter(({ source }) => source === 'file').length;
      cli.stdout.write(`${file} is a valid configuration of berth ${role}; it sets ${set} of its keys\n`);
    });
}

function showCommand(cli: Cli): Command {
  return withRoleOptions(new Command('show'))
    .description('Show the effective configuration, and where each value comes from; secrets are hidden')
    .option('--config <file>', 'as of berth server and berth agent (BERTH_SERVER_CONFIG, BERTH_AGENT_CONFIG)')
    .option('--changed', 'only what differs from the defaults')
    .addOption(outputOption('value'))
    .action(async (flags: RoleFlags & { config?: string; changed?: true; output: Format }) => {
      const role = roleOf(flags);
      if (role === undefined)
        throw usageError('name the process whose configuration is shown', 'give --server or --agent');
      const rows = rowsOf(role, await resolveRole(role, cli, flags.config));
      const shown = flags.changed ? rows.filter(({ source }) => source !== 'default') : rows;
      if (flags.output === 'json' || flags.output === 'yaml') return printValue(cli, flags.output, shown);
      printTable(cli, columns, shown);
    });
}

interface Row extends ConfigOrigin {
  readonly key: string;
  /** null: not set, and without a default. */
  readonly value: unknown;
}

const columns = [
  { header: 'KEY', value: ({ key }: Row) => key },
  { header: 'VALUE', value: ({ value }: Row) => textOf(value), importance: 'major', longest: 120 },
  { header: 'SOURCE', value: ({ source, name }: Row) => (name === undefined ? source : `${source} ${name}`) },
] as const;

function textOf(value: unknown): string {
  if (value === null) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function rowsOf(role: Role, { config, origins }: Resolved): Row[] {
  return Object.keys(roles[role].schema.properties).map((key) => ({
    key,
    value: withoutSecrets(config[key], key) ?? null,
    ...(origins.get(key) ?? { source: 'default' }),
  }));
}

function withRoleOptions(command: Command): Command {
  return command
    .addOption(new Option('--server', 'the configuration of berth server').conflicts('agent'))
    .addOption(new Option('--agent', 'the configuration of berth agent'));
}

function roleOf({ server, agent }: RoleFlags): Role | undefined {
  if (server) return 'server';
  return agent ? 'agent' : undefined;
}
