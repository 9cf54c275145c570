// `berth volume snapshot schedule`: snapshots of a volume at times.

import { Command } from 'commander';
import { errorCodes } from '../../../api/errors.ts';
import type { SnapshotSchedule, Volume, VolumeSpec } from '../../../api/resources/volume.ts';
import type { Cli } from '../../cli.ts';
import { attempting, CommandError, usageError } from '../../exit-codes.ts';
import { conditionOf } from '../../instances/instance-view.ts';
import { age, parseInteger } from '../../options/units.ts';
import { replace } from '../../replace.ts';
import { openSession } from '../../session.ts';

interface ScheduleOptions {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly keep?: string;
  readonly off?: true;
}

export function snapshotScheduleCommand(cli: Cli): Command {
  return new Command('schedule')
    .description('Create snapshots of a volume at times, and keep the newest')
    .argument('<volume>')
    .option('--cron <times>', 'create a snapshot at these times: "0 3 * * *" is 3:00 each day')
    .option('--time-zone <zone>', 'of --cron: UTC, Europe/Berlin; default: UTC')
    .option('--keep <count>', 'snapshots of the schedule to keep; default: 7')
    .option('--off', 'end the schedule; its snapshots stay')
    .action(async (name: string, options: ScheduleOptions, command: Command) => {
      const schedule = scheduleOf(options);
      const { client, project } = await openSession(cli, command);
      await attempting(
        `schedule snapshots of volume "${name}"`,
        () =>
          replace(client, {
            kind: 'volume',
            name,
            project,
            change({ spec: { snapshotSchedule: _, ...spec } }) {
              return schedule === undefined ? spec : { ...spec, snapshotSchedule: schedule };
            },
          }),
        { NotFound: '"berth volume ls" shows the volumes' },
      );
      cli.stdout.write(
        `${name} ${schedule === undefined ? 'has no schedule any more' : `has the schedule ${schedule.cron}`}\n`,
      );
    });
}

function scheduleOf({ cron, timeZone, keep, off }: ScheduleOptions): SnapshotSchedule | undefined {
  if (off) {
    if (cron !== undefined || timeZone !== undefined || keep !== undefined)
      throw usageError('--off excludes the other options');
    return undefined;
  }
  if (cron === undefined) throw usageError('name the times: --cron "0 3 * * *"', 'or end the schedule: --off');
  const schedule = {
    cron,
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(keep === undefined ? {} : { keep: parseInteger('--keep', keep, { min: 1, max: 16 }) }),
  };
  return schedule as SnapshotSchedule; // the server adds the defaults
}

/** `0 3 * * * (UTC), keeps 7, next in 5h`. */
export function scheduleText(
  { cron, timeZone, keep }: SnapshotSchedule,
  { snapshotTimes, conditions }: Volume['status'],
  nowMs: number,
): string {
  const nextMs = snapshotTimes?.nextMs;
  const next = nextMs === undefined ? '' : `, next in ${age(Math.max(0, nextMs - nowMs))}`;
  const last = conditionOf(conditions, 'SnapshotSchedule');
  return `${cron} (${timeZone}), keeps ${keep}${next}${last?.status === 'False' ? `; the last was skipped: ${last.message}` : ''}`;
}

/** A snapshot of the schedule would stay: the server keeps what a changed spec does not name. */
export function assertRemovable(volume: string, snapshot: string, { snapshotSchedule }: VolumeSpec): void {
  if (snapshotSchedule === undefined || !/^auto-\d{12}$/.test(snapshot)) return;
  throw new CommandError(
    errorCodes.Conflict.exitCode,
    `cannot remove snapshot "${snapshot}" of volume "${volume}": its schedule keeps it until ${snapshotSchedule.keep} newer ones exist`,
    { advice: `end the schedule first: berth volume snapshot schedule ${volume} --off` },
  );
}
