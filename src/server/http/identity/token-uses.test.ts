import { expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { silentLogger } from '../../../base/log.ts';
import { issueToken } from '../../../core/operations/access/token.ts';
import { decideAndCommit } from '../../decide.ts';
import { startTestServer } from '../../testing.ts';
import { TokenUses } from './token-uses.ts';

it('writes the last use of tokens at most once a minute, together', async () => {
  const clock = createManualClock();
  const server = await startTestServer({ clock });
  const { decider } = server.plane;
  const { cache } = decider;
  for (const name of ['a', 'b']) {
    const proof = { tokenId: name.padStart(10, '0'), digest: 'd'.repeat(64) };
    await decideAndCommit(decider, (snapshot, ctx) =>
      issueToken(snapshot, { name, spec: { description: '' }, proof }, ctx),
    );
  }
  const uses = new TokenUses({ decider, log: silentLogger });
  const use = (name: string): void => {
    const token = cache.get('token', `tokens/${name}`)?.value;
    uses.note({ name, uid: token?.metadata.id ?? '', lastUsedAtMs: token?.status.lastUsedAtMs ?? 0 });
  };
  const lastUse = (name: string) => cache.committed('token', `tokens/${name}`)?.value.status.lastUsedAtMs;
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  const startedAtMs = clock.nowMs();
  for (let i = 0; i < 100; i++) use('a');
  use('b');
  await clock.advanceSettled(1_000, settle);
  expect([lastUse('a'), lastUse('b')]).toEqual([startedAtMs, startedAtMs]);
  const { revision } = cache;

  use('a');
  await clock.advanceSettled(59_000, settle);
  expect(cache.revision).toBe(revision); // within the minute

  use('a');
  const usedAtMs = clock.nowMs();
  await clock.advanceSettled(60_000, settle);
  expect(lastUse('a')).toBe(usedAtMs);
  expect(lastUse('b')).toBe(startedAtMs);
  uses.stop();
  use('b');
  await clock.advanceSettled(120_000, settle);
  expect(lastUse('b')).toBe(startedAtMs);
  await server.close();
});
