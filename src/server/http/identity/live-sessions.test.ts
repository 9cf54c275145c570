import { describe, expect, it } from 'vitest';
import type { ApiError } from '../../../api/errors.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { accessVersion } from '../../../core/access/rights-of.ts';
import { bearerOf, ownerOf, testBinding, testToken } from '../../../core/access/testing.ts';
import { extendToken, noteTokenUses, revokeToken } from '../../../core/operations/access/token.ts';
import { replaceOperator } from '../../../core/operations/servers/cluster.ts';
import { deletePlainResource } from '../../../core/operations/plain-resource.ts';
import type { Cluster } from '../../../core/state/records.ts';
import { commitPlan, testCache, testContext } from '../../../core/testing.ts';
import { type LiveSession, LiveSessions } from './live-sessions.ts';

const admin: Principal = { kind: 'admin' };
const cluster: Cluster = {
  kind: 'cluster',
  recordsVersion: 1,
  epoch: 'e',
  createdAtMs: 0,
  tokenSecret: 'x'.repeat(43),
  operatorDigest: 'a'.repeat(64),
};
const console = { verb: 'console', resource: 'instance', project: 'web', id: 'inst_a' } as const;

class Setting {
  readonly clock = createManualClock(0);
  readonly cache = testCache([
    cluster,
    testToken('ann', { role: 'user', project: 'web', expiresAtMs: 100_000 }),
    testToken('made', { role: 'user', project: 'web', owner: ownerOf('ann') }),
    testToken('bound'),
    testBinding('b', { role: 'user', project: 'web', subjects: [{ kind: 'token', name: 'bound' }] }),
  ]);
  readonly live = new LiveSessions(this);
  readonly ended: string[] = [];

  open(label: string, principal: Principal, session: Partial<LiveSession> = {}): () => void {
    const end = (why: ApiError): void => void this.ended.push(`${label}: ${why.code}`);
    return this.live.enter({ principal, end, ...session });
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('what is open', () => {
  it.each<[string, (setting: Setting) => void, readonly string[]]>([
    [
      'its token is revoked',
      ({ cache }) => commitPlan(cache, revokeToken(cache, { name: 'ann' }).plan),
      ['watch: Unauthenticated', 'console: Unauthenticated', 'made: Unauthenticated'],
    ],
    [
      'its token expires, and with it those that it made',
      ({ clock }) => clock.advance(100_000),
      ['watch: Unauthenticated', 'console: Unauthenticated', 'made: Unauthenticated'],
    ],
    [
      'the binding of its token is deleted',
      ({ cache }) =>
        commitPlan(cache, deletePlainResource(cache, 'binding', { project: '', name: 'b' }, testContext()).plan),
      ['bound watch: Forbidden', 'bound console: Forbidden'],
    ],
    [
      'the admin token is replaced',
      ({ cache }) => commitPlan(cache, replaceOperator(cache, 'b'.repeat(64), { nowMs: 1 }).plan),
      ['admin: Unauthenticated'],
    ],
  ])('is closed when %s, and nothing else is', async (_, happens, ended) => {
    const setting = new Setting();
    setting.open('watch', bearerOf('ann'));
    setting.open('console', bearerOf('ann'), { question: console });
    setting.open('made', bearerOf('made'));
    setting.open('bound watch', bearerOf('bound'));
    setting.open('bound console', bearerOf('bound'), { question: console });
    setting.open('admin', admin);
    setting.open('host', { kind: 'host', host: 'a' });
    happens(setting);
    await turn();
    expect(setting.ended).toEqual(ended);
  });

  it('stays open when its rights change and still allow it; a watch begins again', async () => {
    const setting = new Setting();
    setting.open('watch', bearerOf('ann'));
    setting.open('console', bearerOf('ann'), { question: console });
    const extension = { name: 'ann', expiresInSec: 3600 };
    commitPlan(setting.cache, extendToken(setting.cache, admin, extension, testContext({ nowMs: 0 })).plan);
    await turn();
    expect(setting.ended).toEqual(['watch: Forbidden']);
    setting.clock.advance(3_599_000);
    expect(setting.ended).toHaveLength(1);
    setting.clock.advance(1_000);
    expect(setting.ended).toEqual(['watch: Forbidden', 'console: Unauthenticated']);
  });

  it('does not notice the last use of a token', async () => {
    const setting = new Setting();
    setting.open('watch', bearerOf('ann'));
    const uses = new Map([['ann', { uid: bearerOf('ann').uid, atMs: 5 }]]);
    commitPlan(setting.cache, noteTokenUses(setting.cache, uses).plan);
    await turn();
    expect(setting.ended).toEqual([]);
  });

  it('is not closed after it has ended by itself', async () => {
    const setting = new Setting();
    setting.open('watch', bearerOf('ann'))();
    expect(setting.live.count).toBe(0);
    commitPlan(setting.cache, revokeToken(setting.cache, { name: 'ann' }).plan);
    await turn();
    expect(setting.ended).toEqual([]);
  });

  it('ends at once when rights changed while its request was handled', () => {
    const setting = new Setting();
    const since = accessVersion(setting.cache);
    commitPlan(setting.cache, revokeToken(setting.cache, { name: 'bound' }).plan);
    setting.open('revoked', bearerOf('bound'), { since, question: console });
    setting.open('watch', bearerOf('ann'), { since });
    setting.open('console', bearerOf('ann'), { since, question: console });
    expect(setting.ended).toEqual(['revoked: Unauthenticated', 'watch: Forbidden']);
  });
});
