// `berth token rotate-admin`: replaces the admin token, on the machine that has it. The new text is in a file before the store knows its
// hash, and takes the place of the old file after: whatever breaks off in between, one of the two files opens the fleet, and the command
// can be repeated.

import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { ApiError } from '../api/errors.ts';
import { createUserClient } from '../api/client/user-client.ts';
import type { Cli } from '../cli/cli.ts';
import { contextFilePath, readContexts, writeContexts } from '../cli/context-file.ts';
import { attempting, CommandError, exitCodes, usageError } from '../cli/exit-codes.ts';
import { globalFlags, openSession } from '../cli/session.ts';
import type { Store } from '../store/store.ts';
import { openStoreOf, tellFailure } from './store-of.ts';

const usualDirectory = '/var/lib/berth/server';
const usualUrl = 'http://127.0.0.1:7070';

interface Flags {
  readonly dataDir?: string;
  readonly store?: string;
}

export function rotateAdminCommand(cli: Cli): Command {
  return new Command('rotate-admin')
    .description('Replace the admin token (operator.token); all servers refuse the old one from then on')
    .option('--data-dir <directory>', `of a server on this machine; default: ${usualDirectory}`)
    .option('--store <url>', 'of that server; default: sqlite:<data-dir>/berth.db')
    .addHelpText(
      'after',
      `
A SQLite store that a running server uses is changed through that server: at --url, --context or BERTH_URL, else ${usualUrl}.`,
    )
    .action(async ({ dataDir, store: given }: Flags, command: Command) => {
      const directory = resolve(dataDir ?? (cli.environment['BERTH_SERVER_DATA_DIRECTORY'] || usualDirectory));
      await assertDirectory(directory);
      const url = given ?? (cli.environment['BERTH_SERVER_STORE'] || `sqlite:${join(directory, 'berth.db')}`);
      const { adminTokenIn } = await import('../server/secret-files.ts');
      const before = await adminTokenIn(directory);
      const store = await openUnlessUsed(url);
      const text = store ? await inStore(cli, store, directory) : await atServer(cli, command, directory);
      const contexts = await updateContexts(cli, { before, text });
      cli.stdout.write(
        `${join(directory, 'operator.token')} has a new admin token; the old one opens nothing any more\n`,
      );
      if (contexts.length > 0) cli.stdout.write(`updated: context ${contexts.join(', ')}\n`);
      cli.stderr.write('copy the file to where others need it: to other servers of this store, and to contexts\n');
    });
}

async function assertDirectory(directory: string): Promise<void> {
  await access(join(directory, 'secret')).catch((cause: unknown) => {
    throw new CommandError(
      exitCodes.usage,
      `cannot replace the admin token: ${directory} is no server's data directory, or not yours to read`,
      {
        advice: 'name it with --data-dir, and run this as the user of the server, or as root',
        cause,
      },
    );
  });
}

/** Undefined: a running server has it to itself. */
async function openUnlessUsed(url: string): Promise<Store | undefined> {
  try {
    return await openStoreOf(url, { mustExist: true });
  } catch (error) {
    const { StoreError } = await import('../store/store.ts');
    const cause = error instanceof CommandError ? error.cause : error;
    if (cause instanceof StoreError && cause.code === 'Locked') return undefined;
    throw error;
  }
}

async function inStore(cli: Cli, store: Store, directory: string): Promise<string> {
  const { newAdmin, putAdmin, settleAdmin } = await import('../server/secret-files.ts');
  const { replaceOperatorIn } = await import('../server/storage/replace-operator.ts');
  const { clusterIn } = await import('../server/storage/cluster-record.ts');
  try {
    return await tellFailure('replace the admin token', async () => {
      const present = await clusterIn(store);
      if (!present) throw usageError('no server has used this store yet', 'the first start makes operator.token');
      await settleAdmin(directory, present.cluster);
      const { text, digest } = await newAdmin(directory);
      await replaceOperatorIn(store, digest, cli.clock.nowMs());
      await putAdmin(directory, text);
      return text;
    });
  } finally {
    await store.close();
  }
}

async function atServer(cli: Cli, command: Command, directory: string): Promise<string> {
  const { adminTokenIn, newAdmin, putAdmin, settleAdmin, unsettledAdminIn } = await import('../server/secret-files.ts');
  const { digestOf } = await import('../server/http/identity/authenticate.ts');
  // Never the server of the current context: this fleet's token would be sent to another.
  const { url, context } = globalFlags(command);
  const named = url !== undefined || context !== undefined || cli.environment['BERTH_URL'];
  const { servers, authorities: ca } = await openSession(
    cli,
    command,
    named ? undefined : { server: { url: usualUrl }, anonymous: true },
  );
  const { TlsFetch } = await import('../base/tls/tls-fetch.ts');
  const fetch = ca === undefined ? cli.fetch : new TlsFetch(() => ({ ca })).fetch;
  const as = (token: string) => createUserClient({ fetch, url: servers, token });
  const isAdmin = async (token: string | undefined): Promise<boolean> => {
    if (token === undefined) return false;
    try {
      return (await as(token).whoAmI()).kind === 'admin';
    } catch (error) {
      if (error instanceof ApiError && error.code === 'Unauthenticated') return false;
      throw error;
    }
  };
  return attempting('replace the admin token', async () => {
    const tried = [await adminTokenIn(directory), await unsettledAdminIn(directory)];
    const valid = (await isAdmin(tried[0])) ? tried[0] : (await isAdmin(tried[1])) ? tried[1] : undefined;
    if (valid === undefined)
      throw new CommandError(
        exitCodes.usage,
        `cannot replace the admin token: the one in ${directory} is not that of the server`,
        {
          advice: 'stop the server and run this again: it then changes the store itself; or name the server with --url',
        },
      );
    await settleAdmin(directory, { operatorDigest: digestOf(valid) });
    const { text, digest } = await newAdmin(directory);
    await as(valid).rotateAdminToken(digest);
    await putAdmin(directory, text);
    return text;
  });
}

/** Those of this user that held the old token. */
async function updateContexts(
  cli: Cli,
  { before, text }: { readonly before: string | undefined; readonly text: string },
): Promise<string[]> {
  const path = contextFilePath(cli);
  const { contexts, ...rest } = await readContexts(path);
  const names = Object.keys(contexts).filter((name) => before !== undefined && contexts[name]?.token === before);
  if (names.length === 0) return [];
  const changed = Object.entries(contexts).map(([name, context]) => [
    name,
    names.includes(name) ? { ...context, token: text } : context,
  ]);
  await writeContexts(path, { ...rest, contexts: Object.fromEntries(changed) });
  return names;
}
