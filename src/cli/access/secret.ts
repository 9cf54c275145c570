// `berth secret ...`: named values for instances and jobs. It sends values and never prints one.

import { Command } from 'commander';
import { ApiError } from '../../api/errors.ts';
import type { Secret, SecretSpec } from '../../api/resources/secret.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { readTextFile } from '../options/read-file.ts';
import { age } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

interface ValueOptions {
  readonly fromLiteral: readonly string[];
  readonly fromFile: readonly string[];
  readonly fromStdin?: string;
}

interface CreateOptions extends ValueOptions {
  readonly description: string;
}

interface SetOptions extends ValueOptions {
  readonly unset: readonly string[];
}

export function secretCommand(cli: Cli): Command {
  return new Command('secret')
    .description('Secrets: named values for instances and jobs, which are never shown')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(setCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all secrets, with the names of their values')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list secrets', () => listAll(client, 'secret', { project }));
      await printList(cli, output, {
        items: items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
        columns: kindViews.secret({ nowMs: cli.clock.nowMs() }),
        empty: 'no secrets; create one: berth secret create NAME --from-file KEY=PATH',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show the names of the values of a secret, and when each was set')
    .argument('<name>')
    .option('--json', 'as JSON')
    .action(async (name: string, { json }: { json?: true }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const secret = await attempting(`show secret "${name}"`, () => client.get('secret', name, { project }), {
        NotFound: '"berth secret ls" shows the secrets',
      });
      if (json) return printValue(cli, 'json', secret);
      const nowMs = cli.clock.nowMs();
      const lines = tableLines(
        [
          { header: 'VALUE', value: ([key]) => key },
          { header: 'SET', value: ([, { updatedAtMs }]) => `${age(nowMs - updatedAtMs)} ago` },
        ],
        Object.entries(secret.status.keys),
      );
      cli.stdout.write(`${secret.metadata.name}, version ${secret.status.version}\n${lines.join('\n')}\n`);
    });
}

function withValueOptions(command: Command): Command {
  return command
    .option('--from-literal <key=value>', 'process lists and shell history show it; may be repeated', collect, [])
    .option('--from-file <key=path>', 'the text of a file; may be repeated', collect, [])
    .option('--from-stdin <key>', 'the text of standard input, without a newline at its end');
}

function createCommand(cli: Cli): Command {
  return withValueOptions(new Command('create').description('Create a secret').argument('<name>'))
    .option('--description <text>', 'free text', '')
    .action(async (name: string, options: CreateOptions, command: Command) => {
      const spec: SecretSpec = { description: options.description, values: await valuesOf(cli, options) };
      const { client, project } = await openSession(cli, command);
      await attempting(
        `create secret "${name}"`,
        () => client.create('secret', { metadata: { name, project }, spec }),
        { AlreadyExists: `change its values: berth secret set ${name} --from-file KEY=PATH` },
      );
      cli.stdout.write(`secret ${name} created\n`);
    });
}

function setCommand(cli: Cli): Command {
  return withValueOptions(
    new Command('set').description('Set or remove values of a secret; others stay').argument('<name>'),
  )
    .option('--unset <key>', 'remove a value; may be repeated', collect, [])
    .action(async (name: string, options: SetOptions, command: Command) => {
      const set = await valuesOf(cli, options);
      const values = { ...set, ...Object.fromEntries(options.unset.map((key) => [key, null])) };
      if (Object.keys(values).length === 0)
        throw usageError('there is nothing to set', 'write --from-file KEY=PATH, --from-stdin KEY or --unset KEY');
      const { client, project } = await openSession(cli, command);
      const secret = await attempting(`set secret "${name}"`, () => replaced(name));
      cli.stdout.write(
        `secret ${name} is at version ${secret.status.version}; guests get the values when they are created\n`,
      );

      async function replaced(which: string): Promise<Secret> {
        for (let attempt = 1; ; attempt++) {
          const { metadata, spec } = await client.get('secret', which, { project });
          const body = {
            metadata: { project, labels: metadata.labels, revision: metadata.revision },
            spec: { description: spec.description, values },
          };
          try {
            return await client.replace('secret', which, body);
          } catch (error) {
            const changed = error instanceof ApiError && error.code === 'RevisionMismatch';
            if (!changed || attempt === attemptsMax) throw error;
          }
        }
      }
    });
}

const attemptsMax = 5;

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove secrets that nothing uses')
    .argument('<secret...>')
    .option('--force', 'even if an instance or a job uses it and then cannot be created again')
    .action(async (names: readonly string[], { force = false }: { force?: boolean }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove secret "${name}"`, () => client.delete('secret', name, { project, force }), {
          NotFound: '"berth secret ls" shows the secrets',
        });
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

const valueBytesMax = 128 * 1024;

async function valuesOf(cli: Cli, { fromLiteral, fromFile, fromStdin }: ValueOptions): Promise<Record<string, string>> {
  const values: Record<string, string> = {};
  const set = (key: string, value: string): void => {
    if (values[key] !== undefined) throw usageError(`the value "${key}" is given twice`);
    values[key] = value;
  };
  for (const pair of fromLiteral) {
    const [key, value] = split(pair, '--from-literal', 'KEY=VALUE');
    set(key, value);
  }
  for (const pair of fromFile) {
    const [key, path] = split(pair, '--from-file', 'KEY=PATH');
    set(key, await readText(cli, path));
  }
  if (fromStdin !== undefined) set(fromStdin, (await readText(cli, '-')).replace(/\r?\n$/, ''));
  return values;
}

/** Without the pair itself in the message: it may be a secret. */
function split(pair: string, flag: string, form: string): readonly [string, string] {
  const at = pair.indexOf('=');
  if (at < 1) throw usageError(`${flag} is not ${form}`, `write ${flag} ${form}`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}

async function readText(cli: Cli, path: string): Promise<string> {
  const text = await readTextFile(cli, path, { what: 'a value', bytesMax: valueBytesMax });
  if (text.includes('\0') || text.includes('\uFFFD'))
    throw usageError(
      `cannot use ${path === '-' ? 'standard input' : path} as a value: it is not text`,
      'encode it, as with base64',
    );
  return text;
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}
