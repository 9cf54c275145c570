// The data keys of a store or a backup, without opening them: they say which master keys are needed.

import { decodeRecord } from '../../core/state/codec.ts';
import { prefixOf } from '../../core/state/keys.ts';
import type { DataKey } from '../../core/state/records.ts';
import type { Store } from '../../store/store.ts';

export async function dataKeysIn(stored: Store): Promise<readonly DataKey[]> {
  const { entries } = await stored.list(prefixOf('dataKey'));
  return dataKeysAmong(entries.map(({ key, value }) => [key, value]));
}

/** The same for the entries of a backup. */
export function dataKeysAmong(entries: Iterable<readonly [key: string, value: Uint8Array]>): readonly DataKey[] {
  const found: DataKey[] = [];
  for (const [key, value] of entries) {
    if (!key.startsWith(prefixOf('dataKey'))) continue;
    const record = decodeRecord(key, value);
    if (record.kind === 'dataKey') found.push(record);
  }
  return found;
}

/** The ids of the master keys that open `found`, each once. */
export function masterKeysOf(found: readonly DataKey[]): readonly string[] {
  return [...new Set(found.map(({ masterKey }) => masterKey))];
}
