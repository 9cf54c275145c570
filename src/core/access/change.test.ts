import { describe, expect, it } from 'vitest';
import { builtInRoles, type RoleRules } from '../../api/access.ts';
import type { AnyResource } from '../../api/resources/index.ts';
import { testCache, testHost, testInstance, testProject, testVolume } from '../testing.ts';
import { assertMayChange } from './change.ts';
import { bearerOf, testBinding, testRole, testToken } from './testing.ts';

type Change = { readonly before: AnyResource | undefined; readonly after: AnyResource | null };

/** What the role `r`, held in project web, says of a change. */
function outcome(rules: RoleRules, change: Change, project: string | null = 'web'): string {
  const token = testToken('t', { role: 'r', ...(project === null ? {} : { project }) });
  const cache = testCache([testRole('r', rules), token]);
  try {
    assertMayChange(cache, bearerOf(token), change);
    return 'yes';
  } catch (error) {
    return error instanceof Error ? error.message.replace('token "t" does not permit ', '') : String(error);
  }
}

const use: RoleRules = { image: ['use'] };
const web = { project: 'web' };
const plain = testInstance('a', {}, {}, web);
const labelled = testInstance('a', {}, {}, { ...web, labels: { tier: 'db' } });
const stopped = testInstance('a', { powerState: 'stopped' }, {}, web);
const restarted = testInstance('a', { starts: 1 }, {}, web);
const both = testInstance('a', { powerState: 'stopped' }, {}, { ...web, labels: { tier: 'db' } });
const graced = testInstance('a', { stopGraceMs: 1 }, {}, web);
const going = testInstance('a', {}, {}, { ...web, deletionRequestedAtMs: 5 });
const moved = testInstance('a', {}, {}, { project: 'api' });
const urgent = testInstance('a', { priority: 9 }, {}, web);
const attached = testInstance('a', { volumes: [{ name: 'data' }] }, {}, web);

describe('instances', () => {
  it.each<[string, RoleRules, Change, string]>([
    ['a create', { ...use, instance: ['create'] }, { before: undefined, after: plain }, 'yes'],
    [
      'a create without its image',
      { instance: ['create'] },
      { before: undefined, after: plain },
      '"use" on image in project "web"',
    ],
    [
      'a create elsewhere',
      { ...use, instance: ['create'] },
      { before: undefined, after: moved },
      '"create" on instance in project "api"',
    ],
    ['labels', { instance: ['read', 'update'] }, { before: plain, after: labelled }, 'yes'],
    [
      'labels with power only',
      { instance: ['read', 'power'] },
      { before: plain, after: labelled },
      '"update" on instance in project "web"',
    ],
    ['power', { instance: ['read', 'power'] }, { before: plain, after: stopped }, 'yes'],
    ['a restart', { instance: ['read', 'power'] }, { before: plain, after: restarted }, 'yes'],
    [
      'power with update only',
      { instance: ['read', 'update'] },
      { before: plain, after: stopped },
      '"power" on instance in project "web"',
    ],
    [
      'power and labels with power only',
      { instance: ['read', 'power'] },
      { before: plain, after: both },
      '"update" on instance in project "web"',
    ],
    [
      'power and labels with update only',
      { instance: ['read', 'update'] },
      { before: plain, after: both },
      '"power" on instance in project "web"',
    ],
    ['power and labels with both', { instance: ['read', 'power', 'update'] }, { before: plain, after: both }, 'yes'],
    [
      'another field with power only',
      { instance: ['read', 'power'] },
      { before: plain, after: graced },
      '"update" on instance in project "web"',
    ],
    ['a delete', { instance: ['read', 'delete'] }, { before: plain, after: going }, 'yes'],
    ['a delete at once', { instance: ['read', 'delete'] }, { before: plain, after: null }, 'yes'],
    [
      'a delete with update only',
      { instance: ['read', 'update', 'power'] },
      { before: plain, after: going },
      '"delete" on instance in project "web"',
    ],
    [
      'a change of what is not read',
      { instance: ['power'] },
      { before: plain, after: labelled },
      'there is no instance "a"',
    ],
    [
      'a change of what is elsewhere',
      { instance: ['read', 'update'] },
      { before: moved, after: moved },
      'there is no instance "a"',
    ],
    [
      'a move',
      { ...use, instance: ['read', 'create', 'update'] },
      { before: plain, after: moved },
      '"create" on instance in project "api"',
    ],
    [
      'a higher priority',
      { ...use, instance: ['read', 'update'] },
      { before: plain, after: urgent },
      '"use" on priority in project "web"',
    ],
    [
      'a priority that it has',
      { instance: ['read', 'update'] },
      { before: urgent, after: { ...urgent, metadata: labelled.metadata } },
      'yes',
    ],
    ['a lower priority', { instance: ['read', 'update'] }, { before: urgent, after: plain }, 'yes'],
    [
      'a volume',
      { instance: ['read', 'update'] },
      { before: plain, after: attached },
      '"use" on volume in project "web"',
    ],
    [
      'a volume with its use',
      { instance: ['read', 'update'], volume: ['use'] },
      { before: plain, after: attached },
      'yes',
    ],
    ['the loss of a volume', { instance: ['read', 'update'] }, { before: attached, after: plain }, 'yes'],
  ])('%s', (_name, rules, change, expected) => {
    expect(outcome(rules, change)).toBe(expected);
  });
});

describe('hosts', () => {
  const [host] = testHost('h');
  const [paused] = testHost('h', { spec: { paused: true } });
  const [pooled] = testHost('h', { spec: { pool: 'gpu' } });
  const [both] = testHost('h', { spec: { paused: true, pool: 'gpu' } });
  const [labelled] = testHost('h', { spec: { paused: true }, labels: { zone: 'a' } });
  it.each<[string, RoleRules, AnyResource, string]>([
    ['a pause', { host: ['read', 'drain'] }, paused, 'yes'],
    ['a pause with update only', { host: ['read', 'update'] }, paused, '"drain" on host'],
    ['a pool with drain only', { host: ['read', 'drain'] }, pooled, '"update" on host'],
    ['a pool', { host: ['read', 'update'] }, pooled, 'yes'],
    ['a pause and a pool with drain only', { host: ['read', 'drain'] }, both, '"update" on host'],
    ['a pause and a label with drain only', { host: ['read', 'drain'] }, labelled, '"update" on host'],
    ['a pause and a pool', { host: ['read', 'update', 'drain'] }, both, 'yes'],
  ])('%s', (_name, rules, after, expected) => {
    expect(outcome(rules, { before: host, after }, null)).toBe(expected);
  });
});

describe('projects', () => {
  const before = testProject('web');
  const named = { ...before, metadata: { ...before.metadata, labels: { team: 'a' } } };
  const rules: RoleRules = { project: ['read', 'update', 'delete', 'create'] };
  it.each<[string, Change, string, string]>([
    ['labels', { before, after: named }, 'yes', 'yes'],
    ['its quota', { before, after: testProject('web', { quota: { VCPU: 9 } }) }, '"update" on project', 'yes'],
    ['its weight', { before, after: testProject('web', { weight: 9 }) }, '"update" on project', 'yes'],
    ['its priorityMax', { before, after: testProject('web', { priorityMax: 9 }) }, '"update" on project', 'yes'],
    ['a delete', { before, after: null }, '"delete" on project', 'yes'],
    [
      'a create with a quota',
      { before: undefined, after: testProject('web', { quota: { VCPU: 9 } }) },
      '"create" on project',
      'yes',
    ],
    ['another project', { before: testProject('api'), after: testProject('api') }, 'there is no project "api"', 'yes'],
  ])('%s', (_name, change, inProject, inFleet) => {
    expect(outcome(rules, change)).toBe(inProject);
    expect(outcome(rules, change, null)).toBe(inFleet);
  });
});

describe('bindings', () => {
  const rules: RoleRules = { ...builtInRoles.viewer.rules, binding: ['read', 'create', 'update', 'delete'] };
  const of = (project: string | undefined) =>
    testBinding('b', { role: 'viewer', project, subjects: [{ kind: 'token', name: 'ci' }] });
  it.each<[string, Change, string]>([
    ['one of the project', { before: undefined, after: of('web') }, 'yes'],
    ['one of another project', { before: undefined, after: of('api') }, '"create" on binding in project "api"'],
    ['one of the fleet', { before: undefined, after: of(undefined) }, '"create" on binding'],
    ['a move to the fleet', { before: of('web'), after: of(undefined) }, '"create" on binding'],
    ['a move from the fleet', { before: of(undefined), after: of('web') }, 'there is no binding "b"'],
    ['a move from another project', { before: of('api'), after: of('web') }, 'there is no binding "b"'],
    ['the delete of one of the fleet', { before: of(undefined), after: null }, 'there is no binding "b"'],
  ])('%s', (_name, change, expected) => {
    expect(outcome(rules, change)).toBe(expected);
  });
});

it('asks an admin nothing, and a volume with its source both ways', () => {
  expect(() => assertMayChange(testCache([]), { kind: 'admin' }, { before: undefined, after: moved })).not.toThrow();
  const before = testVolume('a');
  const after = testVolume('a', { source: { volume: 'b', snapshot: 's' } });
  const volume = (...verbs: ('read' | 'update' | 'use')[]): RoleRules => ({ volume: verbs });
  expect(outcome(volume('read', 'update'), { before, after }, 'default')).toBe('"use" on volume in project "default"');
  expect(outcome(volume('read', 'update', 'use'), { before, after }, 'default')).toBe('yes');
});
