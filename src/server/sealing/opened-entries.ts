// The entries of a backup with their secrets in plain text, for a restore: the store that they are written to encrypts
// them again under its own data keys. Nothing of it may be printed.

import { Unopenable } from '../../base/sealed.ts';
import { UnreadableRecord } from '../../core/state/codec.ts';
import { BadBackup } from '../storage/backup.ts';
import { DataKeys } from './data-keys.ts';
import type { MasterKeys } from './master-keys.ts';
import { learnAll, MissingMasterKey } from './open-sealing.ts';
import { dataKeysAmong, masterKeysOf } from '../storage/data-key-records.ts';
import { openRow, sealedOf } from './sealed-rows.ts';

type Entries = ReadonlyMap<string, Uint8Array>;

/** Throws `MissingMasterKey` and `BadBackup`. */
export function openedEntries(entries: Entries, masterKeys: MasterKeys | undefined): Entries {
  const found = dataKeysAmong(entries);
  if (found.length === 0) return entries;
  if (!masterKeys) {
    const ids = masterKeysOf(found).join(', ');
    throw new MissingMasterKey(`its records are encrypted under master key ${ids}, and no master key was given`);
  }
  const dataKeys = new DataKeys(masterKeys, () => {
    throw new UnreadableRecord('nothing is encrypted here');
  });
  learnAll(dataKeys, found);
  const opened = new Map<string, Uint8Array>();
  for (const [key, stored] of entries) opened.set(key, openedEntry(key, stored, dataKeys));
  return opened;
}

function openedEntry(key: string, stored: Uint8Array, dataKeys: DataKeys): Uint8Array {
  try {
    const sealed = sealedOf(key, stored);
    return sealed === undefined ? stored : openRow({ key, stored, sealed }, dataKeys);
  } catch (error) {
    if (error instanceof Unopenable) throw new BadBackup(error.message, { cause: error });
    throw error;
  }
}
