import { describe, expect, it } from 'vitest';
import { keys } from '../../state/keys.ts';
import { recordsVersion } from '../../state/upgrade.ts';
import type { Member } from '../../state/records.ts';
import { commitPlan, testCache, testContext } from '../../testing.ts';
import { announceEveryMs, announceMember, withdrawMember } from './member.ts';

const member = (name: string, announcedAtMs: number): Member => ({
  kind: 'member',
  name,
  url: `http://${name}:7070`,
  version: '0.1.0',
  recordsVersion,
  announcedAtMs,
});
const day = announceEveryMs;

describe('a server that announces itself', () => {
  it.each([
    ['is written when it is new', [], 'http://cp1:7070', true],
    ['is left as it is when it was announced lately', [member('cp1', 9.9 * day)], 'http://cp1:7070', false],
    [
      'is written again by another version',
      [{ ...member('cp1', 9.9 * day), version: '0.0.9' }],
      'http://cp1:7070',
      true,
    ],
    ['is written again after a day', [member('cp1', 9 * day)], 'http://cp1:7070', true],
    ['is written again without an address', [member('cp1', 9.9 * day)], undefined, true],
    ['is written again with another address', [member('cp1', 9.9 * day)], 'https://cp1', true],
  ])('%s', (_, records, url, writes) => {
    const cache = testCache(records);
    const { plan } = announceMember(cache, { name: 'cp1', url, version: '0.1.0' }, testContext({ nowMs: 10 * day }));
    expect(plan.changes.length > 0).toBe(writes);
    commitPlan(cache, plan);
    expect(cache.get('member', keys.member('cp1'))?.value.url).toBe(url);
  });

  it('forgets those that have not for a week', () => {
    const cache = testCache([member('old', 2.9 * day), member('away', 3.1 * day)]);
    const announced = { name: 'cp1', url: 'http://cp1', version: '0.1.0' };
    commitPlan(cache, announceMember(cache, announced, testContext({ nowMs: 10 * day })).plan);
    expect([...cache.list('member')].map(({ value }) => value.name).sort()).toEqual(['away', 'cp1']);
  });

  it('withdraws its address when it stops', () => {
    const cache = testCache([member('cp1', 0)]);
    commitPlan(cache, withdrawMember(cache, 'cp1').plan);
    expect([...cache.list('member')]).toEqual([]);
    expect(withdrawMember(cache, 'cp1').plan.changes).toEqual([]);
  });
});
