// `berth volume ...`: disks independent of instances, on local storage of a host.

import { Command, Option } from 'commander';
import { errorCodes } from '../../api/errors.ts';
import type { Volume, VolumeSpec } from '../../api/resources/volume.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, usageError } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { conditionOf } from '../instances/instance-view.ts';
import { kindViews } from '../kinds.ts';
import {
  type Column,
  type Format,
  fieldLines,
  printList,
  printNames,
  printValue,
  tableLines,
} from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { replace } from '../replace.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { openSession, type Session } from '../session.ts';
import { assertRemovable, scheduleText, snapshotScheduleCommand } from './volumes/snapshot-schedule.ts';
import { age, collect, parseDurationMs, parseGiB, parseLabels } from '../options/units.ts';
import { type Judge, waitForResource } from '../instances/wait.ts';

const advice = { NotFound: '"berth volume ls" shows the volumes, "berth ps" the instances' } as const;

export function volumeCommand(cli: Cli): Command {
  return new Command('volume')
    .description('Volumes: disks that outlive instances')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(attachCommand(cli))
    .addCommand(detachCommand(cli))
    .addCommand(resizeCommand(cli))
    .addCommand(snapshotCommand(cli))
    .addCommand(rmCommand(cli));
}

interface WaitOptions {
  readonly wait?: true;
  readonly timeout?: string;
}

const withWait = (command: Command, until: string): Command =>
  command
    .option('-w, --wait', `wait until ${until}`)
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m');

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all volumes of the project')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list volumes', () => listAll(client, 'volume', { project }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.volume({ nowMs: cli.clock.nowMs() }),
        empty: 'no volumes; create one: berth volume create NAME --size 10GiB',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a volume: its host, the instance that uses it, and its snapshots')
    .argument('<volume>')
    .addOption(outputOption('list'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const volume = await attempting(`show volume "${name}"`, () => client.get('volume', name, { project }), advice);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, volume);
      if (output === 'name') return printNames(cli, [volume]);
      cli.stdout.write(`${volumeLines(volume, cli.clock.nowMs()).join('\n')}\n`);
    });
}

/** The details of one volume. */
export function volumeLines({ metadata, spec, status }: Volume, nowMs: number): string[] {
  const ready = conditionOf(status.conditions, 'Ready');
  const seen = status.volume;
  const used = seen?.usedBytes === undefined ? '' : `, ${(seen.usedBytes / 2 ** 30).toFixed(1)} GiB used on the host`;
  return [
    `${metadata.name}  ${status.phase}`,
    ...fieldLines(
      [
        ['size', `${spec.sizeGiB} GiB${used}`],
        ['format', spec.format === 'filesystem' ? 'filesystem, for containers' : undefined],
        ['host', status.host],
        ['instance', status.attachedTo?.instance],
        ['state', ready && `${ready.reason}: ${ready.message}`],
        ...spec.snapshots.map((name): [string, string] => {
          const made = seen?.snapshots.find((each) => each.name === name);
          return ['snapshot', `${name}, ${made ? `${age(nowMs - made.createdAtMs)} old` : 'not created yet'}`];
        }),
        ['schedule', spec.snapshotSchedule && scheduleText(spec.snapshotSchedule, status, nowMs)],
        ['copy of', spec.source && `${spec.source.volume}@${spec.source.snapshot}`],
      ],
      '  ',
    ),
  ];
}

interface CreateOptions extends WaitOptions {
  readonly format?: 'disk' | 'filesystem';
  readonly size: string;
  readonly host?: string;
  readonly from?: string;
  readonly label: readonly string[];
}

function createCommand(cli: Cli): Command {
  const command = new Command('create')
    .description('Create a volume, on the given host or on the host of the first instance that uses it')
    .argument('<name>')
    .requiredOption('-s, --size <amount>', '10GiB, 1TiB')
    .option('--host <host>', 'create it there now')
    .addOption(
      new Option('--format <format>', 'disk for virtual machines, filesystem for containers; default: disk').choices([
        'disk',
        'filesystem',
      ]),
    )
    .option('--from <volume@snapshot>', 'copy this snapshot, on the same host')
    .option('-l, --label <key=value>', 'label of the volume; may be repeated', collect, []);
  return withWait(command, 'it is ready; needs --host or --from').action(
    async (name: string, options: CreateOptions, called: Command) => {
      const { host, from, size, label, wait, format } = options;
      if (wait && host === undefined && from === undefined)
        throw usageError(
          '--wait needs --host or --from',
          'without them a volume is created when an instance first uses it',
        );
      const spec: Partial<VolumeSpec> & { sizeGiB: number } = {
        sizeGiB: parseGiB('--size', size),
        ...(host === undefined ? {} : { host }),
        ...(format === undefined ? {} : { format }),
        ...(from === undefined ? {} : { source: parseSource(from) }),
      };
      const session = await openSession(cli, called);
      const made = await attempting(
        `create volume "${name}"`,
        () =>
          session.client.create('volume', {
            metadata: { name, project: session.project, labels: parseLabels('--label', label) },
            spec,
          }),
        { AlreadyExists: 'choose another name: "berth volume ls" shows the existing ones' },
      );
      await maybeWait(cli, session, made, options, untilMade(name));
      cli.stdout.write(
        `${name} ${wait ? 'is ready' : host === undefined && from === undefined ? `created; attach it: berth run IMAGE ${format === 'filesystem' ? `--mount ${name}:/PATH` : `--volume ${name}`}` : 'is being created'}\n`,
      );
    },
  );
}

/** `data@before`. */
function parseSource(text: string): NonNullable<VolumeSpec['source']> {
  const [, volume, snapshot] = /^([a-z0-9-]+)@([a-z0-9-]+)$/.exec(text) ?? [];
  if (volume === undefined || snapshot === undefined)
    throw usageError(`--from cannot be "${text}"`, 'write the volume and its snapshot: data@before');
  return { volume, snapshot };
}

function attachCommand(cli: Cli): Command {
  return new Command('attach')
    .description('Attach a volume to an instance, also while it runs')
    .argument('<volume>')
    .argument('<instance>')
    .option('--read-only', 'attach it read-only')
    .action(async (name: string, instance: string, { readOnly }: { readOnly?: true }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      await attempting(
        `attach volume "${name}" to instance "${instance}"`,
        () =>
          replace(client, {
            kind: 'instance',
            name: instance,
            project,
            change({ spec }) {
              if (spec.volumes?.some((each) => each.name === name)) return undefined;
              const volumes = [...(spec.volumes ?? []), { name, ...(readOnly ? { readOnly: true } : {}) }];
              return { ...spec, volumes };
            },
          }),
        advice,
      );
      cli.stdout.write(`${name} is attached to ${instance}\n`);
    });
}

function detachCommand(cli: Cli): Command {
  return new Command('detach')
    .description('Detach volumes from their instances; unmount them in the guest first')
    .argument('<volume...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        const instance = await attempting(
          `detach volume "${name}"`,
          async () => {
            const { status } = await client.get('volume', name, { project });
            if (!status.attachedTo) return undefined;
            await replace(client, {
              kind: 'instance',
              name: status.attachedTo.instance,
              project,
              change({ spec }) {
                const { volumes = [], ...others } = spec;
                const kept = volumes.filter((each) => each.name !== name);
                if (kept.length === volumes.length) return undefined;
                return kept.length === 0 ? others : { ...others, volumes: kept };
              },
            });
            return status.attachedTo.instance;
          },
          advice,
        );
        cli.stdout.write(
          instance === undefined ? `${name} is attached to nothing\n` : `${name} is detached from ${instance}\n`,
        );
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function resizeCommand(cli: Cli): Command {
  const command = new Command('resize')
    .description('Grow a volume, also while a guest uses it; grow its file system inside the guest')
    .argument('<volume>')
    .argument('[size]', '20GiB, 1TiB')
    .option('-s, --size <size>', 'the same, as an option');
  return withWait(command, 'its host has finished').action(
    async (name: string, size: string | undefined, options: WaitOptions & { size?: string }, called: Command) => {
      const text = size ?? options.size;
      if (text === undefined) throw usageError('the new size is missing', `berth volume resize ${name} 20GiB`);
      const sizeGiB = parseGiB(size === undefined ? '--size' : 'SIZE', text);
      await change(cli, called, { name, what: `resize volume "${name}"`, options }, (spec) =>
        spec.sizeGiB === sizeGiB ? undefined : { ...spec, sizeGiB },
      );
      cli.stdout.write(`${name} ${options.wait ? 'has' : 'will have'} ${sizeGiB} GiB\n`);
    },
  );
}

function snapshotCommand(cli: Cli): Command {
  const make = new Command('create')
    .description('Create a snapshot of a volume')
    .argument('<volume>')
    .argument('<name>');
  const remove = new Command('rm').description('Remove a snapshot').argument('<volume>').argument('<name>');
  const list = new Command('ls')
    .description('Show the snapshots of a volume')
    .argument('<volume>')
    .addOption(outputOption('value'));
  return new Command('snapshot')
    .description('Snapshots of a volume; "berth volume create NEW --from VOLUME@NAME" creates a volume from one')
    .addCommand(
      list.action(async (name: string, { output }: { output: Format }, called: Command) => {
        const { client, project } = await openSession(cli, called);
        const { spec, status } = await attempting(
          `show the snapshots of volume "${name}"`,
          () => client.get('volume', name, { project }),
          advice,
        );
        const made = new Map(status.volume?.snapshots.map((each) => [each.name, each.createdAtMs]));
        const snapshots = spec.snapshots.map((each) => ({ name: each, createdAtMs: made.get(each) }));
        if (output === 'json' || output === 'yaml') return printValue(cli, output, { items: snapshots });
        if (snapshots.length === 0)
          return void cli.stdout.write(`no snapshots; create one: berth volume snapshot create ${name} NAME\n`);
        const nowMs = cli.clock.nowMs();
        const columns: readonly Column<(typeof snapshots)[number]>[] = [
          { header: 'NAME', value: (each) => each.name },
          {
            header: 'AGE',
            value: ({ createdAtMs }) => (createdAtMs === undefined ? 'not yet' : age(nowMs - createdAtMs)),
            right: true,
          },
        ];
        cli.stdout.write(`${tableLines(columns, snapshots).join('\n')}\n`);
      }),
    )
    .addCommand(
      withWait(make, 'its host has finished').action(
        async (name: string, state: string, options: WaitOptions, called: Command) => {
          await change(cli, called, { name, what: `snapshot volume "${name}"`, options }, (spec) => {
            if (spec.snapshots.includes(state)) throw snapshotExists(name, state);
            return { ...spec, snapshots: [...spec.snapshots, state] };
          });
          cli.stdout.write(`${name}@${state} ${options.wait ? 'created' : 'is being created'}\n`);
        },
      ),
    )
    .addCommand(
      withWait(remove, 'its host has finished').action(
        async (name: string, state: string, options: WaitOptions, called: Command) => {
          await change(
            cli,
            called,
            { name, what: `remove snapshot "${state}" of volume "${name}"`, options },
            (spec) => {
              if (!spec.snapshots.includes(state))
                throw usageError(
                  `volume "${name}" has no snapshot "${state}"`,
                  `it has ${spec.snapshots.join(', ') || 'none'}`,
                );
              assertRemovable(name, state, spec);
              return { ...spec, snapshots: spec.snapshots.filter((each) => each !== state) };
            },
          );
          cli.stdout.write(`${name}@${state} ${options.wait ? 'removed' : 'is being removed'}\n`);
        },
      ),
    )
    .addCommand(snapshotScheduleCommand(cli));
}

/**
 * A user who requests a snapshot wants the present state: an existing one of the same name would be mistaken for it.
 */
function snapshotExists(volume: string, state: string): CommandError {
  return new CommandError(
    errorCodes.AlreadyExists.exitCode,
    `cannot snapshot volume "${volume}": its snapshot "${state}" exists already`,
    { advice: `choose another name, or remove it first: berth volume snapshot rm ${volume} ${state} --wait` },
  );
}

async function change(
  cli: Cli,
  command: Command,
  { name, what, options }: { readonly name: string; readonly what: string; readonly options: WaitOptions },
  wanted: (spec: VolumeSpec) => VolumeSpec | undefined,
): Promise<void> {
  const session = await openSession(cli, command);
  const volume = await attempting(
    what,
    () =>
      replace(session.client, {
        kind: 'volume',
        name,
        project: session.project,
        change: ({ spec }) => wanted(spec),
      }),
    advice,
  );
  await maybeWait(cli, session, volume, options, untilMade(name, volume.metadata.generation));
}

function rmCommand(cli: Cli): Command {
  return withWait(
    new Command('rm').description('Remove volumes with their data and snapshots').argument('<volume...>'),
    'they are removed completely',
  ).action(async (names: readonly string[], options: WaitOptions, called: Command) => {
    const session = await openSession(cli, called);
    const failures = await forEachName(cli, names, async (name) => {
      const gone = await attempting(
        `remove volume "${name}"`,
        () => session.client.delete('volume', name, { project: session.project }),
        advice,
      );
      await maybeWait(cli, session, gone, options, (volume) =>
        volume ? { waiting: describe(volume) } : { done: undefined },
      );
      const count = gone.spec.snapshots.length;
      const what = count === 0 ? name : `${name} with its ${count === 1 ? 'snapshot' : `${count} snapshots`}`;
      cli.stdout.write(`${what} ${options.wait ? 'removed' : 'is being removed'}\n`);
    });
    if (failures.length > 0) throw joined(failures, names.length);
  });
}

async function maybeWait(
  cli: Cli,
  session: Session,
  { metadata }: Volume,
  { wait, timeout }: WaitOptions,
  judge: Judge<'volume', unknown>,
): Promise<void> {
  const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
  if (timeoutMs !== undefined && !wait) throw usageError('--timeout needs --wait');
  if (!wait) return;
  const { id, name } = metadata;
  const adviceAfter = (): string => `it continues; see: berth volume show ${name}, berth events`;
  await waitForResource(cli, session, { kind: 'volume', id, name, judge, timeoutMs, adviceAfter });
}

/** Done when its host has applied the spec of `generation`. */
function untilMade(name: string, generation = 1): Judge<'volume', Volume> {
  return (volume) => {
    if (!volume) return { failed: `volume "${name}" was removed before it was ready` };
    const { phase, observedGeneration, volume: seen } = volume.status;
    if (phase === 'Failed')
      return {
        failed: `volume "${name}" failed: ${describe(volume)}`,
        advice: `berth volume show ${name}, berth events`,
      };
    const done = phase === 'Ready' && observedGeneration >= generation && seen?.reason === undefined;
    return done ? { done: volume } : { waiting: describe(volume) };
  };
}

function describe({ status }: Volume): string {
  return `${status.phase}  ${conditionOf(status.conditions, 'Ready')?.message ?? ''}`.trim();
}
