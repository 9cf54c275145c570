// The encryption of a server's store, from its configuration. It refuses the start without a key that records need.

import { access } from 'node:fs/promises';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { randomSecret } from '../../base/system.ts';
import { ApiError } from '../../api/errors.ts';
import type { Store } from '../../store/store.ts';
import { MissingMasterKey, openSealing, type Sealing } from './open-sealing.ts';
import { dataKeysIn, masterKeysOf } from '../storage/data-key-records.ts';
import {
  configuredSource,
  fileSource,
  type MasterKeySource,
  newMasterKey,
  ownKeyPath,
  warnOfOpenKey,
  writeMasterKeys,
} from './read-master-keys.ts';

interface SealingConfig {
  readonly dataDirectory: string;
  readonly masterKeyFile?: string;
  readonly masterKeyCommand?: string;
}

export interface ServerSealing extends Sealing {
  /** Read again while the server runs, for a rotation; undefined: the keys are read at the start only. */
  readonly source: MasterKeySource | undefined;
}

/** Undefined: nothing is encrypted, which the log says. Throws `ApiError` and `StoreError`. */
export async function sealingOf(
  config: SealingConfig,
  parts: { readonly store: Store; readonly own: boolean; readonly clock: Clock; readonly log: Logger },
): Promise<ServerSealing | undefined> {
  const { store, own, clock, log } = parts;
  const needed = masterKeysOf(await dataKeysIn(store));
  const source = configuredSource(config) ?? (own ? await ownSource(config.dataDirectory, needed) : undefined);
  if (source === undefined) {
    if (needed.length > 0) throw missing(needed, 'none is configured; set masterKeyFile or masterKeyCommand');
    log.warn(
      'no master key is configured: user data, environments and tokens are stored in plain text, and secrets cannot be created; set masterKeyFile, the same key on all servers of this store',
    );
    return undefined;
  }
  if (config.masterKeyFile !== undefined) await warnOfOpenKey(config.masterKeyFile, log);
  const masterKeys = await source.read();
  try {
    const sealing = await openSealing(store, { masterKeys, nowMs: Math.floor(clock.nowMs()), randomSecret });
    const reread = config.masterKeyCommand === undefined;
    return { ...sealing, source: reread ? source : undefined };
  } catch (error) {
    if (error instanceof MissingMasterKey)
      throw new ApiError('InvalidRequest', `${source.name}: ${error.message}`, {
        field: 'masterKeyFile',
        cause: error,
      });
    throw error;
  }
}

/** A key that is lost is not replaced: with a new one the store would be unreadable for good, and say so only later. */
async function ownSource(dataDirectory: string, needed: readonly string[]): Promise<MasterKeySource> {
  const path = ownKeyPath(dataDirectory);
  const there = await access(path).then(
    () => true,
    () => false,
  );
  if (!there && needed.length > 0) throw missing(needed, `${path} is missing; put it back, or set masterKeyFile`);
  if (!there) await writeMasterKeys(path, `${newMasterKey()}\n`);
  return fileSource(path);
}

function missing(needed: readonly string[], why: string): ApiError {
  return new ApiError(
    'InvalidRequest',
    `masterKeyFile: records of the store are encrypted under master key ${needed.join(', ')}: ${why}`,
    { field: 'masterKeyFile' },
  );
}
