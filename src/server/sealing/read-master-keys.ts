// Where master keys come from: a configured file, a configured command, or the file that a server makes for its own
// store. No message repeats what was read.

import { execFile } from 'node:child_process';
import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describeError } from '../../base/log.ts';
import { adviceOnSecretFile, randomSecret } from '../../base/system.ts';
import type { Logger } from '../../base/log.ts';
import { ApiError } from '../../api/errors.ts';
import { BadMasterKey, type MasterKeys, parseMasterKeys } from './master-keys.ts';

export interface MasterKeySource {
  /** For messages. */
  readonly name: string;
  /** Throws `ApiError` `InvalidRequest`. */
  read(): Promise<MasterKeys>;
}

interface MasterKeyConfig {
  readonly masterKeyFile?: string;
  readonly masterKeyCommand?: string;
}

/** Undefined: neither is configured. Throws `ApiError` `InvalidRequest`. */
export function configuredSource({ masterKeyFile, masterKeyCommand }: MasterKeyConfig): MasterKeySource | undefined {
  if (masterKeyFile !== undefined && masterKeyCommand !== undefined)
    throw refused('masterKeyCommand', 'masterKeyFile is given too: write one of the two');
  if (masterKeyFile !== undefined) return fileSource(masterKeyFile);
  if (masterKeyCommand === undefined) return undefined;
  return { name: 'masterKeyCommand', read: () => fromCommand(masterKeyCommand) };
}

export function fileSource(path: string): MasterKeySource {
  return { name: `masterKeyFile ${path}`, read: () => fromFile(path) };
}

export function ownKeyPath(dataDirectory: string): string {
  return join(dataDirectory, 'master.key');
}

/** Durable when it resolves: nothing may be encrypted under a key that a power failure takes away. */
export async function writeMasterKeys(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export function newMasterKey(): string {
  return randomSecret(32).toString('base64');
}

/** Advises on a key file that other users of the machine may read. */
export async function warnOfOpenKey(path: string, log: Logger): Promise<void> {
  const advice = await adviceOnSecretFile(path);
  if (advice !== undefined) log.warn(advice);
}

async function fromFile(path: string): Promise<MasterKeys> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw refused('masterKeyFile', `cannot read ${path}: ${describeError(cause)}`, cause);
  });
  return parsed(text, 'masterKeyFile', path);
}

const commandMsMax = 30_000;
const commandBytesMax = 64 * 1024;

async function fromCommand(command: string): Promise<MasterKeys> {
  const options = { timeout: commandMsMax, maxBuffer: commandBytesMax, encoding: 'utf8' as const };
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', command], options).catch((cause: unknown) => {
    throw refused('masterKeyCommand', `the command failed: ${whyFailed(cause)}`);
  });
  return parsed(stdout, 'masterKeyCommand', 'the output of the command');
}

/** Without the output, which may contain a key. */
function whyFailed(cause: unknown): string {
  if (typeof cause !== 'object' || cause === null) return 'unknown';
  if ('killed' in cause && cause.killed === true) return `it did not end within ${commandMsMax / 1_000} s`;
  if ('code' in cause && typeof cause.code === 'number') return `exit code ${cause.code}`;
  return 'code' in cause ? String(cause.code) : 'it was ended by a signal';
}

function parsed(text: string, field: string, from: string): MasterKeys {
  try {
    return parseMasterKeys(text);
  } catch (error) {
    if (error instanceof BadMasterKey) throw refused(field, `${from}: ${error.message}`);
    throw error;
  }
}

function refused(field: string, why: string, cause?: unknown): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${why}`, { field, cause });
}
