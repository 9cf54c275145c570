import { describe, expect, it } from 'vitest';
import type { AnyRecord } from '../state/records.ts';
import { keys } from '../state/keys.ts';
import { addRecord, testCache, testImage, testInstance, testVolume } from '../testing.ts';
import type { RoleRules, Verb } from '../../api/access.ts';
import type { TokenUser } from '../../api/resources/token.ts';
import { assertMayOn, may, mayKnow } from './may.ts';
import type { Principal } from './principal.ts';
import type { Question } from './question.ts';
import { accessVersion, rightsOf } from './rights-of.ts';
import { bearerOf, testBinding, testRole, testToken } from './testing.ts';

const read = (project: string | undefined): Question => ({ verb: 'read', resource: 'instance', project });

function allowed(principal: Principal, records: readonly AnyRecord[], question: Question): boolean {
  return may(principal, question, testCache(records)) === undefined;
}

const ada: TokenUser = { provider: 'corp', subject: 'ada', groups: ['team', 'ops'] };
const login = testToken('ada-1', { user: ada });
const to = (kind: 'token' | 'user' | 'group', name: string, provider?: string) => ({
  subjects: [{ kind, name, ...(provider === undefined ? {} : { provider }) }],
});

describe('bindings', () => {
  const ci = testToken('ci');
  it.each([
    ['of its name', ci, { role: 'viewer', project: 'web', ...to('token', 'ci') }, true],
    ['of the whole fleet', ci, { role: 'viewer', ...to('token', 'ci') }, true],
    ['in another project', ci, { role: 'viewer', project: 'api', ...to('token', 'ci') }, false],
    ['of another name', ci, { role: 'viewer', project: 'web', ...to('token', 'cd') }, false],
    ['of a user of that name', ci, { role: 'viewer', project: 'web', ...to('user', 'ci', 'corp') }, false],
    ['with a role that is not there', ci, { role: 'gone', project: 'web', ...to('token', 'ci') }, false],
    ['with a role called __proto__', ci, { role: '__proto__', project: 'web', ...to('token', 'ci') }, false],
    ['of the user', login, { role: 'viewer', project: 'web', ...to('user', 'ada', 'corp') }, true],
    ['of the user at another provider', login, { role: 'viewer', project: 'web', ...to('user', 'ada', 'evil') }, false],
    ['of the user without a provider', login, { role: 'viewer', project: 'web', ...to('user', 'ada') }, false],
    ['of a group', login, { role: 'viewer', project: 'web', ...to('group', 'ops', 'corp') }, true],
    ['of a group elsewhere', login, { role: 'viewer', project: 'web', ...to('group', 'ops', 'evil') }, false],
    [
      'of a group with the name of the user',
      login,
      { role: 'viewer', project: 'web', ...to('group', 'ada', 'corp') },
      false,
    ],
  ])('%s', (_name, token, spec, expected) => {
    expect(allowed(bearerOf(token), [token, testBinding('b', spec)], read('web'))).toBe(expected);
  });

  it('add up', () => {
    const records = [
      ci,
      testBinding('a', { role: 'viewer', project: 'web', ...to('token', 'ci') }),
      testBinding('b', { role: 'user', project: 'api', ...to('token', 'ci') }),
    ];
    expect(allowed(bearerOf(ci), records, read('web'))).toBe(true);
    expect(allowed(bearerOf(ci), records, { verb: 'create', resource: 'instance', project: 'web' })).toBe(false);
    expect(allowed(bearerOf(ci), records, { verb: 'create', resource: 'instance', project: 'api' })).toBe(true);
  });

  it('cannot name a subject so that it reads as another: a slash separates nothing', () => {
    const slashed = testToken('t', { user: { provider: 'corp', subject: 'x/ada', groups: [] } });
    const binding = testBinding('b', { role: 'viewer', ...to('user', 'ada', 'corp') });
    expect(allowed(bearerOf(slashed), [slashed, binding], read('web'))).toBe(false);
  });

  it('need no record of the project', () => {
    const records = [ci, testBinding('b', { role: 'viewer', project: 'never-made', ...to('token', 'ci') })];
    expect(allowed(bearerOf(ci), records, read('never-made'))).toBe(true);
  });
});

describe('custom roles', () => {
  const rules: RoleRules = { instance: ['read', 'console'], image: ['create'], host: ['read'] };
  const inProject = testToken('in-project', { role: 'watcher', project: 'web' });
  const inFleet = testToken('in-fleet', { role: 'watcher' });
  const records = [testRole('watcher', rules), inProject, inFleet];
  it.each<[Verb, Question['resource'], string | undefined, boolean, boolean]>([
    // verb, resource, project → in project web, in the fleet
    ['console', 'instance', 'web', true, true],
    ['exec', 'instance', 'web', false, false],
    ['console', 'instance', 'api', false, true],
    // A project gives no rights on what belongs to all.
    ['create', 'image', undefined, false, true],
    ['read', 'host', undefined, false, true],
    ['read', 'image', undefined, false, false],
  ])('%s %s in %s', (verb, resource, project, local, everywhere) => {
    expect(allowed(bearerOf(inProject), records, { verb, resource, project })).toBe(local);
    expect(allowed(bearerOf(inFleet), records, { verb, resource, project })).toBe(everywhere);
  });

  it('permit nothing once they are deleted, and what they say at once when they change', () => {
    const cache = testCache(records);
    expect(may(bearerOf(inProject), read('web'), cache)).toBeUndefined();
    addRecord(cache, testRole('watcher', { instance: ['console'] }));
    expect(may(bearerOf(inProject), read('web'), cache)).toBeDefined();
    const revision = cache.revision + 1;
    cache.apply([{ key: keys.role('watcher'), value: null, revision }], revision);
    expect(rightsOf(bearerOf(inProject), cache).anywhere('console', 'instance')).toBe(false);
  });
});

describe('tokens', () => {
  it('are nothing once they are deleted, nor under a name that was made again', () => {
    const old = testToken('ci', { role: 'admin' }, { id: `tok_${'1'.repeat(26)}` });
    const cache = testCache([old]);
    expect(may(bearerOf(old), read('web'), cache)).toBeUndefined();
    addRecord(cache, testToken('ci', { role: 'admin' }, { id: `tok_${'2'.repeat(26)}` }));
    expect(may(bearerOf(old), read('web'), cache)).toBeDefined();
    const revision = cache.revision + 1;
    cache.apply([{ key: keys.token('ci'), value: null, revision }], revision);
    expect(may(bearerOf(old), read('web'), cache)).toBeDefined();
  });

  it('read and delete themselves, those that they made and those of their user, and no others', () => {
    const own = testToken('own');
    const made = testToken('made', { owner: { name: 'own', id: own.metadata.id } });
    const second = testToken('ada-2', { user: { ...ada, groups: [] } });
    const elsewhere = testToken('ada-3', { user: { ...ada, provider: 'evil' } });
    const cache = testCache([own, made, login, second, elsewhere]);
    const knows = (by: typeof own, token: typeof own): boolean => mayKnow(bearerOf(by), token, cache);
    expect([own, made, login].map((token) => knows(own, token))).toEqual([true, true, false]);
    expect(knows(made, own)).toBe(false);
    expect([login, second, elsewhere, own].map((token) => knows(login, token))).toEqual([true, true, false, false]);
    expect(() => assertMayOn(cache, bearerOf(own), 'update', own)).toThrow('does not permit "update"');
    expect(() => assertMayOn(cache, bearerOf(own), 'delete', made)).not.toThrow();
    expect(() => assertMayOn(cache, bearerOf(made), 'delete', own)).toThrow('there is no token "own"');
  });

  it('never permit more than their owner does now, at any depth', () => {
    const first = testToken('first', { role: 'user', project: 'web' });
    const second = testToken('second', { role: 'admin', owner: { name: 'first', id: first.metadata.id } });
    const third = testToken('third', { role: 'admin', owner: { name: 'second', id: second.metadata.id } });
    const cache = testCache([first, second, third]);
    expect(may(bearerOf(third), read('web'), cache)).toBeUndefined();
    expect(may(bearerOf(third), read('api'), cache)).toBeDefined();
    addRecord(cache, testToken('first', { role: 'metrics' }));
    expect(may(bearerOf(third), read('web'), cache)).toBeDefined();
    expect(rightsOf(bearerOf(third), cache).anywhere('read', 'instance')).toBe(false);
  });

  it('are nothing without their owner, or as their own owner', () => {
    const orphan = testToken('orphan', { role: 'admin', owner: { name: 'gone', id: 'tok_gone' } });
    const looped = testToken('looped', {
      role: 'admin',
      owner: { name: 'looped', id: testToken('looped').metadata.id },
    });
    expect(allowed(bearerOf(orphan), [orphan], read('web'))).toBe(false);
    expect(allowed(bearerOf(looped), [looped], read('web'))).toBe(false);
  });

  it('expire no later than their owners', () => {
    const owner = testToken('owner', { role: 'admin', expiresAtMs: 5_000 });
    const made = testToken('made', {
      role: 'user',
      owner: { name: 'owner', id: owner.metadata.id },
      expiresAtMs: 9_000,
    });
    const cache = testCache([owner, made]);
    expect(rightsOf(bearerOf(made), cache).expiresAtMs).toBe(5_000);
  });

  it('that a user made have their role within what the user has', () => {
    const made = testToken('made', { user: ada, role: 'user', project: 'web' });
    const viewer = testBinding('b', { role: 'viewer', project: 'web', ...to('user', 'ada', 'corp') });
    const create: Question = { verb: 'create', resource: 'instance', project: 'web' };
    expect(allowed(bearerOf(made), [made, viewer], read('web'))).toBe(true);
    expect(allowed(bearerOf(made), [made, viewer], create)).toBe(false);
    expect(allowed(bearerOf(made), [made], read('web'))).toBe(false);
  });
});

describe('a share', () => {
  const instance = testInstance('web-1', {}, {}, { project: 'web' });
  const other = testInstance('web-2', {}, {}, { project: 'web' });
  const owner = testToken('owner', { role: 'user', project: 'web' });
  const share = { instance: 'web-1', instanceId: instance.metadata.id, verbs: ['console' as const] };
  const token = testToken('guest', { share, project: 'web', owner: { name: 'owner', id: owner.metadata.id } });
  const cache = testCache([testImage(), instance, other, owner, token]);
  const by = bearerOf(token);

  it('opens its instance with its verbs, and reads it', () => {
    for (const verb of ['console', 'read'] as const) assertMayOn(cache, by, verb, instance);
    for (const verb of ['exec', 'logs', 'update', 'delete', 'power', 'read-user-data'] as const)
      expect(() => assertMayOn(cache, by, verb, instance)).toThrow(`does not permit "${verb}"`);
  });

  it('knows of nothing else', () => {
    expect(mayKnow(by, other, cache)).toBe(false);
    expect(mayKnow(by, testVolume('data'), cache)).toBe(false);
    expect(mayKnow(by, testImage(), cache)).toBe(false);
    expect(mayKnow(by, owner, cache)).toBe(false);
    expect(rightsOf(by, cache).anywhere('create', 'instance')).toBe(false);
  });

  it('does not open an instance that was made under the same name', () => {
    const again = testInstance('web-1', {}, {}, { project: 'web', id: `inst_${'9'.repeat(26)}` });
    expect(() => assertMayOn(cache, by, 'console', again)).toThrow('there is no instance "web-1"');
  });

  it('ends with the rights of who gave it', () => {
    const later = testCache([instance, testToken('owner', { role: 'viewer', project: 'web' }), token]);
    expect(() => assertMayOn(later, by, 'console', instance)).toThrow('does not permit');
    const gone = testCache([instance, token]);
    expect(() => assertMayOn(gone, by, 'read', instance)).toThrow('there is no instance');
  });
});

describe('other principals', () => {
  it.each<[Principal, string, boolean]>([
    [{ kind: 'anonymous' }, 'web', false],
    [{ kind: 'host', host: 'web' }, 'web', false],
    [{ kind: 'intake', name: 'amqp', project: 'web' }, 'web', true],
    [{ kind: 'intake', name: 'amqp', project: 'web' }, 'api', false],
  ])('%j in %s', (principal, project, expected) => {
    expect(allowed(principal, [], read(project))).toBe(expected);
  });
});

it('grows the version with each change of rights, and not with the last use of a token', () => {
  const token = testToken('ci');
  const cache = testCache([token]);
  const versions = [accessVersion(cache)];
  addRecord(cache, { ...token, status: { ...token.status, lastUsedAtMs: 1 } });
  versions.push(accessVersion(cache));
  addRecord(cache, testBinding('b', { role: 'viewer', ...to('token', 'ci') }));
  versions.push(accessVersion(cache));
  addRecord(cache, testRole('r', { instance: ['read'] }));
  versions.push(accessVersion(cache));
  addRecord(cache, testInstance('a'));
  versions.push(accessVersion(cache));
  const [first = 0] = versions;
  expect(versions.map((version) => version - first)).toEqual([0, 0, 1, 2, 2]);
});
