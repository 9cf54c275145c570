// `berth image ...`: what instances are made from. Building one belongs to src/commands/image-build.ts.

import { Command } from 'commander';
import { isContainerImage } from '../api/container-image.ts';
import { containerTransport } from '../api/container-reference.ts';
import type { Host, HostImage } from '../api/resources/host.ts';
import { type Image, imageKey, type ImageSpec } from '../api/resources/image.ts';
import type { Cli } from './cli.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from './exit-codes.ts';
import { follow, listAll } from './follow.ts';
import { show } from './get.ts';
import { hostReady, kindViews } from './kinds.ts';
import { type Format, parseFormat, printList, printTable, printValue } from './output.ts';
import { startProgress } from './progress.ts';
import { replace } from './replace.ts';
import { forEachName, joined } from './rm.ts';
import { openSession, type Session } from './session.ts';
import {
  bytes,
  collect,
  parseDiskGiB,
  parseDurationMs,
  parseInteger,
  parseLabels,
  parseMemoryMiB,
  seconds,
} from './units.ts';

const advice = { NotFound: '"berth image ls" shows the images' } as const;

export function imageCommand(cli: Cli): Command {
  return new Command('image')
    .description('Images: show, add, fetch, build, remove')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(addCommand(cli))
    .addCommand(pullCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all images')
    .option('-l, --selector <selector>', 'only images with these labels')
    .option('-o, --output <format>', 'table, json, yaml or name', parseFormat, 'table')
    .action(async ({ output, selector }: { output: Format; selector?: string }, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list images', () =>
        listAll(client, 'image', selector === undefined ? {} : { selector }),
      );
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      const columns = kindViews.image({ nowMs: cli.clock.nowMs() });
      await printList(cli, output, {
        items,
        columns,
        empty: 'no images; make one: berth image build tiny, or berth image add NAME --source URL',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one image as it is stored')
    .argument('<image>')
    .option('-o, --output <format>', 'table, json, yaml or name', parseFormat, 'yaml')
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'image', { name, format: output }),
    );
}

interface AddOptions {
  readonly source: string;
  readonly checksum?: string;
  readonly format?: string;
  readonly decompress?: string;
  readonly architecture?: string;
  readonly driver?: string;
  readonly alias: readonly string[];
  readonly cloudInit: boolean;
  readonly preload?: true;
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly label: readonly string[];
  readonly output: Format;
}

const imageFormats = ['qcow2', 'raw', 'container'] as const;
const packings = ['none', 'zstd', 'gzip', 'xz'] as const;
const architectures = ['amd64', 'arm64'] as const;

function addCommand(cli: Cli): Command {
  return new Command('add')
    .description('Make an image known; hosts fetch it when it is needed')
    .argument('<name>')
    .requiredOption('--source <url>', 'http:, https: or file: URL, or docker://REGISTRY/NAME:TAG')
    .option('--checksum <sha256>', 'of the file at the source: sha256:<64 hex digits>')
    .option('--format <format>', `${imageFormats.join(', ')}; default: container for docker://, else qcow2`)
    .option('--decompress <packing>', `${packings.join(', ')}; default: by the ending of the URL`)
    .option('--architecture <architecture>', `${architectures.join(' or ')}; default: amd64`)
    .option('--driver <driver>', 'the only driver that can run it')
    .option('--alias <name>', 'another name for it; many times', collect, [])
    .option('--no-cloud-init', 'attach no NoCloud seed')
    .option('--preload', 'hosts fetch it at once')
    .option('--cpus <count>', "for instances that ask for nothing; default: their pool's, else 4")
    .option('--memory <amount>', "for instances that ask for nothing; default: their pool's, else 8 GiB")
    .option('--disk <amount>', 'for instances that ask for nothing')
    .option('-l, --label <key=value>', 'of the image; many times', collect, [])
    .option('-o, --output <format>', 'table, json, yaml or name', parseFormat, 'table')
    .action(async (name: string, options: AddOptions, command: Command) => {
      const { client } = await openSession(cli, command);
      const image = await attempting(`add image "${name}"`, () =>
        client.create('image', {
          metadata: { name, labels: parseLabels('--label', options.label) },
          spec: specOf(options),
        }),
      );
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, image);
      if (options.output === 'name') return void cli.stdout.write(`${image.metadata.name}\n`);
      cli.stdout.write(`image ${image.metadata.name} added\n`);
      if (options.cpus === undefined && options.memory === undefined) cli.stderr.write(`${defaultsHint}\n`);
    });
}

/** Many images need far less, and a small host has no room for so much. */
const defaultsHint =
  'instances of it that name no size get what their pool says, else 4 CPUs and 8 GiB memory; --cpus and --memory say otherwise';

function specOf(options: AddOptions): Partial<ImageSpec> {
  const { format, architecture, driver, checksum } = options;
  return {
    source: options.source,
    ...(checksum === undefined ? {} : { checksum: checksum.includes(':') ? checksum : `sha256:${checksum}` }),
    ...(format === undefined
      ? options.source.startsWith(containerTransport)
        ? { format: 'container' }
        : {}
      : { format: oneOf('--format', format, imageFormats) }),
    decompress:
      options.decompress === undefined
        ? packingOf(options.source)
        : oneOf('--decompress', options.decompress, packings),
    ...(architecture === undefined ? {} : { architecture: oneOf('--architecture', architecture, architectures) }),
    ...(driver === undefined ? {} : { backend: driver }),
    aliases: [...options.alias],
    nocloud: options.cloudInit,
    preload: options.preload === true,
    defaults: {
      ...(options.cpus === undefined ? {} : { cpus: parseInteger('--cpus', options.cpus, { min: 1, max: 1024 }) }),
      ...(options.memory === undefined ? {} : { memoryMiB: parseMemoryMiB(options.memory) }),
      ...(options.disk === undefined ? {} : { diskGiB: parseDiskGiB(options.disk) }),
    },
  };
}

function packingOf(source: string): ImageSpec['decompress'] {
  const path = URL.parse(source)?.pathname ?? source;
  if (/\.zstd?$/.test(path)) return 'zstd';
  if (path.endsWith('.gz')) return 'gzip';
  return path.endsWith('.xz') ? 'xz' : 'none';
}

function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((word) => word === text);
  if (!found) throw usageError(`${flag} cannot be "${text}"`, `choose one of: ${known.join(', ')}`);
  return found;
}

interface PullOptions {
  readonly wait: boolean;
  readonly timeout?: string;
}

function pullCommand(cli: Cli): Command {
  return new Command('pull')
    .description('Have every fitting host fetch images now, and keep doing so for new hosts')
    .argument('<image...>')
    .option('--no-wait', 'do not wait until they have it')
    .option('-t, --timeout <duration>', 'give up waiting after 90s, 5m')
    .action(async (names: readonly string[], { wait, timeout }: PullOptions, command: Command) => {
      const session = await openSession(cli, command);
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const failures = await forEachName(cli, names, async (name) => {
        const change = ({ spec }: Image): ImageSpec | undefined => {
          if (isContainerImage(spec))
            throw usageError(
              `"${name}" is a container image`,
              'the engine of a host fetches it when it is first asked for',
            );
          return spec.preload ? undefined : { ...spec, preload: true };
        };
        const image = await attempting(
          `pull image "${name}"`,
          () => replace(session.client, { kind: 'image', name, change }),
          advice,
        );
        if (!wait) {
          cli.stdout.write(`${image.metadata.name} is being fetched\n`);
          return;
        }
        const hosts = await waitForHosts(cli, session, image, timeoutMs);
        printHosts(cli, image, hosts);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

/** Whether a host will fetch it: it is here, of the right architecture, and has a driver that can use it. */
function fits({ spec }: Image, host: Host): boolean {
  const { status } = host;
  const drivers = status.drivers.filter(
    ({ available, name }) => available && (spec.backend === undefined || spec.backend === name),
  );
  return hostReady(host) && status.architecture === spec.architecture && drivers.length > 0;
}

async function waitForHosts(
  cli: Cli,
  { client }: Session,
  image: Image,
  timeoutMs: number | undefined,
): Promise<Host[]> {
  const { name } = image.metadata;
  const interruption = cli.interruption();
  const overdue = new AbortController();
  const timer = timeoutMs === undefined ? undefined : cli.clock.setTimer(timeoutMs, () => overdue.abort());
  const progress = startProgress(cli);
  const hosts = new Map<string, Host>();
  let told = '';
  try {
    for await (const change of follow(cli, client, 'host', {}, AbortSignal.any([interruption, overdue.signal]))) {
      if (change.type === 'sync') {
        hosts.clear();
        for (const host of change.items) hosts.set(host.metadata.name, host);
      } else if (change.type === 'put') hosts.set(change.resource.metadata.name, change.resource);
      else if (change.type === 'delete') hosts.delete(change.name);
      const fitting = [...hosts.values()].filter((host) => fits(image, host));
      const done = fitting.filter((host) => hasImage(image, host));
      if (done.length === fitting.length) return fitting;
      const problems = fitting.flatMap((host) => problemsOf(image, host));
      if (done.length + problems.length === fitting.length) throw cannotFetch(image, problems);
      told = `on ${done.length} of ${fitting.length} hosts`;
      progress.update(`${name}: ${told}`);
    }
    throw new Interrupted();
  } catch (error) {
    if (!(error instanceof Interrupted) || interruption.aborted || !overdue.signal.aborted) throw error;
    throw new CommandError(exitCodes.timedOut, `image "${name}" was only ${told} after ${seconds(timeoutMs ?? 0)}`, {
      advice: "the hosts go on trying; their agents' logs say what is wrong",
    });
  } finally {
    progress.end();
    timer?.cancel();
  }
}

/** What a host has by this name may be of an earlier source: the key says of which. */
function reportsOf({ metadata, spec }: Image, { status }: Host): HostImage[] {
  const wanted = imageKey(spec);
  return status.images.filter(({ name, key }) => name === metadata.name && key === wanted);
}

function hasImage(image: Image, host: Host): boolean {
  return reportsOf(image, host).some(({ problem }) => problem === undefined);
}

function problemsOf(image: Image, host: Host): string[] {
  if (hasImage(image, host)) return [];
  const { problem } = reportsOf(image, host).find((report) => report.problem !== undefined) ?? {};
  return problem === undefined ? [] : [`${host.metadata.name}: ${problem}`];
}

function cannotFetch({ metadata }: Image, problems: readonly string[]): CommandError {
  return new CommandError(exitCodes.badOutcome, `image "${metadata.name}" cannot be fetched; ${problems.join('; ')}`, {
    advice: 'the hosts try again by themselves, at most an hour apart; within a minute when the image is changed',
  });
}

function printHosts(cli: Cli, wanted: Image, hosts: readonly Host[]): void {
  if (hosts.length === 0) {
    cli.stderr.write(
      `no host that is ready now can use ${wanted.metadata.name}; those that come later will fetch it\n`,
    );
    return;
  }
  const rows = hosts.flatMap((host) => reportsOf(wanted, host).map((image) => ({ host, image })));
  printTable(
    cli,
    [
      { header: 'IMAGE', value: ({ image }) => image.name },
      { header: 'HOST', value: ({ host }) => host.metadata.name },
      { header: 'SIZE', value: ({ image }) => bytes(image.sizeBytes), right: true },
      { header: 'DIGEST', value: ({ image }) => image.digest.slice(0, 19) },
    ],
    rows,
  );
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Forget images; instances that run are not touched')
    .argument('<image...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove image "${name}"`, () => client.delete('image', name), advice);
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
