// A store that a command opens, with its secrets in plain text: the master key comes from an option, or from the file
// beside an SQLite store.

import { access } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ApiError } from '../api/errors.ts';
import { randomSecret } from '../base/system.ts';
import { CommandError, exitCodes } from '../cli/exit-codes.ts';
import type { MasterKeys } from '../server/sealing/master-keys.ts';
import { MissingMasterKey, openSealing } from '../server/sealing/open-sealing.ts';
import { dataKeysIn, masterKeysOf } from '../server/storage/data-key-records.ts';
import { fileSource, ownKeyPath } from '../server/sealing/read-master-keys.ts';
import type { Store } from '../store/store.ts';
import { tellFailure } from './store-of.ts';

export const masterKeyOption = [
  '--master-key-file <file>',
  'master key of the store; default with SQLite: master.key beside the store, if it exists',
] as const;

/** Undefined: none was given, and there is none beside the store. */
export async function masterKeysFor(url: string, file: string | undefined): Promise<MasterKeys | undefined> {
  const path = file === undefined ? await keyBeside(url) : resolve(file);
  if (path === undefined) return undefined;
  try {
    return await fileSource(path).read();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new CommandError(exitCodes.usage, error.message.replace(/^masterKeyFile/, '--master-key-file'), {
      cause: error,
    });
  }
}

async function keyBeside(url: string): Promise<string | undefined> {
  if (!url.startsWith('sqlite:')) return undefined;
  const path = ownKeyPath(dirname(resolve(url.slice('sqlite:'.length))));
  return access(path).then(
    () => path,
    () => undefined,
  );
}

/** `store` as it is when it has no key and needs none. Fails with the id of the key that is missing. */
export async function plainStoreOf(
  store: Store,
  { masterKeys, nowMs }: { readonly masterKeys: MasterKeys | undefined; readonly nowMs: number },
): Promise<Store> {
  return withKeyAdvice('open the store', async () => {
    if (masterKeys) return (await openSealing(store, { masterKeys, nowMs, randomSecret })).store;
    const needed = masterKeysOf(await dataKeysIn(store));
    if (needed.length > 0)
      throw new MissingMasterKey(`its records are encrypted under master key ${needed.join(', ')}`);
    return store;
  });
}

/** As `tellFailure`, and tells how to give a master key that is missing. */
export async function withKeyAdvice<T>(attempt: string, work: () => T | Promise<T>): Promise<T> {
  return tellFailure(attempt, async () => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof MissingMasterKey)) throw error;
      throw new CommandError(exitCodes.usage, `cannot ${attempt}: ${error.message}; nothing was changed`, {
        advice: 'give the file that has this key: --master-key-file FILE',
        cause: error,
      });
    }
  });
}
