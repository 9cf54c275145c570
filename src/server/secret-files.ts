// The secrets of a store, and their copies in files of the data directory, where users and commands on this machine find them.

import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomSecret } from '../base/system.ts';
import type { ClusterSecrets } from '../core/operations/cluster.ts';
import type { Cluster } from '../core/state/records.ts';
import type { TokenSecrets } from './http/tokens.ts';

/** The secrets of a store without any: those that this server kept in files in earlier versions, or new ones. */
export async function secretsFor(directory: string): Promise<ClusterSecrets> {
  const had = async (file: string): Promise<string | undefined> => {
    const text = (await readFile(join(directory, file), 'utf8').catch(() => '')).trim();
    return text.length < 40 ? undefined : text;
  };
  return {
    tokenSecret: (await had('secret')) ?? randomSecret(32).toString('base64url'),
    operatorToken: (await had('operator.token')) ?? `berth-operator.${randomSecret(32).toString('base64url')}`,
  };
}

/** The store's secrets, shared by all its servers. Copies are written to files for users and commands on this machine. */
export async function takeSecrets(directory: string, { tokenSecret, operatorToken }: Cluster): Promise<TokenSecrets> {
  for (const [name, text] of [
    ['secret', tokenSecret],
    ['operator.token', operatorToken],
  ] as const) {
    const path = join(directory, name);
    if (await isAsWritten(path, text)) continue; // then a full disk does no harm
    await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 });
    await rename(`${path}.new`, path);
  }
  return { operatorToken, secret: Buffer.from(tokenSecret, 'base64url') };
}

async function isAsWritten(path: string, text: string): Promise<boolean> {
  const [found, status] = await Promise.all([readFile(path, 'utf8'), stat(path)]).catch(() => []);
  return found === `${text}\n` && status !== undefined && (status.mode & 0o777) === 0o600;
}
