// `berth logout`: revokes the token of a login, and removes it from its context. It never touches a token that no login gave.

import { Command } from 'commander';
import { ApiError } from '../../../api/errors.ts';
import type { Cli } from '../../cli.ts';
import { contextFilePath, readContexts, writeContexts } from '../../context-file.ts';
import { attempting, usageError } from '../../exit-codes.ts';
import { globalFlags, openSession } from '../../session.ts';

export function logoutCommand(cli: Cli): Command {
  return new Command('logout')
    .description('Revoke the token of a login, and remove it from its context')
    .action(async (_options: unknown, command: Command) => {
      const path = contextFilePath(cli);
      const { current, contexts } = await readContexts(path);
      const name = globalFlags(command).context ?? current;
      const context = name !== undefined && Object.hasOwn(contexts, name) ? contexts[name] : undefined;
      if (name === undefined || context === undefined)
        throw usageError('there is no context to log out of', '"berth context ls" shows the contexts');
      const { token, tokenName, ...rest } = context;
      if (token === undefined)
        throw usageError(`context "${name}" is not logged in: it has no token`, '"berth login" logs in');
      if (tokenName === undefined)
        throw usageError(
          `context "${name}" is not logged in: its token is not of a login, and is kept`,
          `"berth token revoke NAME" revokes a token, and "berth context rm ${name}" removes the context`,
        );
      const revoked = await revoke(cli, command, { name, tokenName });
      await writeContexts(path, {
        ...(current === undefined ? {} : { current }),
        contexts: { ...contexts, [name]: rest },
      });
      cli.stdout.write(`logged out of ${context.url}${revoked ? '' : '; the token was removed here only'}\n`);
      if (cli.environment['BERTH_TOKEN'])
        cli.stderr.write('berth: BERTH_TOKEN is set: its token was not revoked, and is still used\n');
    });
}

/** False: the server does not know the token any more. */
async function revoke(
  cli: Cli,
  command: Command,
  { name, tokenName }: { readonly name: string; readonly tokenName: string },
): Promise<boolean> {
  const { client } = await openSession(cli, command, { server: { context: name } });
  return attempting(`revoke the token of context "${name}"`, async () => {
    try {
      await client.delete('token', tokenName);
      return true;
    } catch (error) {
      if (error instanceof ApiError && (error.code === 'Unauthenticated' || error.code === 'NotFound')) return false;
      throw error;
    }
  });
}
