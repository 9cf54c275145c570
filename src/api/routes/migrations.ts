// Routes of the move of an instance to another host: the plan, its start by hash, its end.

import { Type } from 'typebox';
import { MigrateOptions, MigrationPlan } from '../plans/migration-plan.ts';
import { Migration } from '../resources/migration.ts';
import { queryParameters } from './parameters.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'instances';
const { project } = queryParameters;
const path = '/v1/instances/:name/migration';

export const MigrateRequest = Type.Object(
  {
    ...MigrateOptions.properties,
    apply: Type.Optional(
      Type.String({ minLength: 8, maxLength: 64, description: 'the hash of the plan to begin; absent: show the plan' }),
    ),
  },
  closed,
);

export const MigrateAnswer = Type.Object(
  { plan: Type.Optional(MigrationPlan), migration: Type.Optional(Migration) },
  { ...closed, description: 'the plan, or the move that has begun' },
);

export const migrationRoutes = {
  migrate: route({
    id: 'migrateInstance',
    tag,
    method: 'POST',
    path,
    access: needs('host', 'drain'),
    audit: 'applied',
    summary: 'Plan the move of an instance to another host, or begin it: it is stopped while its files are copied',
    query: { project },
    body: MigrateRequest,
    answers: { 200: json(MigrateAnswer) },
    errors: ['NotFound', 'Conflict'],
  }),
  cancel: route({
    id: 'cancelMigration',
    tag,
    method: 'DELETE',
    path,
    access: needs('host', 'drain'),
    summary: 'End the move of an instance that still belongs to the host that it leaves; it is started there again',
    query: { project },
    answers: { 200: json(Migration) },
    errors: ['NotFound', 'Conflict'],
  }),
} as const;
