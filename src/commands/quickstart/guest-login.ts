// Logs in to the quickstart's guest as its user would: with "berth ssh", a key and a context of the quickstart's own.
// The user's keys and contexts are not touched.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cli } from '../../cli/cli.ts';
import { type Context, useLocalContext } from '../../cli/context-file.ts';
import { CommandError, exitCodes } from '../../cli/exit-codes.ts';

export interface LoginKey {
  /** Of the private key. */
  readonly path: string;
  readonly publicKey: string;
}

/** Created when it is missing. */
export async function loginKey(cli: Cli, dataDirectory: string): Promise<LoginKey> {
  const path = join(dataDirectory, 'ssh-key');
  const there = await stat(`${path}.pub`).then(
    () => true,
    () => false,
  );
  if (!there) await run(cli, 'ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'berth-quickstart', '-f', path]);
  return { path, publicKey: (await readFile(`${path}.pub`, 'utf8')).trim() };
}

/** The guest's output goes to the user's terminal. */
export async function logIn(
  cli: Cli,
  call: {
    readonly dataDirectory: string;
    readonly context: Context;
    readonly words: readonly string[];
  },
): Promise<void> {
  const contexts = join(call.dataDirectory, 'contexts.yaml');
  await useLocalContext(contexts, 'quickstart', call.context);
  // The user's settings for other servers must not apply.
  const others = ['BERTH_URL', 'BERTH_TOKEN', 'BERTH_PROJECT'].flatMap((name) => ['-u', name]);
  await run(cli, 'env', [...others, `BERTH_CONFIG=${contexts}`, ...cli.self, 'ssh', ...call.words]);
}

async function run(cli: Cli, program: string, words: readonly string[]): Promise<void> {
  let code: number;
  try {
    code = await cli.runProgram(program, words);
  } catch (cause) {
    throw new CommandError(exitCodes.internal, `cannot start ${program}`, {
      advice: 'install the package openssh-client',
      cause,
    });
  }
  if (code !== 0) throw new CommandError(exitCodes.badOutcome, `"${program}" ended with code ${code}`);
}
