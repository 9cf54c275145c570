// Who may do what, as data: the verbs, the resources and the built-in roles. core/access/ decides by it, docs/access-control.md
// shows it, and the command line completes it.

import { type Static, Type } from 'typebox';

/** What may be permitted. Each route names its own (api/routes); none is derived from an HTTP method. */
export const verbs = [
  'read',
  'create',
  'update',
  'delete',
  'exec',
  'console',
  'logs',
  'screen',
  'forward',
  'read-user-data',
  'read-placement',
  'power',
  'drain',
  'use',
  'issue-token',
  'read-audit',
] as const;
export type Verb = (typeof verbs)[number];

/** What a verb applies to: the kinds of resources, and what is no stored resource. */
export const accessResources = [
  'instance',
  'job',
  'jobTemplate',
  'task',
  'workload',
  'warmPool',
  'spare',
  'group',
  'volume',
  'secret',
  'webhook',
  'event',
  'image',
  'size',
  'pool',
  'priority',
  'project',
  'host',
  'inventory',
  'token',
  'role',
  'binding',
  'audit',
  'dead-letter',
  'fleet',
  'backup',
  'metrics',
] as const;
export type AccessResource = (typeof accessResources)[number];

/** For each resource, the verbs that a role permits. */
export type RoleRules = Readonly<Partial<Record<AccessResource, readonly Verb[]>>>;

export const VerbName = Type.Enum([...verbs]);

export const RoleRulesSchema = Type.Unsafe<RoleRules>(
  Type.Object(
    Object.fromEntries(
      accessResources.map((resource) => [
        resource,
        Type.Optional(Type.Array(VerbName, { minItems: 1, maxItems: verbs.length, uniqueItems: true })),
      ]),
    ),
    { additionalProperties: false, description: 'by resource: the verbs; there is no "all"' },
  ),
);

/**
 * Resources of the whole fleet that a role in one project permits, too, and with which verbs. Everything else of the fleet
 * needs a role in the whole fleet.
 */
export const sharedWithProjects: RoleRules = {
  image: ['read', 'use'],
  size: ['read', 'use'],
  pool: ['read', 'use'],
};

/** Ways into a guest, as verbs. */
export const guestVerbs = ['exec', 'console', 'logs', 'screen', 'forward'] as const satisfies readonly Verb[];
export const ShareVerb = Type.Enum([...guestVerbs]);
export type ShareVerb = Static<typeof ShareVerb>;

const viewer = {
  instance: ['read'],
  job: ['read', 'logs'],
  jobTemplate: ['read'],
  task: ['read'],
  workload: ['read'],
  warmPool: ['read'],
  spare: ['read'],
  group: ['read'],
  volume: ['read'],
  event: ['read'],
  image: ['read'],
  size: ['read'],
  pool: ['read'],
  project: ['read'],
} as const satisfies RoleRules;

const user = {
  instance: ['read', 'create', 'update', 'delete', 'power', 'exec', 'console', 'logs', 'screen', 'forward'],
  job: ['read', 'create', 'update', 'delete', 'logs'],
  jobTemplate: ['read', 'create', 'update', 'delete'],
  task: ['read', 'create', 'update', 'delete'],
  workload: ['read', 'create', 'update', 'delete'],
  warmPool: ['read', 'create', 'update', 'delete'],
  spare: ['read', 'create', 'update', 'delete'],
  group: ['read', 'create', 'update', 'delete'],
  volume: ['read', 'create', 'update', 'delete', 'use'],
  secret: ['read', 'create', 'update', 'delete', 'use'],
  event: ['read'],
  image: ['read', 'use'],
  size: ['read', 'use'],
  pool: ['read', 'use'],
  project: ['read'],
  binding: ['read'],
} as const satisfies RoleRules;

const projectAdmin = {
  ...user,
  webhook: ['read', 'create', 'update', 'delete'],
  instance: [...user.instance, 'read-user-data'],
  priority: ['use'],
  project: ['read', 'update'],
  token: ['read', 'create', 'update', 'delete', 'issue-token'],
  binding: ['read', 'create', 'update', 'delete'],
  audit: ['read-audit'],
} as const satisfies RoleRules;

const fleetOperator = {
  instance: ['read-placement'],
  job: ['read-placement'],
  jobTemplate: ['read-placement'],
  task: ['read-placement'],
  workload: ['read-placement'],
  warmPool: ['read-placement'],
  spare: ['read-placement'],
  group: ['read-placement'],
  volume: ['read-placement'],
  event: ['read-placement'],
  image: ['read', 'create', 'update', 'delete', 'use'],
  size: ['read', 'create', 'update', 'delete', 'use'],
  pool: ['read', 'create', 'update', 'delete', 'use'],
  host: ['read', 'create', 'update', 'delete', 'drain', 'issue-token'],
  inventory: ['read', 'create', 'update', 'delete'],
  project: ['read'],
  fleet: ['read'],
  audit: ['read-placement'], // of what belongs to no project
  metrics: ['read'],
} as const satisfies RoleRules;

const admin: RoleRules = Object.fromEntries(accessResources.map((resource) => [resource, verbs]));

export interface BuiltInRole {
  readonly description: string;
  readonly rules: RoleRules;
}

/** Roles that every fleet has. A custom role cannot have one of their names. */
export const builtInRoles = {
  viewer: { description: 'reads what a project has, without ways into guests', rules: viewer },
  user: { description: 'works with instances, jobs, volumes and secrets of a project', rules: user },
  'project-admin': {
    description: 'a user who also gives others access to the project and reads user-data',
    rules: projectAdmin,
  },
  'fleet-operator': {
    description: 'works with hosts, pools, sizes and images; of guests it sees only where they are',
    rules: fleetOperator,
  },
  metrics: { description: 'reads /metrics', rules: { metrics: ['read'] } },
  admin: { description: 'everything', rules: admin },
} as const satisfies Record<string, BuiltInRole>;
export type BuiltInRoleName = keyof typeof builtInRoles;

export function isBuiltInRole(name: string): name is BuiltInRoleName {
  return Object.hasOwn(builtInRoles, name);
}
