// `berth image ...`: the images of instances. src/commands/image-build.ts builds them.

import { Command } from 'commander';
import { isContainerImage } from '../../api/container-image.ts';
import { containerTransport } from '../../api/container-reference.ts';
import type { Host, HostImage } from '../../api/resources/host.ts';
import { type Image, imageKey, type ImageSpec } from '../../api/resources/image.ts';
import type { Cli } from '../cli.ts';
import { meantContainer } from './container-source.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from '../exit-codes.ts';
import { follow, listAll } from '../print/follow.ts';
import { show } from '../get.ts';
import { hostReady, kindViews } from '../kinds.ts';
import { type AmountOptions, amountsOf, imageFormats, imagePackings, oneOf, packingOf } from './image-options.ts';
import { createCommand } from './image-create.ts';
import { assertHost, assertPool } from '../options/known-places.ts';
import { nothingFound } from '../print/nothing-found.ts';
import { uploadCommand } from './image-upload.ts';
import { type Format, printList, printTable, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { startProgress } from '../print/progress.ts';
import { replace } from '../replace.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { removeUsed } from './remove-used.ts';
import { openSession, type Session } from '../session.ts';
import { bytes, collect, parseDurationMs, parseInteger, parseLabels, seconds } from '../options/units.ts';

const advice = { NotFound: '"berth image ls" shows the images' } as const;

export function imageCommand(cli: Cli): Command {
  return new Command('image')
    .description('Images: show, add, upload, fetch, keep, build, remove')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(addCommand(cli))
    .addCommand(uploadCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(pullCommand(cli))
    .addCommand(prefetchCommand(cli))
    .addCommand(pinCommand(cli))
    .addCommand(unpinCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all images')
    .option('-l, --selector <selector>', 'only images with these labels')
    .option('--hosts', 'show which hosts have them, and how many guests use them there')
    .addOption(outputOption('list'))
    .action(async ({ output, selector, hosts }: LsOptions, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list images', () =>
        listAll(client, 'image', selector === undefined ? {} : { selector }),
      );
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      if (hosts === true)
        return printCached(cli, output, items, (await attempting('list hosts', () => listAll(client, 'host'))).items);
      const sizes =
        items.length > 0 && (output === 'table' || output === 'wide') ? await sizesOnHosts(client, items) : undefined;
      const columns = kindViews.image({
        nowMs: cli.clock.nowMs(),
        ...(sizes === undefined ? {} : { sizeByImage: sizes }),
      });
      await printList(cli, output, {
        items,
        columns,
        empty: nothingFound('images', {
          selector,
          otherwise: 'no images; create one: berth image build tiny, or berth image add NAME --source URL',
        }),
      });
    });
}

interface LsOptions {
  readonly output: Format;
  readonly selector?: string;
  readonly hosts?: true;
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one image as it is stored')
    .argument('<image>')
    .addOption(outputOption('list', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'image', { name, format: output }),
    );
}

interface AddOptions extends AmountOptions {
  readonly source: string;
  readonly mirror: readonly string[];
  readonly checksum?: string;
  readonly sizeBytes?: string;
  readonly pin?: true;
  readonly format?: string;
  readonly decompress?: string;
  readonly architecture?: string;
  readonly driver?: string;
  readonly alias: readonly string[];
  readonly cloudInit: boolean;
  readonly defaultUser?: string;
  readonly preload?: true;
  readonly label: readonly string[];
  readonly output: Format;
}

const addedFormats = [...imageFormats, 'container'] as const;
const architectures = ['amd64', 'arm64'] as const;

function addCommand(cli: Cli): Command {
  return new Command('add')
    .description('Add an image by its URL; hosts fetch it when it is needed')
    .argument('<name>')
    .requiredOption('--source <url>', 'http:, https:, oci: or file: URL, or docker://REGISTRY/NAME:TAG')
    .option('--checksum <sha256>', 'checksum of the file at the source: sha256:<64 hex digits>')
    .option('--mirror <url>', 'another URL, used when the source fails; may be repeated', collect, [])
    .option('--size-bytes <count>', 'size of the file at the source; any other size is refused')
    .option(
      '--format <format>',
      `${imageFormats.join(', ')} or container; default: container for docker://, else qcow2`,
    )
    .option('--decompress <packing>', `${imagePackings.join(', ')}; default: by the ending of the URL`)
    .option('--architecture <architecture>', `${architectures.join(' or ')}; default: amd64`)
    .option('--driver <driver>', 'run it only with this driver')
    .option('--alias <name>', 'another name for it; may be repeated', collect, [])
    .option('--no-cloud-init', 'attach no NoCloud seed')
    .option('--default-user <user>', "user for ssh, who gets the instance's keys")
    .option('--preload', 'all matching hosts fetch it now')
    .option('--pin', 'hosts that have it keep it, even beyond the budget of their caches')
    .option('--cpus <count>', "for instances that do not set it; default: their pool's, else 4")
    .option('--memory <amount>', "for instances that do not set it; default: their pool's, else 8 GiB")
    .option('--disk <amount>', 'for instances that do not set it')
    .option('-l, --label <key=value>', 'label of the image; may be repeated', collect, [])
    .addOption(outputOption('list'))
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

/** Many images need much less, and a small host cannot give this much. */
const defaultsHint =
  "its instances without a size get their pool's default, else 4 CPUs and 8 GiB memory; --cpus and --memory change this";

function specOf(options: AddOptions): Partial<ImageSpec> {
  const { format, architecture, driver, checksum } = options;
  const meant = meantContainer(options.source);
  if (meant !== undefined)
    throw usageError(
      `--source cannot be "${options.source}": it is not a URL; name a container image with its registry and its tag`,
      `write --source ${meant}`,
    );
  return {
    source: options.source,
    ...(checksum === undefined ? {} : { checksum: checksum.includes(':') ? checksum : `sha256:${checksum}` }),
    ...(options.mirror.length === 0 ? {} : { mirrors: [...options.mirror] }),
    ...(options.sizeBytes === undefined
      ? {}
      : { sizeBytes: parseInteger('--size-bytes', options.sizeBytes, { min: 1, max: Number.MAX_SAFE_INTEGER }) }),
    ...(options.pin === undefined ? {} : { pinned: true }),
    ...(format === undefined
      ? options.source.startsWith(containerTransport)
        ? { format: 'container' }
        : {}
      : { format: oneOf('--format', format, addedFormats) }),
    decompress:
      options.decompress === undefined
        ? packingOf(options.source)
        : oneOf('--decompress', options.decompress, imagePackings),
    ...(architecture === undefined ? {} : { architecture: oneOf('--architecture', architecture, architectures) }),
    ...(driver === undefined ? {} : { backend: driver }),
    aliases: [...options.alias],
    nocloud: options.cloudInit,
    ...(options.defaultUser === undefined ? {} : { defaultUser: options.defaultUser }),
    preload: options.preload === true,
    defaults: amountsOf(options),
  };
}

interface PullOptions {
  readonly wait: boolean;
  readonly timeout?: string;
}

function pullCommand(cli: Cli): Command {
  return new Command('pull')
    .description('Fetch images to every matching host now, and to new hosts when they join')
    .argument('<image...>')
    .option('--no-wait', 'do not wait for the hosts to fetch it')
    .option('-t, --timeout <duration>', 'give up waiting after 90s, 5m')
    .action((names: readonly string[], options: PullOptions, command: Command) =>
      fetchNow(cli, command, names, {
        ...options,
        verb: 'pull',
        change: ({ spec }) => (spec.preload ? undefined : { ...spec, preload: true }),
        wants: () => true,
      }),
    );
}

interface PrefetchOptions extends PullOptions {
  readonly host: readonly string[];
  readonly pool: readonly string[];
}

function prefetchCommand(cli: Cli): Command {
  return new Command('prefetch')
    .description('Fetch images to the given hosts and pools now, and to hosts that join these pools later')
    .argument('<image...>')
    .option('--host <host>', 'this host; may be repeated', collect, [])
    .option('--pool <pool>', 'the hosts of this pool; may be repeated', collect, [])
    .option('--no-wait', 'do not wait for the hosts to fetch it')
    .option('-t, --timeout <duration>', 'give up waiting after 90s, 5m')
    .action(async (names: readonly string[], { host, pool, ...options }: PrefetchOptions, command: Command) => {
      if (host.length + pool.length === 0)
        throw usageError(
          'no host or pool is given',
          'name some with --host or --pool, or use "berth image pull" for all hosts',
        );
      const { client } = await openSession(cli, command);
      for (const name of host) await assertHost(client, name);
      for (const name of pool) await assertPool(client, name);
      const change = ({ spec }: Image): ImageSpec | undefined => {
        const hosts = [...new Set([...(spec.prefetch?.hosts ?? []), ...host])];
        const pools = [...new Set([...(spec.prefetch?.pools ?? []), ...pool])];
        const same = hosts.length === spec.prefetch?.hosts.length && pools.length === spec.prefetch.pools.length;
        return same ? undefined : { ...spec, prefetch: { hosts, pools } };
      };
      const wants = ({ metadata, spec }: Host): boolean =>
        host.includes(metadata.name) || (spec.pool !== undefined && pool.includes(spec.pool));
      return fetchNow(cli, command, names, { ...options, verb: 'prefetch', change, wants });
    });
}

interface FetchNow extends PullOptions {
  readonly verb: string;
  /** The change that makes hosts fetch it; undefined when they do so already. */
  readonly change: (image: Image) => ImageSpec | undefined;
  /** The hosts to wait for, if they can use the image. */
  readonly wants: (host: Host) => boolean;
}

async function fetchNow(
  cli: Cli,
  command: Command,
  names: readonly string[],
  { wait, timeout, verb, change, wants }: FetchNow,
): Promise<void> {
  const session = await openSession(cli, command);
  const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
  const failures = await forEachName(cli, names, async (name) => {
    const image = await attempting(
      `${verb} image "${name}"`,
      () => replace(session.client, { kind: 'image', name, change: (found) => change(diskOnly(found)) }),
      advice,
    );
    if (!wait) {
      cli.stdout.write(`${image.metadata.name} is being fetched\n`);
      return;
    }
    const hosts = await waitForHosts(cli, session, { image, wants, timeoutMs });
    printHosts(cli, image, hosts);
  });
  if (failures.length > 0) throw joined(failures, names.length);
}

function diskOnly(image: Image): Image {
  if (!isContainerImage(image.spec)) return image;
  const { name } = image.metadata;
  throw usageError(
    `"${name}" is a container image`,
    'the container engine of a host fetches it when an instance first needs it',
  );
}

function pinCommand(cli: Cli): Command {
  return changeCommand(cli, {
    verb: 'pin',
    description: 'Pin images: hosts that have them keep them, even beyond the budget of their caches',
    change: ({ spec }) => (spec.pinned === true ? undefined : { ...spec, pinned: true }),
    done: 'is pinned',
  });
}

function unpinCommand(cli: Cli): Command {
  return changeCommand(cli, {
    verb: 'unpin',
    description: 'Unpin images: hosts may remove them when no guest uses them',
    change: ({ spec: { pinned, ...spec } }) => (pinned === true ? spec : undefined),
    done: 'is no longer pinned',
  });
}

interface ChangeWords {
  readonly verb: string;
  readonly description: string;
  readonly change: (image: Image) => ImageSpec | undefined;
  readonly done: string;
}

function changeCommand(cli: Cli, { verb, description, change, done }: ChangeWords): Command {
  return new Command(verb)
    .description(description)
    .argument('<image...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`${verb} image "${name}"`, () => replace(client, { kind: 'image', name, change }), advice);
        cli.stdout.write(`${name} ${done}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

/** Whether a host will fetch it: it is connected, of the right architecture, and has a suitable driver. */
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
  {
    image,
    wants,
    timeoutMs,
  }: { readonly image: Image; readonly wants: FetchNow['wants']; readonly timeoutMs: number | undefined },
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
      const fitting = [...hosts.values()].filter((host) => wants(host) && fits(image, host));
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
      advice: 'the hosts keep trying; see the logs of their agents',
    });
  } finally {
    progress.end();
    timer?.cancel();
  }
}

/** A host may report this name for an earlier source: the key tells them apart. */
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
    advice: 'the hosts retry automatically, at least once an hour, and within a minute after the image is changed',
  });
}

function printHosts(cli: Cli, wanted: Image, hosts: readonly Host[]): void {
  if (hosts.length === 0) {
    cli.stderr.write(`no ready host can use ${wanted.metadata.name}; hosts that register later will fetch it\n`);
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

/** By image name: its size on hosts that have its current version. */
async function sizesOnHosts(client: Session['client'], images: readonly Image[]): Promise<Map<string, number>> {
  // Access to images does not imply access to hosts.
  const { items: hosts } = await listAll(client, 'host').catch(() => ({ items: [] }));
  const sizes = new Map<string, number>();
  for (const image of images)
    for (const { sizeBytes, problem } of hosts.flatMap((host) => reportsOf(image, host)))
      if (problem === undefined)
        sizes.set(image.metadata.name, Math.max(sizeBytes, sizes.get(image.metadata.name) ?? 0));
  return sizes;
}

/** One row per host and image. */
async function printCached(cli: Cli, output: Format, images: readonly Image[], hosts: readonly Host[]): Promise<void> {
  const rows = images.flatMap((image) =>
    hosts.flatMap((host) =>
      host.status.images
        .filter(({ name }) => name === image.metadata.name)
        .map((cached) => ({ ...cached, host: host.metadata.name })),
    ),
  );
  rows.sort((a, b) => a.name.localeCompare(b.name) || a.host.localeCompare(b.host));
  if (output === 'json' || output === 'yaml') return printValue(cli, output, rows);
  if (output === 'name') return void cli.stdout.write(rows.map(({ host }) => `${host}\n`).join(''));
  if (rows.length === 0) return void cli.stderr.write('no host has any of these images\n');
  printTable(
    cli,
    [
      { header: 'IMAGE', value: ({ name }) => name },
      { header: 'HOST', importance: 'major', value: ({ host }) => host },
      {
        header: 'SIZE',
        value: ({ sizeBytes, problem }) => (problem === undefined ? bytes(sizeBytes) : ''),
        right: true,
      },
      { header: 'GUESTS', value: ({ guests }) => String(guests ?? 0), right: true },
      { header: 'DIGEST', importance: 'minor', value: ({ digest }) => digest.slice(0, 19) },
      { header: 'PROBLEM', importance: 'major', value: ({ problem }) => problem ?? '' },
    ],
    rows,
    output,
  );
}

function rmCommand(cli: Cli): Command {
  const command = new Command('rm')
    .description('Remove images; running instances are not affected')
    .argument('<image...>');
  return removeUsed(cli, command, { kind: 'image', word: 'image', advice: advice });
}
