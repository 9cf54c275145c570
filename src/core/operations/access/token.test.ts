import { describe, expect, it } from 'vitest';
import type { TokenSpec } from '../../../api/resources/token.ts';
import type { Principal } from '../../access/principal.ts';
import { rightsOf } from '../../access/rights-of.ts';
import { bearerOf, ownerOf, testBinding, testRole, testToken } from '../../access/testing.ts';
import type { Cache } from '../../state/cache.ts';
import type { AnyRecord } from '../../state/records.ts';
import { commitPlan, testCache, testContext, testInstance } from '../../testing.ts';
import { createShare } from './share.ts';
import { createToken, extendToken, issueToken, noteTokenUses, revokeToken, type TokenRequest } from './token.ts';

const ctx = testContext();
const day = 86_400_000;
const proof = { tokenId: 'new0000000', digest: 'd'.repeat(64) };
const admin: Principal = { kind: 'admin' };
const user = { provider: 'corp', subject: 'ann', groups: ['dev'] };

/** `lead`: administers web until day 10. `deep`: made by lead. `op`: fleet operator. `ann`: a login; her group administers web. */
const fleet: readonly AnyRecord[] = [
  testToken('lead', { role: 'project-admin', project: 'web', expiresAtMs: ctx.nowMs + 10 * day }),
  testToken('op', { role: 'fleet-operator' }),
  testToken('root', { role: 'admin' }),
  testToken('worker', { role: 'user', project: 'web' }),
  testToken('ann', { user, expiresAtMs: ctx.nowMs + day / 2 }),
  testRole('custom', { instance: ['read'], host: ['read'], backup: ['create'] }),
  testRole('auditor', { audit: ['read-audit'], image: ['create'] }),
  testBinding('devs', {
    role: 'project-admin',
    project: 'web',
    subjects: [{ kind: 'group', name: 'dev', provider: 'corp' }],
  }),
  testBinding('left-over', { role: 'fleet-operator', subjects: [{ kind: 'token', name: 'old-name' }] }),
];

function create(cache: Cache, principal: Principal, changes: Partial<TokenRequest> = {}): TokenSpec {
  const input = { name: 'new', labels: {}, description: '', proof, role: 'user', project: 'web', ...changes };
  const { plan } = createToken(cache, principal, input, ctx);
  commitPlan(cache, plan);
  const token = cache.get('token', 'tokens/new')?.value;
  if (token === undefined) throw new Error('no token was made');
  return token.spec;
}

describe('a new token', () => {
  it('depends on the token that made it, which never gives more than it has', () => {
    const cache = testCache(fleet);
    expect(create(cache, bearerOf('lead'))).toMatchObject({ owner: ownerOf('lead'), role: 'user', project: 'web' });
    const bearer: Principal = {
      kind: 'token',
      name: 'new',
      uid: cache.get('token', 'tokens/new')?.value.metadata.id ?? '',
      tokenId: proof.tokenId,
    };
    const question = { verb: 'create', resource: 'instance', project: 'web' } as const;
    expect(rightsOf(bearer, cache).allows(question)).toBe(true);
    commitPlan(cache, revokeToken(cache, { name: 'lead' }).plan);
    expect(rightsOf(bearer, cache).allows(question)).toBe(false);
  });

  it('of a login depends on the user instead, and outlives the login', () => {
    const spec = create(testCache(fleet), bearerOf('ann'));
    expect(spec).toMatchObject({ user, expiresAtMs: ctx.nowMs + 90 * day });
    expect(spec.owner).toBeUndefined();
  });

  it('is stored with the hash of its text in a record of its own', () => {
    const cache = testCache(fleet);
    create(cache, admin);
    const token = cache.get('token', 'tokens/new')?.value;
    expect(JSON.stringify(token)).not.toContain(proof.digest);
    expect(cache.get('credential', 'credentials/new0000000')?.value).toEqual({
      kind: 'credential',
      ...proof,
      token: 'new',
      uid: token?.metadata.id,
    });
  });

  it.each<[string, Principal, Partial<TokenRequest>, number | undefined]>([
    ['90 days, of the admin', admin, {}, 90 * day],
    ['as long as its maker, at most', bearerOf('lead'), {}, 10 * day],
    ['as long as asked for', bearerOf('lead'), { expiresInSec: 3600 }, 3_600_000],
    ['for ever, of the admin', admin, { neverExpires: true }, undefined],
    ['for ever, of another administrator', bearerOf('root'), { neverExpires: true }, undefined],
  ])('lasts %s', (_, principal, changes, lifeMs) => {
    const { expiresAtMs } = create(testCache(fleet), principal, changes);
    expect(expiresAtMs).toBe(lifeMs === undefined ? undefined : ctx.nowMs + lifeMs);
  });

  it.each<[string, Principal, Partial<TokenRequest>, string]>([
    ['a role that there is not', admin, { role: 'nope' }, 'there is no role "nope"'],
    ['a name that is taken', admin, { name: 'lead' }, 'exists already'],
    ['another project', bearerOf('lead'), { project: 'db' }, 'does not permit "issue-token" on token in project "db"'],
    ['the whole fleet', bearerOf('lead'), { project: undefined }, 'does not permit "issue-token"'],
    ['a maker without the verb', bearerOf('worker'), {}, 'does not permit "issue-token"'],
    ['a role that permits more', bearerOf('lead'), { role: 'admin' }, 'which token "lead" does not permit itself'],
    ['more than a user', bearerOf('ann'), { role: 'admin' }, 'does not permit itself'],
    ['an operator, a role of guests', bearerOf('op'), {}, 'does not permit "issue-token" on token'],
    ['a longer time than its maker has', bearerOf('lead'), { expiresInSec: 11 * 86_400 }, 'expires earlier itself'],
    ['no end, of others', bearerOf('lead'), { neverExpires: true }, 'only fleet administrators'],
    ['a name that bindings give more', bearerOf('lead'), { name: 'old-name' }, 'does not permit itself'],
    ['a host', { kind: 'host', host: 'a' }, {}, 'does not permit'],
    ['somebody without a token', { kind: 'anonymous' }, {}, 'does not permit'],
    ['a maker that was revoked', { ...bearerOf('lead'), uid: 'tok_earlier' }, {}, 'does not permit'],
  ])('is refused: %s', (_, principal, changes, message) => {
    expect(() => create(testCache(fleet), principal, changes)).toThrow(message);
  });

  it('of a role in a project may permit things that a role in a project never gives', () => {
    // `host: read` and `backup: create` have no effect in a project.
    expect(create(testCache(fleet), bearerOf('lead'), { role: 'custom' }).role).toBe('custom');
  });

  it('is not made by tokens of tokens of tokens without end', () => {
    const names = Array.from({ length: 10 }, (_, i) => `t${i}`);
    const chain = names.map((name, i) =>
      testToken(name, { role: 'project-admin', project: 'web', ...(i === 0 ? {} : { owner: ownerOf(`t${i - 1}`) }) }),
    );
    expect(create(testCache(chain), bearerOf('t7')).owner).toEqual(ownerOf('t7'));
    expect(() => create(testCache(chain), bearerOf('t8'))).toThrow('8 deep');
  });

  it('conflicts with the revocation of its maker', () => {
    const cache = testCache(fleet);
    const { plan } = createToken(
      cache,
      bearerOf('lead'),
      { name: 'new', labels: {}, description: '', proof, role: 'user', project: 'web' },
      ctx,
    );
    commitPlan(cache, revokeToken(cache, { name: 'lead' }).plan);
    expect(() => commitPlan(cache, plan)).toThrow('does not hold');
  });
});

describe('extending', () => {
  const extend = (principal: Principal, name: string, expiresInSec?: number): number | undefined => {
    const cache = testCache([...fleet, testToken('child', { role: 'user', project: 'web', owner: ownerOf('lead') })]);
    commitPlan(cache, extendToken(cache, principal, { name, expiresInSec }, ctx).plan);
    return cache.get('token', `tokens/${name}`)?.value.spec.expiresAtMs;
  };

  it('sets another end', () => {
    expect(extend(admin, 'lead', 60)).toBe(ctx.nowMs + 60_000);
    expect(extend(bearerOf('lead'), 'child', 60)).toBe(ctx.nowMs + 60_000);
  });

  it.each<[string, Principal, string, number, string]>([
    ['itself', bearerOf('lead'), 'lead', 60, 'cannot extend itself'],
    ['what one does not see', bearerOf('worker'), 'lead', 60, 'there is no token "lead"'],
    ['a login', admin, 'ann', 60, 'is a login'],
    ['a token beyond its maker', admin, 'child', 11 * 86_400, 'extend that first'],
    ['a token of others in its project, past its own end', bearerOf('lead'), 'worker', 11 * 86_400, 'expires earlier'],
  ])('is refused for %s', (_, principal, name, sec, message) => {
    expect(() => extend(principal, name, sec)).toThrow(message);
  });

  it('does not bring an expired token back', () => {
    const cache = testCache([testToken('over', { expiresAtMs: ctx.nowMs })]);
    expect(() => extendToken(cache, admin, { name: 'over' }, ctx)).toThrow('has expired already');
  });
});

describe('a share', () => {
  const instance = testInstance('web-1', {}, { host: 'a' });
  const share = (cache: Cache, principal: Principal, verbs: readonly ('console' | 'exec')[] = ['console']) => {
    const entry = cache.get('instance', 'instances/default/web-1');
    if (!entry) throw new Error('no instance');
    const request = { verbs, description: '', proof };
    const decision = createShare(cache, principal, { instance: entry, request }, ctx);
    commitPlan(cache, decision.plan);
    return cache.get('token', decision.key)?.value;
  };
  const records = [
    instance,
    testToken('member', { role: 'user', project: 'default' }),
    testToken('watcher', { role: 'viewer', project: 'default' }),
    testToken('stranger', { role: 'user', project: 'other' }),
  ];

  it('is a token for one instance, named after it, for two hours', () => {
    const made = share(testCache(records), bearerOf('member'));
    expect(made?.metadata.name).toBe('share-web-1');
    expect(made?.spec).toMatchObject({
      project: 'default',
      share: { instance: 'web-1', instanceId: instance.metadata.id, verbs: ['console'] },
      owner: ownerOf('member'),
      expiresAtMs: ctx.nowMs + 7_200_000,
    });
  });

  it('has another name each', () => {
    const cache = testCache(records);
    share(cache, admin);
    const key = cache.get('credential', 'credentials/new0000000');
    if (key) commitPlan(cache, { changes: [{ key: key.key, ifRevision: key.revision, value: null }] });
    expect(share(cache, admin)?.metadata.name).toBe('share-web-1-2');
  });

  it.each<[string, Principal, string]>([
    ['verbs that its maker does not have', bearerOf('watcher'), 'does not permit "console"'],
    ['an instance of others', bearerOf('stranger'), 'there is no instance "web-1"'],
  ])('is refused: %s', (_, principal, message) => {
    expect(() => share(testCache(records), principal)).toThrow(message);
  });

  it('makes no further share', () => {
    const cache = testCache([
      ...records,
      testToken('shared', {
        project: 'default',
        share: { instance: 'web-1', instanceId: instance.metadata.id, verbs: ['console'] },
      }),
    ]);
    expect(() => share(cache, bearerOf('shared'))).toThrow('a share cannot make tokens');
    expect(() => share(cache, bearerOf('shared'), ['exec'])).toThrow('does not permit "exec"');
  });
});

describe('the last use of tokens', () => {
  it('is written for those that are still there, once', () => {
    const cache = testCache([testToken('a'), testToken('b')]);
    const uses = new Map([
      ['a', { uid: bearerOf('a').uid, atMs: 5 }],
      ['b', { uid: 'tok_earlier', atMs: 5 }],
      ['gone', { uid: 'tok_gone', atMs: 5 }],
    ]);
    commitPlan(cache, noteTokenUses(cache, uses).plan);
    expect(cache.get('token', 'tokens/a')?.value.status.lastUsedAtMs).toBe(5);
    expect(noteTokenUses(cache, uses).plan.changes).toEqual([]);
  });
});

it('an issued token has what it was given', () => {
  const cache = testCache([]);
  commitPlan(cache, issueToken(cache, { name: 'login-1', spec: { description: '', user }, proof }, ctx).plan);
  expect(cache.get('token', 'tokens/login-1')?.value.spec.user).toEqual(user);
});
