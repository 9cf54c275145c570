// `berth context ...`: the servers that a user works with. Tokens come from a file or standard input, never from a
// flag.

import { resolve } from 'node:path';
import { Command } from 'commander';
import { nearest } from '../api/nearest.ts';
import { adviceOnSecretFile } from '../base/system.ts';
import type { Cli } from './cli.ts';
import { type Context, contextFilePath, contextName, readContexts, writeContexts } from './context-file.ts';
import { type CommandError, usageError } from './exit-codes.ts';
import { type Format, printList } from './print/output.ts';
import { outputOption } from './print/output-option.ts';
import { readTextFile } from './options/read-file.ts';
import { authorityAt, checkedUrls, withAuthorities } from './session.ts';

export function contextCommand(cli: Cli): Command {
  return new Command('context')
    .description('Contexts: the servers you use')
    .addCommand(lsCommand(cli))
    .addCommand(useCommand(cli))
    .addCommand(setCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show the contexts; tokens stay hidden')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }) => {
      const { current, contexts } = await readContexts(contextFilePath(cli));
      const items = Object.entries(contexts).map(([name, { url, token, project }]) => ({
        metadata: { name },
        current: name === current,
        url,
        hasToken: token !== undefined,
        project: project ?? 'default',
      }));
      await printList(cli, output, {
        items,
        columns: [
          { header: '', value: (row) => (row.current ? '*' : ' ') },
          { header: 'NAME', importance: 'major', value: ({ metadata }) => metadata.name },
          { header: 'URL', value: ({ url }) => url },
          { header: 'TOKEN', value: ({ hasToken }) => (hasToken ? 'yes' : 'no') },
          { header: 'PROJECT', value: ({ project }) => project },
        ],
        empty: 'no contexts; create one with "berth dev" or "berth context set NAME --url URL"',
      });
    });
}

function useCommand(cli: Cli): Command {
  return new Command('use')
    .description('Switch to another context')
    .argument('<context>')
    .action(async (name: string) => {
      const path = contextFilePath(cli);
      const file = await readContexts(path);
      if (!Object.hasOwn(file.contexts, name)) throw unknown(name, file.contexts, path);
      await writeContexts(path, { ...file, current: name });
      cli.stdout.write(`${name} is current\n`);
    });
}

interface SetOptions {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly caFingerprint?: string;
  readonly insecureHttp?: boolean;
  readonly project?: string;
  readonly use?: true;
}

function setCommand(cli: Cli): Command {
  return new Command('set')
    .description('Create or change a context')
    .argument('<name>')
    .option('--url <url>', 'http://HOST:PORT or https://HOST; separate several servers with commas')
    .option('--token-file <file>', 'file that holds the token; - reads standard input')
    .option('--ca <file>', 'PEM file of authorities to trust for https:, besides those that Node trusts')
    .option('--ca-fingerprint <fingerprint>', "sha256:... of the fleet's own authority; trust no other")
    .option('--insecure-http', 'send the token to other machines over plain HTTP, where it can be read')
    .option('--project <project>', 'project for commands that do not name one')
    .option('--use', 'make it the current context')
    .action(async (name: string, _options: unknown, command: Command) => {
      // --url and --project are also flags of `berth` itself, which may have parsed them.
      const options = command.optsWithGlobals<SetOptions>();
      if (!contextName.test(name))
        throw usageError(`a context cannot be called "${name}"`, 'use letters, digits and . _ -');
      const path = contextFilePath(cli);
      const file = await readContexts(path);
      const before = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined;
      const url = options.url === undefined ? before?.url : checkedUrls(options.url).join();
      if (url === undefined) throw usageError(`context "${name}" is new and needs a --url`);
      // A token belongs to one server: it is dropped when the context's address changes.
      const kept = before?.url === url ? before?.token : undefined;
      const token = options.tokenFile === undefined ? kept : await readToken(cli, options.tokenFile);
      const project = options.project ?? before?.project;
      const ca = options.ca === undefined ? before?.ca : resolve(options.ca);
      if (options.ca !== undefined) await withAuthorities(options.ca);
      const authorities =
        options.caFingerprint === undefined
          ? before?.url === url && options.ca === undefined
            ? before.authorities
            : undefined
          : await authorityAt(url.split(','), options.caFingerprint);
      const insecureHttp = options.insecureHttp ?? (before?.url === url && before.insecureHttp);
      const context: Context = {
        url,
        ...(ca === undefined || options.caFingerprint !== undefined ? {} : { ca }),
        ...(authorities === undefined ? {} : { authorities }),
        ...(insecureHttp ? { insecureHttp } : {}),
        ...(token === undefined ? {} : { token }),
        ...(token === undefined || token !== before?.token || before.tokenName === undefined
          ? {}
          : { tokenName: before.tokenName }),
        ...(project === undefined ? {} : { project }),
      };
      const current = options.use || file.current === undefined ? name : file.current;
      await writeContexts(path, { current, contexts: { ...file.contexts, [name]: context } });
      const which =
        current === name ? 'it is current' : `"${current}" stays current: "berth context use ${name}" switches`;
      cli.stdout.write(`context ${name} ${before ? 'changed' : 'created'}; ${which}\n`);
    });
}

async function readToken(cli: Cli, path: string): Promise<string> {
  const advice = path === '-' ? undefined : await adviceOnSecretFile(path);
  if (advice !== undefined) cli.stderr.write(`berth: ${advice}\n`);
  const token = (await readTextFile(cli, path, { what: 'the token', bytesMax: 4096 })).trim();
  if (!/^[\x21-\x7e]+$/.test(token))
    throw usageError(
      `${path === '-' ? 'standard input' : path} does not hold a token`,
      'a token is one line of plain characters',
    );
  return token;
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove contexts')
    .argument('<context...>')
    .action(async (names: readonly string[]) => {
      const path = contextFilePath(cli);
      const { current, contexts } = await readContexts(path);
      for (const name of names) if (!Object.hasOwn(contexts, name)) throw unknown(name, contexts, path);
      const kept = Object.fromEntries(Object.entries(contexts).filter(([name]) => !names.includes(name)));
      await writeContexts(path, {
        ...(current !== undefined && Object.hasOwn(kept, current) ? { current } : {}),
        contexts: kept,
      });
      cli.stdout.write(names.map((name) => `${name} removed\n`).join(''));
    });
}

function unknown(name: string, contexts: Readonly<Record<string, Context>>, path: string): CommandError {
  const meant = nearest(name, Object.keys(contexts));
  return usageError(
    `there is no context "${name}" in ${path}`,
    meant ? `did you mean "${meant}"?` : '"berth context ls" shows the contexts',
  );
}
