// The backup as a stream, for operators: it holds every secret there is.

import type { Clock } from '../../../../base/clock.ts';
import { ApiError } from '../../../../api/errors.ts';
import { storeRoutes } from '../../../../api/routes/store.ts';
import { type Store, StoreError } from '../../../../store/store.ts';
import { writeBackup } from '../../../storage/backup.ts';
import { bind } from '../bind.ts';
import type { Route } from '../../route.ts';

export function backupRoute({ store, clock, version }: { store: Store; clock: Clock; version: string }): Route {
  return bind(storeRoutes.backup, () => ({
    status: 200,
    bytes: told(writeBackup(store, { version, nowMs: Math.floor(clock.nowMs()) })),
    headers: { 'content-disposition': 'attachment; filename="berth-backup.jsonl"' },
  }));
}

/** An operator may know what the store says. */
async function* told(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  try {
    yield* pieces;
  } catch (error) {
    throw error instanceof StoreError ? new ApiError('Unavailable', error.message, { cause: error }) : error;
  }
}
