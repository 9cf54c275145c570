import { describe, expect, it } from 'vitest';
import type { RoleRules } from '../../../api/access.ts';
import type { BindingSpec } from '../../../api/resources/binding.ts';
import { assertMayChange } from '../../access/change.ts';
import type { Principal } from '../../access/principal.ts';
import { bearerOf, testBinding, testRole, testToken } from '../../access/testing.ts';
import { testCache, testContext } from '../../testing.ts';
import { createPlainResource, deletePlainResource } from '../plain-resource.ts';

const ctx = testContext();
const cache = testCache([
  testToken('lead', { role: 'project-admin', project: 'web' }),
  testToken('editor', { role: 'editor' }),
  testToken('holder', { role: 'used' }),
  testToken('shared', { project: 'web', share: { instance: 'a', instanceId: 'inst_a', verbs: ['console'] } }),
  testRole('editor', { role: ['read', 'create', 'update', 'delete'], image: ['read'] }),
  testRole('used', { image: ['read'] }),
  testRole('unused', { image: ['read'] }),
  testBinding('own', { role: 'editor', subjects: [{ kind: 'token', name: 'editor' }] }),
]);
const subjects: BindingSpec['subjects'] = [{ kind: 'token', name: 'ci' }];

describe('a binding', () => {
  it.each<[string, Partial<BindingSpec>, string]>([
    ['to an unknown role', { role: 'nope' }, 'there is no role "nope"'],
    [
      'of a user without a provider',
      { subjects: [{ kind: 'user', name: 'ann' }] },
      'needs the name of its login provider',
    ],
    ['of a token with a provider', { subjects: [{ kind: 'token', name: 'ci', provider: 'corp' }] }, 'has no provider'],
    ['of a share', { subjects: [{ kind: 'token', name: 'shared' }] }, 'is a share'],
  ])('%s is refused', (_, changes, message) => {
    const input = { project: '', name: 'b', labels: {}, spec: { role: 'viewer', subjects, ...changes } };
    expect(() => createPlainResource(cache, 'binding', input, ctx)).toThrow(message);
  });

  it.each<[string, Principal, BindingSpec, string | undefined]>([
    ['in its own project', bearerOf('lead'), { role: 'user', project: 'web', subjects }, undefined],
    ['to its own role', bearerOf('lead'), { role: 'project-admin', project: 'web', subjects }, undefined],
    ['of itself to more', bearerOf('lead'), { role: 'admin', project: 'web', subjects }, 'does not permit itself'],
    ['in another project', bearerOf('lead'), { role: 'user', project: 'db', subjects }, 'does not permit "create"'],
    ['in the whole fleet', bearerOf('lead'), { role: 'user', subjects }, 'does not permit "create" on binding'],
    ['without any right to bind', bearerOf('editor'), { role: 'editor', subjects }, 'does not permit "create"'],
  ])('by a project administrator: %s', (_, principal, spec, message) => {
    const check = () => assertMayChange(cache, principal, { before: undefined, after: testBinding('b', spec) });
    if (message === undefined) check();
    else expect(check).toThrow(message);
  });

  it('is not moved to another role, or out of the project', () => {
    const before = testBinding('b', { role: 'user', project: 'web', subjects });
    const change = (spec: Partial<BindingSpec>) => () =>
      assertMayChange(cache, bearerOf('lead'), { before, after: { ...before, spec: { ...before.spec, ...spec } } });
    change({ role: 'viewer' })();
    expect(change({ role: 'admin' })).toThrow('does not permit itself');
    expect(change({ project: 'db' })).toThrow('does not permit "create"');
  });
});

describe('a role', () => {
  it.each<[string, RoleRules, string | undefined]>([
    ['as much as its editor has', { image: ['read'] }, undefined],
    ['more than its editor has', { image: ['read', 'use'] }, 'this would permit "use" on image in the whole fleet'],
    ['bindings, of others', { binding: ['create'] }, 'this would permit "create" on binding'],
  ])('may be edited to permit %s', (_, rules, message) => {
    const before = testRole('editor', { image: ['read'] });
    const check = () => assertMayChange(cache, bearerOf('editor'), { before, after: testRole('editor', rules) });
    if (message === undefined) check();
    else expect(check).toThrow(message);
  });

  it.each(['admin', 'viewer', 'project-admin'])('cannot have the name of a built-in one: %s', (name) => {
    const input = { project: '', name, labels: {}, spec: { description: '', rules: {} } };
    expect(() => createPlainResource(cache, 'role', input, ctx)).toThrow('is a built-in role');
  });

  it.each([
    ['editor', 'binding "own", token "editor" would lose it'],
    ['used', 'token "holder" would lose it'],
  ])('in use cannot be deleted, and the answer says who has it: %s', (name, message) => {
    expect(() => deletePlainResource(cache, 'role', { project: '', name }, testContext())).toThrow(message);
  });

  it('that nobody has can be deleted', () => {
    expect(deletePlainResource(cache, 'role', { project: '', name: 'unused' }, testContext()).changed).toBe(true);
  });
});
