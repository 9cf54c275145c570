// Puts encryption in front of a store: reads its data keys with the given master keys, and makes the first data key. It
// must not make one when the store has some already, because then a master key is missing.

import { Unopenable } from '../../base/sealed.ts';
import { keys } from '../../core/state/keys.ts';
import { recordsVersion } from '../../core/state/upgrade.ts';
import type { DataKey } from '../../core/state/records.ts';
import { encodeRecord } from '../../core/state/codec.ts';
import { type Store, StoreError } from '../../store/store.ts';
import { clusterIn } from '../storage/cluster-record.ts';
import { dataKeysIn, masterKeysOf } from '../storage/data-key-records.ts';
import { DataKeys } from './data-keys.ts';
import type { MasterKeys } from './master-keys.ts';
import { SealedStore } from './sealed-store.ts';

export interface Sealing {
  /** For all but backups, which copy what is stored. */
  readonly store: SealedStore;
  readonly stored: Store;
  readonly dataKeys: DataKeys;
}

/** The store needs a master key that was not given. */
export class MissingMasterKey extends Error {
  override name = 'MissingMasterKey';
}

interface SealingParts {
  readonly masterKeys: MasterKeys;
  readonly nowMs: number;
  readonly randomSecret: (length: number) => Uint8Array;
}

/** Throws `MissingMasterKey` and `StoreError`. */
export async function openSealing(stored: Store, parts: SealingParts): Promise<Sealing> {
  const { masterKeys, nowMs, randomSecret } = parts;
  const dataKeys = new DataKeys(masterKeys, randomSecret);
  const found = await dataKeysIn(stored);
  learnAll(dataKeys, found);
  if (found.length === 0) await makeFirst(stored, dataKeys, nowMs);
  return { store: new SealedStore(stored, dataKeys), stored, dataKeys };
}

/** Throws `MissingMasterKey` unless all of them open. */
export function learnAll(dataKeys: DataKeys, found: readonly DataKey[]): void {
  const missing = masterKeysOf(found.filter((record) => !learned(dataKeys, record)));
  if (missing.length === 0) return;
  const given = dataKeys.masterKeys.ids.join(', ');
  throw new MissingMasterKey(
    `records are encrypted under master key ${missing.join(', ')}, the given ${dataKeys.masterKeys.ids.length > 1 ? 'keys are' : 'key is'} ${given}: add the missing key as a further line of the key file`,
  );
}

function learned(dataKeys: DataKeys, record: DataKey): boolean {
  try {
    return dataKeys.learn(record);
  } catch (error) {
    if (error instanceof Unopenable) throw new StoreError('Corrupt', error.message, { cause: error });
    throw error;
  }
}

/**
 * Of several servers that start at once each may make one: all of them can be used. A store that is closed or newer is
 * left alone: the start is refused later.
 */
async function makeFirst(stored: Store, dataKeys: DataKeys, nowMs: number): Promise<void> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const cluster = await clusterIn(stored);
    if (cluster && (cluster.cluster.closed || cluster.cluster.recordsVersion > recordsVersion)) return;
    const record = dataKeys.make(nowMs);
    const key = keys.dataKey(record.id);
    const result = await stored.commit(
      [
        { key: keys.cluster, ifRevision: cluster?.revision ?? 0 },
        { key, ifRevision: 0 },
      ],
      [{ key, value: encodeRecord(record) }],
    );
    if (!result.ok) continue;
    dataKeys.learn(record);
    return;
  }
  throw new StoreError('Unavailable', 'other servers write to the store at the same time; start again');
}

const attemptsMax = 10;
