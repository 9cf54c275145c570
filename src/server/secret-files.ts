// The secrets of a store, and their copies in files of the data directory, where users and commands on this machine find them. The store
// has only the hash of the admin token: its text is in `operator.token` of the server that made it, and nowhere else.
//
//   no token ──▶ operator.token.new ──▶ its hash is in the store ──▶ operator.token
//
// After a crash in between, the next start, or "berth token rotate-admin", finds both files and goes on.

import { chown, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomSecret } from '../base/system.ts';
import type { Logger } from '../base/log.ts';
import { makeToken, tokenBytes } from '../api/token-text.ts';
import type { OpeningSecrets } from '../core/operations/servers/cluster.ts';
import type { Cluster } from '../core/state/records.ts';
import { digestOf } from './http/identity/authenticate.ts';

const adminFile = 'operator.token';
const newAdminFile = `${adminFile}.new`;

/**
 * For the start of a server. `present`: the store's record, if it has one. A store without gets the secrets that this server kept in
 * files, or new ones. The text of an admin token that an earlier version stored is in its file before it leaves the store.
 */
export async function secretsFor(directory: string, present: Cluster | undefined): Promise<OpeningSecrets> {
  const tokenSecret = present?.tokenSecret ?? (await readText(directory, 'secret')) ?? newSecret();
  if (present?.operatorToken !== undefined) await writeSecret(directory, adminFile, present.operatorToken);
  if (present !== undefined) return { tokenSecret, digestOf };
  const text =
    (await readText(directory, adminFile)) ??
    (await readText(directory, newAdminFile)) ??
    (await newAdmin(directory)).text;
  return { tokenSecret, operatorDigest: digestOf(text), digestOf };
}

export interface TakenSecrets {
  /** The tokens of hosts are made from it. */
  readonly hostSecret: Uint8Array;
  /** Empty: this server has no copy of the admin token. */
  readonly operatorToken: string;
}

/** Writes what this server may have of the store's secrets to its files. */
export async function takeSecrets(directory: string, cluster: Cluster, log: Logger): Promise<TakenSecrets> {
  await writeSecret(directory, 'secret', cluster.tokenSecret);
  const operatorToken = await settleAdmin(directory, cluster);
  if (operatorToken === '') {
    const message = `${join(directory, adminFile)} is not the admin token of this store: copy the file from the server that has it, or make another token with "berth token rotate-admin" here`;
    if ((await readText(directory, adminFile)) === undefined) log.info(message);
    else log.warn(message);
  }
  return { hostSecret: Buffer.from(cluster.tokenSecret, 'base64url'), operatorToken };
}

/** The text of the admin token, in its file; empty when no file here has it. */
export async function settleAdmin(
  directory: string,
  { operatorDigest }: Pick<Cluster, 'operatorDigest'>,
): Promise<string> {
  for (const file of [adminFile, newAdminFile]) {
    const text = await readText(directory, file);
    if (text === undefined || digestOf(text) !== operatorDigest) continue;
    await putAdmin(directory, text);
    return text;
  }
  return '';
}

/** For the text of the admin token that is valid now. */
export async function putAdmin(directory: string, text: string): Promise<void> {
  await writeSecret(directory, adminFile, text);
  await rm(join(directory, newAdminFile), { force: true });
}

/** A new admin token, in a file of its own: it is not valid yet. */
export async function newAdmin(directory: string): Promise<{ readonly text: string; readonly digest: string }> {
  const { text } = makeToken('s', randomSecret(tokenBytes));
  await replaceFile(join(directory, newAdminFile), text);
  return { text, digest: digestOf(text) };
}

/** The admin token as far as this machine knows; undefined: there is no file. */
export function adminTokenIn(directory: string): Promise<string | undefined> {
  return readText(directory, adminFile);
}

/** The text of a replacement that broke off: the store may have its hash, or not. */
export function unsettledAdminIn(directory: string): Promise<string | undefined> {
  return readText(directory, newAdminFile);
}

function newSecret(): string {
  return randomSecret(32).toString('base64url');
}

/** Anything shorter is no secret of ours. */
async function readText(directory: string, file: string): Promise<string | undefined> {
  const text = (await readFile(join(directory, file), 'utf8').catch(() => '')).trim();
  return text.length < 40 ? undefined : text;
}

async function writeSecret(directory: string, file: string, text: string): Promise<void> {
  const path = join(directory, file);
  if (await isAsWritten(path, text)) return; // then a full disk does no harm
  await replaceFile(path, text);
}

/** Whole, or not at all; on the disk when it resolves. */
async function replaceFile(path: string, text: string): Promise<void> {
  const written = `${path}.writing`;
  await rm(written, { force: true });
  await writeFile(written, `${text}\n`, { mode: 0o600, flush: true, flag: 'wx' });
  const { uid, gid } = await stat(join(path, '..'));
  await chown(written, uid, gid).catch(() => {}); // only root may, and only root writes into the directory of another user
  await rename(written, path);
  const directory = await open(join(path, '..'));
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function isAsWritten(path: string, text: string): Promise<boolean> {
  const [found, status] = await Promise.all([readFile(path, 'utf8'), stat(path)]).catch(() => []);
  return found === `${text}\n` && status !== undefined && (status.mode & 0o777) === 0o600;
}
