// `/v1/master-keys`: which master keys the store needs, for a rotation. It never shows a key.

import type { MasterKeyStatus } from '../../../../api/routes/master-keys.ts';
import { storeRoutes } from '../../../../api/routes/store.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import type { Sealing } from '../../../sealing/open-sealing.ts';
import { bind } from '../bind.ts';
import type { Route } from '../../route.ts';

export function masterKeysRoute(snapshot: Snapshot, sealing: Sealing | undefined): Route {
  return bind(storeRoutes.masterKeys, () => ({ status: 200, json: statusOf(snapshot, sealing) }));
}

function statusOf(snapshot: Snapshot, sealing: Sealing | undefined): MasterKeyStatus {
  if (!sealing) return { encrypts: false, keys: [], plainRecords: 0 };
  const { masterKeys } = sealing.dataKeys;
  const needed = new Map<string, number>(masterKeys.ids.map((id) => [id, 0]));
  for (const { value } of snapshot.list('dataKey')) needed.set(value.masterKey, (needed.get(value.masterKey) ?? 0) + 1);
  const keys = [...needed].map(([id, dataKeys]) => ({
    id,
    current: id === masterKeys.current.id,
    given: masterKeys.has(id),
    dataKeys,
  }));
  return { encrypts: true, keys, plainRecords: sealing.store.plain.size };
}
