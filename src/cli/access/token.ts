// `berth token ...`: credentials for people and programs. The text of a token is written once, to standard output.

import { Command } from 'commander';
import type { Extension, TokenRequest } from '../../api/routes/access.ts';
import type { Token } from '../../api/resources/token.ts';
import type { Issued } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { parseDurationMs, parseLabels, collect, age } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { fieldLines, type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

export function tokenCommand(cli: Cli): Command {
  return new Command('token')
    .description('Tokens: credentials for people and programs')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(extendCommand(cli))
    .addCommand(revokeCommand(cli));
}

const seeTokens = { NotFound: '"berth token ls" shows the tokens' } as const;

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show the tokens that you may see, with their last use')
    .option('--expired', 'only those that have expired')
    .addOption(outputOption('list'))
    .action(async ({ output, expired }: { output: Format; expired?: true }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list tokens', () => listAll(client, 'token'));
      const nowMs = cli.clock.nowMs();
      const hasExpired = ({ spec }: Token): boolean => (spec.expiresAtMs ?? Number.POSITIVE_INFINITY) <= nowMs;
      await printList(cli, output, {
        items: items
          .filter((token) => !expired || hasExpired(token))
          .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
        columns: kindViews.token({ nowMs }),
        empty: 'no tokens; create one: berth token create NAME --role ROLE --for-project PROJECT',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a token, without its text')
    .argument('<token>', 'its name or id')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const token = await attempting(`show token "${name}"`, () => client.get('token', name), seeTokens);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, token);
      cli.stdout.write(`${fieldLines(fieldsOf(token, cli.clock.nowMs())).join('\n')}\n`);
    });
}

function fieldsOf({ metadata, spec, status }: Token, nowMs: number): [string, string | undefined][] {
  const { share, user, owner, project, role } = spec;
  return [
    ['name', metadata.name],
    ['id', metadata.id],
    ['token id', status.tokenId],
    ['role', role],
    ['project', project ?? (role === undefined ? undefined : '(fleet)')],
    ['share', share && `${share.verbs.join(', ')} of instance ${share.instance}`],
    ['user', user && `${user.name ?? user.subject} (${user.provider})`],
    ['made by', owner && `token ${owner.name}`],
    ['expires', expiryText(spec.expiresAtMs, nowMs)],
    ['last use', status.lastUsedAtMs === undefined ? 'never' : `${age(nowMs - status.lastUsedAtMs)} ago`],
    ['created', `${age(nowMs - metadata.createdAtMs)} ago`],
    ['description', spec.description],
  ];
}

export function expiryText(expiresAtMs: number | undefined, nowMs: number): string {
  if (expiresAtMs === undefined) return 'never';
  return expiresAtMs <= nowMs ? 'expired' : `in ${age(expiresAtMs - nowMs)}`;
}

interface CreateOptions {
  readonly name?: string;
  readonly role?: string;
  readonly forProject?: string;
  readonly expires?: string;
  readonly description: string;
  readonly label: readonly string[];
  readonly output: Format;
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create a token; its text is shown only once')
    .argument('[name]', 'for listing and revoking it')
    .option('--name <name>', 'the same, as an option')
    .option('--role <role>', 'what it permits: "berth role ls"; absent: only what bindings give it')
    .option('--for-project <project>', 'where the role applies; absent: in the whole fleet')
    .option('--expires <duration>', '30d, 12h, or "never" (fleet administrators only); default: 90d')
    .option('--description <text>', 'free text', '')
    .option('--label <key=value>', 'may be repeated', collect, [])
    .addOption(outputOption('value'))
    .addHelpText(
      'after',
      `
Examples:
  berth token create ci --role user --for-project web --expires 30d
  berth token create scrape --role metrics --expires never -o json | jq -r .token`,
    )
    .action(async (argument: string | undefined, options: CreateOptions, command: Command) => {
      const name = nameOf(argument, options.name);
      const { role, forProject: project, description, label } = options;
      const body: TokenRequest = {
        metadata: { name, labels: parseLabels('--label', label) },
        spec: {
          description,
          ...(role === undefined ? {} : { role }),
          ...(project === undefined ? {} : { project }),
          ...lifetimeOf(options.expires),
        },
      };
      const { client } = await openSession(cli, command);
      const issued = await attempting(`create token "${name}"`, () => client.createToken(body));
      await printIssued(cli, options.output, issued, permitsText(issued.resource));
    });
}

function nameOf(argument: string | undefined, option: string | undefined): string {
  const name = argument ?? option;
  if (name === undefined)
    throw usageError('the token has no name', 'berth token create NAME --role ROLE --for-project PROJECT');
  if (option !== undefined && option !== name)
    throw usageError(`the token has two names: "${name}" and --name "${option}"`, 'give one of them');
  return name;
}

function permitsText({ spec: { role, project } }: Token): string {
  if (role === undefined) return 'permits what bindings give it: berth binding create';
  return `role ${role} ${project === undefined ? 'in the whole fleet' : `in project ${project}`}`;
}

/** The text alone goes to standard output, so that a shell can keep it. */
export async function printIssued(cli: Cli, output: Format, issued: Issued, permits: string): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, issued);
  const { metadata, spec } = issued.resource;
  cli.stdout.write(`${issued.token}\n`);
  cli.stderr.write(
    `${metadata.name} created: ${permits}; expires ${expiryText(spec.expiresAtMs, cli.clock.nowMs())}. Keep this text: it is not shown again\n`,
  );
}

/** `never`, or a time from now. */
export function lifetimeOf(expires: string | undefined): Extension {
  if (expires === undefined) return {};
  if (expires === 'never') return { neverExpires: true };
  const expiresInSec = Math.floor(parseDurationMs('--expires', expires) / 1000);
  if (expiresInSec < 1) throw usageError('--expires must be at least a second');
  return { expiresInSec };
}

function extendCommand(cli: Cli): Command {
  return new Command('extend')
    .description('Change when a token expires, counted from now')
    .argument('<token>')
    .option('--expires <duration>', '30d, 12h, or "never"; default: 90d')
    .action(async (name: string, { expires }: { expires?: string }, command: Command) => {
      const lifetime = lifetimeOf(expires);
      const { client } = await openSession(cli, command);
      const token = await attempting(`extend token "${name}"`, () => client.extendToken(name, lifetime), seeTokens);
      cli.stdout.write(`${token.metadata.name} expires ${expiryText(token.spec.expiresAtMs, cli.clock.nowMs())}\n`);
    });
}

export function revokeCommand(cli: Cli): Command {
  return new Command('revoke')
    .alias('rm')
    .description('Revoke tokens and close their open connections')
    .argument('<token...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`revoke token "${name}"`, () => client.delete('token', name), seeTokens);
        cli.stdout.write(`${name} revoked\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
