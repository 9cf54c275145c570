// Reads a secret from the file that the configuration names. It is read again for each use, so that a secret can be replaced without a
// restart. Errors name the field and the file, never what is in it.

import { readFile, stat } from 'node:fs/promises';
import { ApiError } from '../../../api/errors.ts';
import { describeError } from '../../../base/log.ts';

const bytesMax = 1_048_576;

/** Without the line break at its end. Throws `InvalidRequest` with the field. */
export async function readSecretFile(path: string, field: string): Promise<string> {
  const text = (await readConfigured(path, field)).replace(/\r?\n$/, '');
  if (text.trim() === '') throw invalid(field, `${path} is empty`);
  return text;
}

/** One that goes into a header or a form: a line of visible ASCII. */
export async function readTokenFile(path: string, field: string): Promise<string> {
  const token = (await readSecretFile(path, field)).trim();
  if (!/^[\x20-\x7e]+$/.test(token)) throw invalid(field, `${path} must have one line of ASCII characters`);
  return token;
}

export async function readCaFile(path: string | undefined, field: string): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const text = await readConfigured(path, field);
  if (!text.includes('-----BEGIN CERTIFICATE-----')) throw invalid(field, `${path} holds no certificate in PEM form`);
  return text;
}

/** `kind`: also a folder. */
export async function checkReadable(
  path: string | undefined,
  field: string,
  kind: 'file' | 'any' = 'file',
): Promise<void> {
  if (path === undefined) return;
  if (kind === 'file') return void (await readConfigured(path, field));
  await stat(path).catch((cause: unknown) => {
    throw invalid(field, `cannot read ${path}: ${describeError(cause)}`, cause);
  });
}

/** For users: faults of the configuration without the paths of the server's files. */
export function shownFault(error: unknown): string {
  return error instanceof ApiError ? `${error.field} of the server cannot be used` : describeError(error);
}

async function readConfigured(path: string, field: string): Promise<string> {
  const { size } = await stat(path).catch((cause: unknown) => {
    throw invalid(field, `cannot read ${path}: ${describeError(cause)}`, cause);
  });
  if (size > bytesMax) throw invalid(field, `${path} is over ${bytesMax} bytes`);
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw invalid(field, `cannot read ${path}: ${describeError(cause)}`, cause);
  });
}

function invalid(field: string, why: string, cause?: unknown): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${why}`, { field, cause });
}
