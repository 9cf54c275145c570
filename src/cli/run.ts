// `berth run IMAGE`: makes an instance and, with --wait, follows it until the guest says that it has booted.

import { Command } from 'commander';
import type { Instance, InstanceSpec } from '../api/resources/instance.ts';
import type { Cli } from './cli.ts';
import { attempting, usageError } from './exit-codes.ts';
import { portLines, stepsOf } from './instance-view.ts';
import { type Format, fieldLines, parseFormat, printNames, printValue } from './output.ts';
import { readTextFile } from './read-file.ts';
import { openSession } from './session.ts';
import {
  collect,
  parseDiskGiB,
  parseDurationMs,
  parseInteger,
  parseLabels,
  parseMemoryMiB,
  parsePort,
  seconds,
} from './units.ts';
import { untilReady, waitForInstance } from './wait.ts';

/** What people say of an instance that is to be made. */
export interface SpecOptions {
  readonly name?: string;
  readonly size?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly pool?: string;
  readonly profile?: string;
  readonly driver?: string;
  readonly hostLabel: readonly string[];
  readonly publish: readonly string[];
  readonly label: readonly string[];
  readonly sshKey: readonly string[];
  readonly userData?: string;
  readonly hostname?: string;
  readonly restartPolicy?: string;
  readonly exclusive?: true;
}

interface RunOptions extends SpecOptions {
  readonly wait?: true;
  readonly timeout?: string;
  readonly idempotencyKey?: string;
  readonly output: Format;
}

const profiles = ['optimize-utilization', 'distribute-load'] as const;
const restartPolicies = ['Never', 'OnFailure'] as const;

/** The flags of `run`, for all that ask the same: what is to be made. */
export function withSpecOptions(command: Command): Command {
  return command
    .argument('<image>', 'name or alias: berth image ls')
    .option('-n, --name <name>', 'default: made from the image')
    .option('-s, --size <size>', 'a named amount of room: berth size ls')
    .option('-c, --cpus <count>', 'virtual CPUs')
    .option('-m, --memory <amount>', '512MiB, 1GiB')
    .option('-d, --disk <amount>', '10GiB; 0: as large as the image')
    .option(
      '-p, --publish <ports>',
      'HOST:GUEST[/tcp|udp], or GUEST for any free port of the host; many times',
      collect,
      [],
    )
    .option('--ssh-key <file>', 'public keys for the guest, one a line; many times', collect, [])
    .option('--user-data <file>', 'cloud-init user-data; - reads standard input')
    .option('--hostname <hostname>', "the guest's own name; default: the instance's")
    .option('-l, --label <key=value>', 'of the instance; many times', collect, [])
    .option('--pool <pool>', 'only on hosts of this pool')
    .option('--host-label <key=value>', 'only on hosts with this label; many times', collect, [])
    .option('--driver <driver>', 'only by this driver: qemu, fake')
    .option('--profile <profile>', `how hosts are preferred: ${profiles.join(' or ')}`)
    .option('--restart-policy <policy>', `${restartPolicies.join(' or ')}; default: Never`)
    .option('--exclusive', 'never a second copy while the first may still run somewhere');
}

export function runCommand(cli: Cli): Command {
  return withSpecOptions(new Command('run').description('Make an instance from an image'))
    .option('--idempotency-key <key>', 'the same key again makes no second instance')
    .option('-w, --wait', 'wait until the guest has booted')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .option('-o, --output <format>', 'table, json, yaml or name', parseFormat, 'table')
    .action(async (image: string, options: RunOptions, command: Command) => {
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      if (timeoutMs !== undefined && !options.wait) throw usageError('--timeout needs --wait');
      const spec = await specOf(cli, image, options);
      const session = await openSession(cli, command);
      const made = await attempting(
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
        { AlreadyExists: 'choose another --name, or remove the one that is there: berth rm NAME' },
      );
      const { id, name } = made.metadata;
      if (!options.wait) {
        if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, made);
        printNames(cli, [made]);
        if (cli.stderr.isTTY) cli.stderr.write(`accepted; follow it with: berth logs -f ${name}, berth ps --watch\n`);
        return;
      }
      const ready = await waitForInstance(cli, session, {
        id,
        name,
        timeoutMs,
        judge: untilReady(name),
        interruptedAdvice: `"${name}" goes on without you; remove it with: berth rm ${name}`,
      });
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, ready);
      if (options.output === 'name') return printNames(cli, [ready]);
      cli.stdout.write(`${readyLines(ready).join('\n')}\n`);
    });
}

export async function specOf(cli: Cli, image: string, options: SpecOptions): Promise<Partial<InstanceSpec>> {
  const { profile, restartPolicy, pool, driver } = options;
  const sshKeys = (await Promise.all(options.sshKey.map((path) => publicKeys(cli, path)))).flat();
  const hostLabels = parseLabels('--host-label', options.hostLabel);
  return {
    image,
    ...(options.size === undefined ? {} : { size: options.size }),
    ...(options.cpus === undefined ? {} : { cpus: parseInteger('--cpus', options.cpus, { min: 1, max: 1024 }) }),
    ...(options.memory === undefined ? {} : { memoryMiB: parseMemoryMiB(options.memory) }),
    ...(options.disk === undefined ? {} : { diskGiB: parseDiskGiB(options.disk) }),
    placement: {
      ...(profile === undefined ? {} : { profile: oneOf('--profile', profile, profiles) }),
      ...(pool === undefined ? {} : { pool }),
      ...(driver === undefined ? {} : { driver }),
      ...(options.hostLabel.length === 0 ? {} : { hostLabels }),
    },
    ports: options.publish.map(parsePort),
    sshKeys,
    ...(options.userData === undefined
      ? {}
      : { userData: await readTextFile(cli, options.userData, { what: 'user-data', bytesMax: 65_536 }) }),
    ...(options.hostname === undefined ? {} : { hostname: options.hostname }),
    ...(restartPolicy === undefined
      ? {}
      : { restartPolicy: oneOf('--restart-policy', restartPolicy, restartPolicies) }),
    ...(options.exclusive ? { exclusive: true } : {}),
  };
}

async function publicKeys(cli: Cli, path: string): Promise<string[]> {
  const text = await readTextFile(cli, path, { what: 'SSH public keys', bytesMax: 65_536 });
  if (text.includes('PRIVATE KEY'))
    throw usageError(`${path} holds a private key`, 'give the public one; its name ends in .pub');
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
}

function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((word) => word === text);
  if (!found) throw usageError(`${flag} cannot be "${text}"`, `choose one of: ${known.join(', ')}`);
  return found;
}

/** What someone wants to know of a guest that has just booted. */
export function readyLines(instance: Instance): string[] {
  const { metadata, status } = instance;
  const { steps, totalMs } = stepsOf(instance);
  const accelerator = status.guest?.accelerator;
  const took = totalMs === undefined ? '' : ` after ${seconds(totalMs)}`;
  return [
    `${metadata.name} is ready${took} on ${status.host ?? '?'}${accelerator === undefined || accelerator === 'none' ? '' : ` (${accelerator})`}`,
    ...fieldLines(
      [
        ['address', status.guest?.address],
        ...portLines(instance).map((line): [string, string] => ['port', line]),
        ['phases', steps.map(({ name, durationMs }) => `${name} ${seconds(durationMs)}`).join(', ')],
      ],
      '  ',
    ),
  ];
}
