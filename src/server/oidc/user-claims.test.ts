import { describe, expect, it } from 'vitest';
import { displayNameOf, groupsOf, refuseJobs } from './user-claims.ts';

const base = { iss: 'https://idp.example', sub: 'user-1', exp: 1 };

describe('the groups of a user', () => {
  it.each([
    ['of a list', 'groups', { groups: ['ops', 'dev', 'ops'] }, ['ops', 'dev']],
    ['of one text', 'groups', { groups: 'ops' }, ['ops']],
    ['at a path, as of Keycloak', 'realm_access.roles', { realm_access: { roles: ['/team'] } }, ['/team']],
    ['of a claim with dots', 'https://acme.example/groups', { 'https://acme.example/groups': ['ops'] }, ['ops']],
    ['of an empty list', 'groups', { groups: [] }, []],
    ['that are not there', 'groups', {}, []],
    ['at a path that is not there', 'a.b', { a: 'x' }, []],
    ['that are null', 'groups', { groups: null }, []],
    ['at a path through what every object has', 'constructor.name', {}, []],
    ['when none are asked for', undefined, { groups: ['ops'] }, []],
  ])('%s', (_, path, claims, groups) => expect(groupsOf({ ...base, ...claims }, path)).toEqual(groups));

  it.each([
    ['by another claim', { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://x' } } }],
    ['by a flag', { hasgroups: true }],
    ['by a flag that is a text', { hasgroups: 'true' }],
  ])('are refused when Entra left them out, %s', (_, claims) => {
    expect(() => groupsOf({ ...base, ...claims }, 'groups')).toThrow('this user is in too many groups');
  });

  it.each([
    ['an object', { ops: true }],
    ['a number', 7],
    ['a list of objects', [{ name: 'ops' }]],
    ['an empty name', ['']],
    ['a name with a line break', ['a\nb']],
    ['a long name', ['x'.repeat(257)]],
    ['very many', Array.from({ length: 1_001 }, (_, i) => `g${i}`)],
  ])('are refused as %s', (_, groups) => {
    expect(() => groupsOf({ ...base, groups }, 'groups')).toThrow('its claim groups');
  });
});

describe('the name that is shown', () => {
  it.each([
    ['is the claim', { preferred_username: 'ada' }, 'ada'],
    ['is the address of mail without it', { email: 'ada@acme.example' }, 'ada@acme.example'],
    ['is the subject without both', {}, 'user-1'],
    ['has no characters that turn the text around', { preferred_username: 'ada\u202e\u0007 b' }, 'ada b'],
    ['is short', { preferred_username: 'x'.repeat(500) }, 'x'.repeat(128)],
  ])('%s', (_, claims, name) => expect(displayNameOf({ ...base, ...claims }, 'preferred_username')).toBe(name));
});

it.each(['repository_id', 'project_id', 'pipeline_source'])('a token with %s is not of a person', (claim) => {
  expect(() => refuseJobs({ ...base, [claim]: '1' })).toThrow('it is of a CI job');
});
