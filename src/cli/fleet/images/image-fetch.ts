// `berth image pull` and `prefetch`: the change of the image that makes hosts fetch it, and the wait until they have it.

import { Command } from 'commander';
import { isContainerImage } from '../../../api/container-image.ts';
import type { Host } from '../../../api/resources/host.ts';
import type { Image, ImageSpec } from '../../../api/resources/image.ts';
import type { Cli } from '../../cli.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from '../../exit-codes.ts';
import { follow } from '../../print/follow.ts';
import { hostReady } from '../../kinds.ts';
import { assertHost, assertPool } from '../../options/known-places.ts';
import { printTable } from '../../print/output.ts';
import { startProgress } from '../../print/progress.ts';
import { replace } from '../../replace.ts';
import { forEachName, joined } from '../../instances/rm.ts';
import { openSession, type Session } from '../../session.ts';
import { bytes, collect, parseDurationMs, seconds } from '../../options/units.ts';
import { imageAdvice } from './image-advice.ts';
import { hasImage, problemsOf, reportsOf } from './image-reports.ts';

interface PullOptions {
  readonly wait: boolean;
  readonly timeout?: string;
}

export function pullCommand(cli: Cli): Command {
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

export function prefetchCommand(cli: Cli): Command {
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
      imageAdvice,
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
