// What users do with the move of an instance: show its plan, begin it by its hash, cancel it. The controller `migration` carries it out.

import { ApiError } from '../../../api/errors.ts';
import type { MigrateOptions, MigrationPlan } from '../../../api/plans/migration-plan.ts';
import type { Instance, InstanceStatus } from '../../../api/resources/instance.ts';
import type { Migration } from '../../../api/resources/migration.ts';
import { claim } from '../../ledger/ledger.ts';
import { openMigration } from '../../migrations/migration-state.ts';
import { abort, hostCondition, withMigration } from '../../migrations/migration-steps.ts';
import { directBetween, type PlannedMigration, planMigration } from '../../migrations/plan-migration.ts';
import { gateOf, limitsOn, passGates } from '../../queue/limits.ts';
import { limitReached } from '../../queue/queue.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { nextIncarnation } from '../../state/incarnation.ts';
import { keys } from '../../state/keys.ts';
import { type Plan, unchanged } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { existing } from '../replace.ts';

interface Named {
  readonly project: string;
  readonly name: string;
}

export function showMigration(snapshot: Snapshot, { project, name }: Named, options: MigrateOptions): MigrationPlan {
  const { value } = existing(snapshot, 'instance', keys.instance(project, name));
  return planMigration(snapshot, value, options).shown;
}

/** Throws `Conflict` when there is an obstacle, naming all, and when the hash is of another plan. */
export function beginMigration(
  snapshot: Snapshot,
  input: Named & {
    readonly options: MigrateOptions;
    readonly hash?: string;
    /** The host to which a restore returns it; absent: the move is for good. */
    readonly drainedFrom?: InstanceStatus['drainedFrom'];
  },
  ctx: Context,
): { readonly plan: Plan; readonly begun: Migration } {
  const { project, name, options, hash, drainedFrom } = input;
  const entry = existing(snapshot, 'instance', keys.instance(project, name));
  const planned = planMigration(snapshot, entry.value, options);
  const { shown, target } = planned;
  if (hash !== undefined && hash !== shown.hash)
    throw new ApiError(
      'Conflict',
      `the plan to move instance "${name}" is no longer as it was shown: ${changeOf(entry.value, planned)}; look at the plan again`,
      { field: 'apply', details: { hash: shown.hash } },
    );
  if (target === undefined)
    throw new ApiError(
      'Conflict',
      `instance "${name}" cannot move: ${shown.obstacles.map(({ message }) => message).join('; ')}`,
      { details: { obstacles: shown.obstacles } },
    );
  const limits = limitsOn(snapshot, ctx.policy, entry.value);
  if (limitReached(snapshot, limits))
    throw new ApiError(
      'Conflict',
      `instance "${name}" cannot move: while it moves it counts twice, and a limit is reached`,
    );
  const begun = newMigration(snapshot, entry.value, { planned: target, options }, ctx);
  const message = `moves from ${begun.from} to ${begun.to}`;
  return {
    begun,
    plan: {
      changes: [
        withMigration(withOrigin(entry, drainedFrom), begun),
        ...claim(snapshot, {
          consumer: { id: entry.value.metadata.id, incarnation: begun.incarnation, project, name },
          ...{ host: begun.to, held: target.placed.held, driver: target.placed.driver, ports: target.request.ports },
        }),
        ...passGates(snapshot, limits.map(gateOf)),
        eventChange(entry.value, { reason: 'MigrationStarted', message, host: begun.from }, ctx),
      ],
      conditions: [hostCondition(snapshot, begun.to)],
    },
  };
}

function withOrigin(entry: Entry<Instance>, drainedFrom: InstanceStatus['drainedFrom']): Entry<Instance> {
  const { drainedFrom: _, ...status } = entry.value.status;
  return {
    ...entry,
    value: { ...entry.value, status: { ...status, ...(drainedFrom === undefined ? {} : { drainedFrom }) } },
  };
}

interface Target {
  readonly planned: NonNullable<PlannedMigration['target']>;
  readonly options: MigrateOptions;
}

function newMigration(snapshot: Snapshot, instance: Instance, { planned, options }: Target, ctx: Context): Migration {
  const { bytesPerSecondMax, live } = options;
  const direct = directBetween(snapshot, instance.status.host, planned.placed.host);
  return {
    id: ctx.newId('mig'),
    step: 'Preparing',
    ...{ from: instance.status.host ?? '', to: planned.placed.host },
    fromIncarnation: instance.status.incarnation,
    incarnation: nextIncarnation(snapshot, instance),
    startedAtMs: ctx.nowMs,
    ...(live === true ? { kind: 'live' as const } : {}),
    ...(direct === undefined ? {} : { direct }),
    ...(bytesPerSecondMax === undefined ? {} : { bytesPerSecondMax }),
  };
}

function changeOf({ status }: Instance, { shown }: PlannedMigration): string {
  const [obstacle] = shown.obstacles;
  if (obstacle) return obstacle.message;
  return `now it would move from ${status.host ?? 'no host'} to ${shown.to}, or its spec has changed`;
}

/** Harmless a second time. Throws `Conflict` once it belongs to the target. */
export function cancelMigration(
  snapshot: Snapshot,
  { project, name }: Named,
  ctx: Context,
): { readonly plan: Plan; readonly ended: Migration } {
  const entry = existing(snapshot, 'instance', keys.instance(project, name));
  const { migration } = entry.value.status;
  if (migration === undefined)
    throw new ApiError('NotFound', `instance "${name}" has never moved; "berth migrate ${name}" shows a plan`);
  if (openMigration(entry.value) !== undefined) {
    const ended = { step: 'Cancelled', message: 'cancelled by its user' } as const;
    return { plan: abort(entry, migration, ended, ctx), ended: { ...migration, step: 'Cancelled' } };
  }
  if (migration.step === 'Cancelled' || migration.step === 'Failed')
    return { plan: unchanged(entry), ended: migration };
  throw new ApiError('Conflict', `instance "${name}" belongs to host ${migration.to} already; move it back instead`);
}

/** Throws `Conflict` while the files of the instance are copied: what the host would change now would be lost. */
export function assertNotMigrating(entry: Entry<Instance>, what: string): void {
  if (openMigration(entry.value) === undefined) return;
  const { name } = entry.value.metadata;
  throw new ApiError(
    'Conflict',
    `${what} while instance "${name}" moves to another host; "berth migrate ${name} --cancel" ends the move`,
  );
}
