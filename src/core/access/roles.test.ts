import { describe, expect, it } from 'vitest';
import {
  type AccessResource,
  accessResources,
  type BuiltInRoleName,
  builtInRoles,
  isBuiltInRole,
  type Verb,
  verbs,
} from '../../api/access.ts';
import { testCache } from '../testing.ts';
import { may } from './may.ts';
import { bearerOf, testToken } from './testing.ts';

/** A letter for each verb. */
const letters: Readonly<Record<string, Verb>> = {
  r: 'read',
  c: 'create',
  u: 'update',
  d: 'delete',
  x: 'exec',
  k: 'console',
  l: 'logs',
  s: 'screen',
  f: 'forward',
  y: 'read-user-data',
  m: 'read-placement',
  p: 'power',
  D: 'drain',
  U: 'use',
  T: 'issue-token',
  A: 'read-audit',
};

/** What each role permits, as it was agreed: a change of a role is a change here. */
const table = `
resource     viewer  user         project-admin  fleet-operator  metrics
instance     r       rcudpxklsf   rcudpxklsfy    m               -
job          rl      rcudl        rcudl          m               -
jobTemplate  r       rcud         rcud           m               -
task         r       rcud         rcud           m               -
workload     r       rcud         rcud           m               -
warmPool     r       rcud         rcud           m               -
spare        r       rcud         rcud           m               -
group        r       rcud         rcud           m               -
volume       r       rcudU        rcudU          m               -
secret       -       rcudU        rcudU          -               -
webhook      -       -            rcud           -               -
event        r       r            r              m               -
image        r       rU           rU             rcudU           -
size         r       rU           rU             rcudU           -
pool         r       rU           rU             rcudU           -
priority     -       -            U              -               -
project      r       r            ru             r               -
host         -       -            -              rcudDT          -
inventory    -       -            -              rcud            -
token        -       -            rcudT          -               -
role         -       -            -              -               -
binding      -       r            rcud           -               -
audit        -       -            A              m               -
dead-letter  -       -            -              -               -
fleet        -       -            -              r               -
backup       -       -            -              -               -
metrics      -       -            -              r               r
`;

/** Resources of the fleet that a role in a project permits: those that a project's work is made of. */
const sharedByAll: ReadonlySet<AccessResource> = new Set<AccessResource>(['image', 'size', 'pool']);
const ofTheFleet: ReadonlySet<AccessResource> = new Set<AccessResource>([
  ...sharedByAll,
  'host',
  'inventory',
  'role',
  'dead-letter',
  'fleet',
  'backup',
  'metrics',
]);

const [head = [], ...rows] = table
  .trim()
  .split('\n')
  .map((line) => line.trim().split(/\s+/));
const agreed = rows.flatMap(([resource = '', ...cells]) =>
  cells.map((cell, i) => ({
    resource: resource as AccessResource, // the table is compared with all resources below
    role: (head[i + 1] ?? '') as BuiltInRoleName, // and with all roles
    verbs: cell === '-' ? [] : cell.split('').map((letter) => letters[letter] ?? 'unknown'),
  })),
);

it('has every resource, every role but admin, and a letter for every verb', () => {
  expect(rows.map(([resource]) => resource)).toEqual([...accessResources]);
  expect([...head.slice(1), 'admin'].sort()).toEqual(Object.keys(builtInRoles).sort());
  expect(Object.values(letters).sort()).toEqual([...verbs].sort());
});

describe.each(agreed)('$role on $resource', ({ role, resource, verbs: expected }) => {
  const inProject = testToken('in-project', { role, project: 'web' });
  const inFleet = testToken('in-fleet', { role });
  const cache = testCache([inProject, inFleet]);
  const permitted = (token: typeof inProject, project: string | undefined): Verb[] =>
    verbs.filter((verb) => may(bearerOf(token), { verb, resource, project }, cache) === undefined);
  const sorted = [...expected].sort();

  it('permits in its project what the table says, and in others nothing', () => {
    const shared = sharedByAll.has(resource);
    if (!ofTheFleet.has(resource)) {
      expect(permitted(inProject, 'web').sort()).toEqual(sorted);
      expect(permitted(inProject, undefined)).toEqual([]);
    } else if (shared) {
      const kept = sorted.filter((verb) => verb === 'read' || verb === 'use');
      expect(permitted(inProject, undefined).sort()).toEqual(kept);
    } else expect(permitted(inProject, undefined)).toEqual([]);
    expect(permitted(inProject, 'api')).toEqual([]);
  });

  it('permits the same in every project when it is held in the whole fleet', () => {
    expect(permitted(inFleet, undefined).sort()).toEqual(sorted);
    expect(permitted(inFleet, 'api').sort()).toEqual(sorted);
  });
});

it('permits an admin everything, in the whole fleet only', () => {
  const admin = testToken('boss', { role: 'admin' });
  const cache = testCache([admin]);
  for (const resource of accessResources)
    for (const verb of verbs) {
      expect(may(bearerOf(admin), { verb, resource }, cache)).toBeUndefined();
      expect(may({ kind: 'admin' }, { verb, resource }, cache)).toBeUndefined();
    }
});

it('knows only the names of built-in roles', () => {
  expect(isBuiltInRole('viewer')).toBe(true);
  for (const name of ['Viewer', '__proto__', 'constructor', 'toString', '']) expect(isBuiltInRole(name)).toBe(false);
});
