import { describe, expect, it } from 'vitest';
import type { Principal } from '../../access/principal.ts';
import { rightsOf } from '../../access/rights-of.ts';
import { testBinding, testRole } from '../../access/testing.ts';
import { garbage } from '../../controllers/garbage.ts';
import type { Cache } from '../../state/cache.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testCache, testContext } from '../../testing.ts';
import { logIn, type VerifiedLogin } from './login.ts';

const ctx = testContext();
const user = { issuer: 'https://idp.example', subject: 'ann', name: 'Ann' };
const spent = { digest: 'a'.repeat(64), untilMs: ctx.nowMs + 1_000 };
const proof = { tokenId: 'new0000000', digest: 'd'.repeat(64) };

const person = (groups: readonly string[] = [], provider = 'corp'): VerifiedLogin => ({
  user,
  grant: { kind: 'user', provider, groups },
  expiresInMs: 43_200_000,
  spent,
});
const workload = (role: string): VerifiedLogin => ({
  user,
  grant: { kind: 'workload', rule: 'ci', role, project: 'web' },
  expiresInMs: 60_000,
  spent,
});

const bindings = [
  testBinding('by-user', {
    role: 'viewer',
    project: 'web',
    subjects: [{ kind: 'user', name: 'ann', provider: 'corp' }],
  }),
  testBinding('by-group', {
    role: 'user',
    project: 'lab',
    subjects: [{ kind: 'group', name: 'lab', provider: 'corp' }],
  }),
  testBinding('by-token', { role: 'admin', subjects: [{ kind: 'token', name: 'ann' }] }),
];

/** Commits the login, and asks what its token permits at that time. */
function granted(cache: Cache, login: VerifiedLogin): (verb: 'read' | 'create', project: string) => boolean {
  const { plan, name } = logIn(cache, { login, proof }, ctx);
  commitPlan(cache, plan);
  const uid = cache.get('token', keys.token(name))?.value.metadata.id ?? '';
  const bearer: Principal = { kind: 'token', name, uid, tokenId: proof.tokenId };
  return (verb, project) => rightsOf(bearer, cache).allows({ verb, resource: 'instance', project });
}

describe('the token of a login', () => {
  it('has what bindings give to the user and the groups, while they do', () => {
    const cache = testCache(bindings);
    const may = granted(cache, person(['lab']));
    expect([may('read', 'web'), may('create', 'web'), may('create', 'lab')]).toEqual([true, false, true]);
    commitPlan(cache, { changes: [{ key: 'bindings/by-group', ifRevision: 2, value: null }] });
    expect(may('create', 'lab')).toBe(false);
  });

  it('of a workload has the role of its rule in one project, and nothing of bindings', () => {
    const may = granted(testCache(bindings), workload('user'));
    expect([may('create', 'web'), may('create', 'lab'), may('read', 'lab')]).toEqual([true, false, false]);
  });

  it('of a workload may have a custom role', () => {
    const may = granted(testCache([testRole('looker', { instance: ['read'] })]), workload('looker'));
    expect([may('read', 'web'), may('create', 'web')]).toEqual([true, false]);
  });

  it('ends with the time of the login', () => {
    const { expiresAtMs, plan } = logIn(testCache(bindings), { login: person(), proof }, ctx);
    expect(expiresAtMs).toBe(ctx.nowMs + 43_200_000);
    expect(plan.changes).toContainEqual(
      expect.objectContaining({ value: expect.objectContaining({ spec: expect.objectContaining({ expiresAtMs }) }) }),
    );
  });
});

describe('a login is refused', () => {
  it.each([
    [
      'of a user without a binding',
      { ...person(), user: { ...user, subject: 'eve' } },
      'no binding gives the user "eve"',
    ],
    ['of a user of another provider', person(['lab'], 'other'), 'no binding gives'],
    ['of a user who only has the name of a token', { ...person([], 'other') }, 'no binding gives'],
    ['of a workload whose role does not exist', workload('gone'), 'which does not exist'],
  ])('%s', (_, login, reason) => {
    expect(() => logIn(testCache(bindings), { login, proof }, ctx)).toThrow(reason);
  });

  it('with an ID token that was used, until that has expired and is forgotten', () => {
    const cache = testCache(bindings);
    commitPlan(cache, logIn(cache, { login: person(), proof }, ctx).plan);
    expect(() => logIn(cache, { login: person(), proof }, ctx)).toThrow('it was used before');
    const key = keys.spentIdToken(spent.digest);
    expect([...garbage.keys(cache)]).toContain(key);
    expect(garbage.reconcile(cache, key, ctx).changes).toEqual([]);
    const later = testContext({ nowMs: spent.untilMs });
    expect(garbage.reconcile(cache, key, later).changes).toMatchObject([{ key, value: null }]);
  });

  it('on a second server that has not heard of the first', () => {
    const cache = testCache(bindings);
    const [first, second] = [1, 2].map(() => logIn(cache, { login: person(), proof }, ctx).plan);
    commitPlan(cache, first ?? { changes: [] });
    expect(() => commitPlan(cache, second ?? { changes: [] })).toThrow('the Plan does not hold');
  });
});
