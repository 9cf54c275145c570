// What the process makes of the configured inventories. Credentials are read again for each poll, so that a new one needs no restart; their
// text is in no message.

import { readFile } from 'node:fs/promises';
import { ApiError } from '../../api/errors.ts';
import { describeError } from '../../base/log.ts';
import type { InventoryFileConfig, InventoryLoginConfig } from './inventory-config.ts';

export interface InventorySettings {
  /** Paths of lists, by name of the inventory. */
  readonly files: ReadonlyMap<string, string>;
  /** The value of `Authorization` for this source; undefined: it is asked without. Throws an `Error` when it cannot be read. */
  authorizationFor(url: string): Promise<string | undefined>;
}

export const noInventorySettings: InventorySettings = {
  files: new Map(),
  authorizationFor: () => Promise.resolve(undefined),
};

interface Configured {
  readonly inventoryFiles: readonly InventoryFileConfig[];
  readonly inventoryLogins: readonly InventoryLoginConfig[];
}

/** Throws `InvalidRequest`, which names the field. */
export async function readInventorySettings(config: Configured): Promise<InventorySettings> {
  const files = new Map<string, string>();
  for (const [index, { name, file }] of config.inventoryFiles.entries()) {
    if (files.has(name)) throw refused(`inventoryFiles[${index}].name`, `another file is for inventory "${name}"`);
    files.set(name, file);
  }
  const logins = new Map<string, () => Promise<string>>();
  for (const [index, login] of config.inventoryLogins.entries()) {
    const path = `inventoryLogins[${index}]`;
    const origin = originOf(login, path);
    if (logins.has(origin)) throw refused(`${path}.origin`, `there are other credentials for ${origin}`);
    const read = readerOf(login, path);
    await read();
    logins.set(origin, read);
  }
  return {
    files,
    authorizationFor: async (url) => (URL.canParse(url) ? logins.get(new URL(url).origin)?.() : undefined),
  };
}

function originOf({ origin }: InventoryLoginConfig, path: string): string {
  if (!URL.canParse(origin))
    throw refused(`${path}.origin`, `"${origin}" is not an origin, such as https://source.example`);
  const url = new URL(origin);
  const isLocal = url.hostname === 'localhost' || url.hostname === '[::1]' || /^127\./.test(url.hostname);
  if (url.protocol !== 'https:' && !isLocal)
    throw refused(`${path}.origin`, 'plain HTTP shows credentials to the network: the URL must begin with https://');
  return url.origin;
}

function readerOf({ tokenFile, user, passwordFile }: InventoryLoginConfig, path: string): () => Promise<string> {
  if (tokenFile !== undefined) {
    if (user !== undefined || passwordFile !== undefined)
      throw refused(`${path}.tokenFile`, 'give either tokenFile, or user and passwordFile');
    return async () => `Bearer ${await lineOf(tokenFile, `${path}.tokenFile`, /^[\x21-\x7e]+$/)}`;
  }
  if (user === undefined || passwordFile === undefined)
    throw refused(`${path}.${user === undefined ? 'user' : 'passwordFile'}`, 'user and passwordFile go together');
  return async () => {
    const password = await lineOf(passwordFile, `${path}.passwordFile`, /^[^\p{Cc}]+$/u);
    return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  };
}

async function lineOf(file: string, field: string, form: RegExp): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw refused(field, `cannot read ${file}: ${describeError(error)}`);
  });
  const line = text.replace(/\r?\n$/, '');
  if (!form.test(line)) throw refused(field, `${file} must have the secret as its only line`);
  return line;
}

function refused(field: string, message: string): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${message}`, { field });
}
