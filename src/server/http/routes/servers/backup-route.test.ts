import { expect, it } from 'vitest';
import { systemClock } from '../../../../base/system.ts';
import { encodeRecord } from '../../../../core/state/codec.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { Cluster } from '../../../../core/state/records.ts';
import { createMemoryStore } from '../../../../store/memory/memory-store.ts';
import { backupRoute } from './backup-route.ts';

const open: Cluster = {
  kind: 'cluster',
  recordsVersion: 1,
  createdAtMs: 0,
  tokenSecret: 's',
  operatorToken: 't',
  epoch: 'e1',
};

async function bytesOfBackup(closed: Cluster['closed']): Promise<number> {
  const store = createMemoryStore();
  const value = encodeRecord({ ...open, ...(closed ? { closed } : {}) });
  await store.commit([], [{ key: keys.cluster, value }]);
  const route = backupRoute({ store, clock: systemClock, version: '1' });
  const answer = await route.handle({ query: { only: () => undefined } } as never);
  let bytes = 0;
  if ('bytes' in answer && answer.bytes) for await (const piece of answer.bytes) bytes += piece.byteLength;
  return bytes;
}

it('says why there can be no backup', async () => {
  const closed = { by: 'restore', why: 'a restore is under way', sinceMs: 1 } as const;
  await expect(bytesOfBackup(closed)).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringContaining('a restore is under way'),
  });
});

it('takes one of a store that was moved: it is whole, and may be the last', async () => {
  expect(await bytesOfBackup({ by: 'moved', why: 'moved', sinceMs: 1 })).toBeGreaterThan(100);
});
