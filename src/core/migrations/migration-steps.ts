// The steps of a move, each one Plan. Whether a step is due is decided in controllers/migration.ts.

import type { Instance, InstanceStatus } from '../../api/resources/instance.ts';
import { isToBeOn } from '../../api/resources/instance.ts';
import type { Migration } from '../../api/resources/migration.ts';
import { assert } from '../../base/assert.ts';
import { releaseAllButDisk, splitVolumes } from '../ledger/ledger.ts';
import { withConditions } from '../state/conditions.ts';
import type { Context } from '../state/context.ts';
import { eventChange } from '../state/events.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import type { Change, Plan } from '../state/plan.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { volumeStatusChange } from '../state/volume-change.ts';
import { lifeOf } from '../state/volumes.ts';
import { volumesThatMove } from './migration-request.ts';

export function withMigration(entry: Entry<Instance>, migration: Migration): Change {
  return instanceStatusChange(entry, { ...entry.value.status, migration });
}

/** The guest is to stop, and the target may copy. */
export function beginCopying(entry: Entry<Instance>, migration: Migration, ctx: Context): Plan {
  const message =
    migration.kind === 'live'
      ? `its disk and its memory are copied to ${migration.to} while it runs`
      : `its guest is stopped, and its disk is copied to ${migration.to}`;
  return {
    changes: [
      withMigration(entry, { ...migration, step: 'Copying' }),
      eventChange(entry.value, { reason: 'MigrationCopying', message, host: migration.from }, ctx),
    ],
  };
}

/**
 * Instance and volumes belong to the target from now on: the source deletes what it has, and the target starts. The source stopped the guest
 * under this migration before it let the target read, and starts it again only when the migration is ended; which this commit prevents.
 */
export function commitOwnership(snapshot: Snapshot, entry: Entry<Instance>, migration: Migration, ctx: Context): Plan {
  const { status, spec, metadata } = entry.value;
  const { from, to, incarnation } = migration;
  const allocation = snapshot.get('allocation', keys.allocation(metadata.id, incarnation));
  assert(allocation, () => `migration ${migration.id} is committed without room on ${to}`);
  const volumes = volumesThatMove(snapshot, entry.value);
  const moved = volumes.map((volume) => ({
    ...volume,
    value: { ...volume.value, status: movedStatus(volume.value.status, to) },
  }));
  const split = splitVolumes(
    allocation,
    moved.map(({ value }) => value),
  );
  const on = isToBeOn(spec);
  const message = `moved from ${from} to ${to}`;
  return {
    changes: [
      instanceStatusChange(entry, {
        ...withoutReports(withoutOrigin(status, to)),
        phase: on ? 'Scheduled' : 'Stopped',
        ...{ host: to, incarnation },
        diskIncarnation: status.diskIncarnation ?? status.incarnation,
        scheduledAtMs: ctx.nowMs,
        migration: {
          ...migration,
          step: 'Finishing',
          ...(migration.seen?.way === undefined ? {} : { way: migration.seen.way }),
        },
        conditions: withConditions(
          status.conditions,
          [
            { type: 'Scheduled', status: 'True', reason: 'Moved', message },
            { type: 'Running', status: 'False', reason: 'NotStarted', message: 'its new host has not started it yet' },
            { type: 'Ready', status: 'False', reason: 'NotStarted', message: 'its new host has not started it yet' },
          ],
          ctx.nowMs,
        ),
      }),
      ...(on ? split : withoutTheRest(split, allocation)),
      ...volumes.map((volume) => volumeStatusChange(volume, movedStatus(volume.value.status, to))),
      eventChange(entry.value, { reason: 'Moved', message, host: to }, ctx),
    ],
    conditions: [hostCondition(snapshot, to)],
  };
}

/** A stopped instance holds its disk only. */
function withoutTheRest(split: readonly Change[], allocation: Parameters<typeof releaseAllButDisk>[0]): Change[] {
  const own = split.find(({ key }) => key === allocation.key)?.value;
  const now = own?.kind === 'allocation' ? { ...allocation, value: own } : allocation;
  const smaller = releaseAllButDisk(now);
  return smaller.length === 0 ? [...split] : [...split.filter(({ key }) => key !== allocation.key), ...smaller];
}

/** Reports of the source are about another life. */
function movedStatus<S extends { readonly life?: number; readonly report?: unknown }>(
  { report: _of, ...status }: S,
  host: string,
) {
  return { ...status, host, life: lifeOf(status) + 1 };
}

function withoutReports(status: InstanceStatus): InstanceStatus {
  const {
    guest: _guest,
    report: _report,
    startAgain: _startAgain,
    readyAtMs: _ready,
    runningAtMs: _running,
    failedAtMs: _failed,
    evicted: _evicted,
    ...kept
  } = status;
  return kept;
}

/** It is where a restore would return it to. */
function withoutOrigin(status: InstanceStatus, host: string | undefined): InstanceStatus {
  const { drainedFrom, ...kept } = status;
  return drainedFrom?.host === host ? kept : status;
}

/** The source has nothing left of it. */
export function finish(entry: Entry<Instance>, migration: Migration, ctx: Context): Plan {
  const { seen: _seen, report: _report, ...kept } = migration;
  return { changes: [withMigration(entry, { ...kept, step: 'Done', endedAtMs: ctx.nowMs })] };
}

/**
 * It stays on the source. The target deletes what it has received, and its room is released with that. An incarnation is used once: the
 * record keeps it.
 */
export function abort(
  entry: Entry<Instance>,
  migration: Migration,
  { step, message }: { readonly step: 'Failed' | 'Cancelled'; readonly message: string },
  ctx: Context,
): Plan {
  const { seen: _seen, report: _report, ...kept } = migration;
  const reason = step === 'Failed' ? 'MigrationFailed' : 'MigrationCancelled';
  const text = `${message}; it stays on ${migration.from}`;
  const status = withoutOrigin(entry.value.status, entry.value.status.host);
  return {
    changes: [
      instanceStatusChange(entry, { ...status, migration: { ...kept, step, message, endedAtMs: ctx.nowMs } }),
      eventChange(
        entry.value,
        { type: step === 'Failed' ? 'Warning' : 'Normal', reason, message: text, host: migration.to },
        ctx,
      ),
    ],
  };
}

export function hostCondition(snapshot: Snapshot, host: string): { readonly key: string; readonly ifRevision: number } {
  const key = keys.host(host);
  return { key, ifRevision: snapshot.get('host', key)?.revision ?? 0 };
}
