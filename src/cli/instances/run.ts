// `berth run IMAGE`: creates an instance and, with --wait, follows it until the guest reports that it has booted.

import { Command } from 'commander';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { type LifetimeOptions, lifetimeOf, withLifetimeOptions } from '../options/lifetime-options.ts';
import { type BootOptions, bootFieldsOf, withBootOptions } from '../options/boot-options.ts';
import { type LossOptions, lossOf, withLossOptions } from '../options/loss-options.ts';
import { type RestartOptions, restartOf, withRestartOptions } from '../options/restart-options.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Cli } from '../cli.ts';
import { imageCredentialsOf } from '../options/image-credential-options.ts';
import {
  type ContainerOptions,
  containersOf,
  volumesOfMounts,
  fileSpecOf,
  partOfCpu,
  withContainerOptions,
} from '../options/container-options.ts';
import { checksOf, type HealthOptions, withHealthOptions } from '../options/health-options.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { addressOf, portLines, stepsOf } from './instance-view.ts';
import { type Format, fieldLines, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { type PlaceOptions, placeOf, withPlaceOptions, withRoomOptions } from '../options/place-options.ts';
import { readTextFile } from '../options/read-file.ts';
import { openSession } from '../session.ts';
import { collect, parseDurationMs, parseInteger, parseLabels, parsePort, seconds } from '../options/units.ts';
import { type ClaimOptions, claimFromPool } from './run-from-pool.ts';
import { untilReady, waitForInstance } from './wait.ts';

/** The options for a new instance. */
export interface SpecOptions
  extends PlaceOptions,
    ContainerOptions,
    HealthOptions,
    RestartOptions,
    LifetimeOptions,
    LossOptions,
    BootOptions {
  readonly task?: string;
  readonly publish: readonly string[];
  readonly label: readonly string[];
  readonly sshKey: readonly string[];
  readonly userData?: string;
  readonly hostname?: string;
  readonly priority?: string;
  readonly preempt?: true;
  readonly gang?: string;
  readonly exclusive?: true;
  readonly volume: readonly string[];
}

interface RunOptions extends SpecOptions, ClaimOptions {
  readonly name?: string;
  readonly wait?: true;
  readonly timeout?: string;
  readonly output: Format;
}

/** The flags of `run`, shared by all commands that take the same spec. */
export function withSpecOptions(command: Command, image: '<image>' | '[image]' = '<image>'): Command {
  command.argument(image, 'name or alias: berth image ls');
  withBootOptions(withContainerOptions(withRoomOptions(command)))
    .option(
      '-p, --publish <ports>',
      'HOST:GUEST[/tcp|udp], or GUEST for any free port of the host; may be repeated',
      collect,
      [],
    )
    .option('--ssh-key <file>', 'file of public keys for the guest, one per line; may be repeated', collect, [])
    .option('--user-data <file>', 'cloud-init user-data; - reads standard input')
    .option('-v, --volume <volume>', 'attach a volume; VOLUME:ro attaches it read-only; may be repeated', collect, [])
    .option('--hostname <hostname>', "the guest's own name; default: the instance's")
    .option('-l, --label <key=value>', 'label of the instance; may be repeated', collect, []);
  return withPlaceOptions(withLossOptions(withLifetimeOptions(withRestartOptions(withHealthOptions(command)))))
    .option('--task <task>', 'use the resources that this task reserves, on its host: berth task ls')
    .option('--priority <number>', 'queue priority, -1000 to 1000; higher values are placed first; default: 0')
    .option('--preempt', 'if it fits nowhere, preempt instances of lower priority')
    .option('--gang <name=size>', 'place it together with the others of this gang, all or none')
    .option('--exclusive', 'start no second copy while the first may still be running');
}

export function runCommand(cli: Cli): Command {
  return withSpecOptions(new Command('run').description('Create and start an instance'), '[image]')
    .option('-n, --name <name>', 'name of the instance; default: made from the image')
    .option('--from-pool <warm-pool>', 'claim a guest of this warm pool instead: berth warm-pool ls')
    .option('--warm-only', 'with --from-pool: fail when no guest is ready, instead of creating one')
    .option('--idempotency-key <key>', 'repeating a request with the same key creates no second instance')
    .option('-w, --wait', 'wait until the guest has booted')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('list'))
    .action(async (image: string | undefined, options: RunOptions, command: Command) => {
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      if (timeoutMs !== undefined && !options.wait) throw usageError('--timeout needs --wait');
      if ((image === undefined) === (options.fromPool === undefined))
        throw usageError('name an image, or a warm pool with --from-pool', 'berth image ls, berth warm-pool ls');
      if (options.warmOnly && options.fromPool === undefined) throw usageError('--warm-only needs --from-pool');
      const made =
        image === undefined
          ? await claimFromPool(await openSession(cli, command), options, command)
          : await created(cli, image, options, command);
      const session = await openSession(cli, command);
      const { id, name } = made.metadata;
      if (!options.wait) {
        if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, made);
        printNames(cli, [made]);
        if (cli.stderr.isTTY) cli.stderr.write(`${acceptedLine(name, made.spec.ports)}\n`);
        return;
      }
      const ready = await waitForInstance(cli, session, {
        id,
        name,
        timeoutMs,
        judge: untilReady(name),
        interruptedAdvice: `"${name}" continues in the background; remove it with: berth rm ${name}`,
      });
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, ready);
      if (options.output === 'name') return printNames(cli, [ready]);
      const lines = readyLines(ready, { ownBoot: image !== undefined });
      cli.stdout.write(`${lines.join('\n')}\n`);
    });
}

async function created(cli: Cli, image: string, options: RunOptions, command: Command): Promise<Instance> {
  const spec = await specOf(cli, image, options);
  const session = await openSession(cli, command);
  return attempting(
    `run "${image}"`,
    () =>
      session.client.create(
        'instance',
        {
          metadata: {
            ...(options.name === undefined ? {} : { name: options.name }),
            project: session.project,
            labels: parseLabels('--label', options.label),
          },
          spec,
        },
        options.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey },
      ),
    { AlreadyExists: `remove the existing one: berth rm ${options.name ?? 'NAME'}` },
  );
}

export async function specOf(cli: Cli, image: string, options: SpecOptions): Promise<Partial<InstanceSpec>> {
  const sshKeys = (await Promise.all(options.sshKey.map((path) => publicKeys(cli, path)))).flat();
  const { cpus, ...others } = options;
  const place = placeOf(partOfCpu(cpus) === undefined ? options : others);
  const file = await fileSpecOf(cli, options.file);
  const placement = {
    ...(isRecord(file['placement']) ? file['placement'] : {}),
    ...place.placement,
    ...(options.task === undefined ? {} : { task: options.task }),
  };
  return {
    ...file,
    image,
    ...place,
    placement,
    ...(await containersOf(cli, options)),
    ...imageCredentialsOf(options),
    ...checksOf(options),
    ...restartOf(options),
    ...lifetimeOf(options),
    ...bootFieldsOf(options),
    ...lossOf(options),
    ...(options.publish.length === 0 && 'ports' in file ? {} : { ports: options.publish.map(parsePort) }),
    ...(sshKeys.length === 0 && 'sshKeys' in file ? {} : { sshKeys }),
    ...(options.userData === undefined
      ? {}
      : { userData: await readTextFile(cli, options.userData, { what: 'user-data', bytesMax: 65_536 }) }),
    ...(options.hostname === undefined ? {} : { hostname: options.hostname }),
    ...(options.priority === undefined
      ? {}
      : { priority: parseInteger('--priority', options.priority, { min: -1000, max: 1000 }) }),
    ...(options.preempt ? { preemption: 'LowerPriority' } : {}),
    ...(options.gang === undefined ? {} : { gang: parseGang(options.gang) }),
    ...(options.exclusive ? { exclusive: true } : {}),
    ...volumesOf(options),
  };
}

function volumesOf(options: SpecOptions): Pick<InstanceSpec, 'volumes'> {
  const volumes = [...options.volume.map(parseVolume), ...volumesOfMounts(options)];
  return volumes.length === 0 ? {} : { volumes };
}

/** `data` or `data:ro`. */
function parseVolume(text: string): NonNullable<InstanceSpec['volumes']>[number] {
  const [, name, how] = /^([a-z0-9][a-z0-9-]*)(:ro|:rw)?$/.exec(text) ?? [];
  if (name === undefined) throw usageError(`--volume cannot be "${text}"`, 'write its name, or NAME:ro for read-only');
  return how === ':ro' ? { name, readOnly: true } : { name };
}

/** `workers=4`. */
function parseGang(text: string): NonNullable<InstanceSpec['gang']> {
  const [, name = '', size = ''] = /^([a-z0-9][a-z0-9-]*)=(\d{1,3})$/.exec(text) ?? [];
  if (name === '')
    throw usageError(`--gang cannot be "${text}"`, 'write its name and its number of instances: workers=4');
  return { name, size: parseInteger('--gang', size, { min: 1, max: 256 }) };
}

/** The keys of a file of `--ssh-key`. */
export async function publicKeys(cli: Cli, path: string): Promise<string[]> {
  const text = await readTextFile(cli, path, { what: 'SSH public keys', bytesMax: 65_536 });
  if (text.includes('PRIVATE KEY'))
    throw usageError(`${path} holds a private key`, 'give the public one; its name ends in .pub');
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

/** A port left to the host is chosen when the guest is created there. */
function acceptedLine(name: string, ports: InstanceSpec['ports']): string {
  const chosen = ports.some(({ hostPort }) => hostPort === 0)
    ? `; its ports, once it runs: berth ip --ports ${name}`
    : '';
  return `accepted; follow it with: berth logs -f ${name}, berth ps --watch${chosen}`;
}

/** The information about a guest that is ready. `ownBoot`: it was booted for this caller, who waited that long. */
function readyLines(instance: Instance, { ownBoot }: { readonly ownBoot: boolean }): string[] {
  const { metadata, status } = instance;
  const { steps, totalMs } = stepsOf(instance);
  const accelerator = status.guest?.accelerator;
  const took = totalMs === undefined || !ownBoot ? '' : ` after ${seconds(totalMs)}`;
  return [
    `${metadata.name} is ready${took} on ${status.host ?? '?'}${accelerator === undefined || accelerator === 'none' ? '' : ` (${accelerator})`}`,
    ...fieldLines(
      [
        ['address', addressOf(instance)],
        ...portLines(instance).map((line): [string, string] => ['port', line]),
        ['phases', (ownBoot ? steps : []).map(({ name, durationMs }) => `${name} ${seconds(durationMs)}`).join(', ')],
      ],
      '  ',
    ),
  ];
}
