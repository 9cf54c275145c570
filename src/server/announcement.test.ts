import { expect, it } from 'vitest';
import { silentLogger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { keys } from '../core/state/keys.ts';
import { Announcement } from './announcement.ts';
import { decideAndCommit } from './decide.ts';
import { startTestServer } from './testing.ts';

it('announces each server while it runs, and again when it was taken away', async () => {
  const server = await startTestServer();
  const { decider } = server.plane;
  const announcement = (name: string, url: string | undefined): Announcement =>
    new Announcement({ decider, log: silentLogger, name, url });
  const first = announcement('one', 'http://cp1:7070');
  const second = announcement('two', 'http://cp2:7070');
  const silent = announcement('three', undefined);
  try {
    expect(silent.announced).toBeUndefined();
    for (const each of [first, second, silent]) each.start();
    await expect.poll(() => silent.announced).toBe('http://cp1:7070, http://cp2:7070');
    // It is known as a server of the store, but no client is told to go there.
    await expect
      .poll(() => decider.cache.committed('member', keys.member('three'))?.value)
      .toMatchObject({ name: 'three', version });
    expect(first.announced).toBe(silent.announced);

    const entry = decider.cache.committed('member', keys.member('one')) ?? expect.unreachable();
    await decideAndCommit(decider, () => ({
      plan: { changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] },
    }));
    await expect
      .poll(() => decider.cache.committed('member', keys.member('one'))?.revision)
      .toBeGreaterThan(entry.revision);

    await second.stop();
    await expect.poll(() => silent.announced).toBe('http://cp1:7070');
  } finally {
    await Promise.all([first.stop(), silent.stop()]);
    await server.close();
  }
});
