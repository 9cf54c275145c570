// `berth top`: who claims the most, hosts, instances or projects; drawn again every few seconds on a terminal. It shows claims, as the
// ledger has them, and of instances what their guests use, where that is measured.

import { Argument, Command } from 'commander';
import type { Host } from '../../api/resources/host.ts';
import { hostStateName } from '../../api/resources/host-state.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { InstanceUsage } from '../../api/guests/guest-usage.ts';
import type { HostUsage } from '../../api/usage.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import { ApiError } from '../../api/errors.ts';
import { sleep } from '../../base/clock.ts';
import type { Cli } from '../cli.ts';
import { attempting, Interrupted } from '../exit-codes.ts';
import { memory, parseInteger } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Column, coloursFor, type Format, printValue, tableLines, terminalColumns } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';

const subjects = ['hosts', 'instances', 'projects'] as const;
type Subject = (typeof subjects)[number];

interface TopFlags {
  readonly once?: true;
  readonly interval: string;
  readonly limit: string;
  readonly output: Format;
}

export function topCommand(cli: Cli): Command {
  return new Command('top')
    .description('Show the hosts, instances or projects that claim or use the most')
    .addArgument(new Argument('[what]', 'what to show').choices(subjects).default('hosts'))
    .option('--once', 'show it once; the default without a terminal and with -o json')
    .option('--interval <seconds>', 'seconds between refreshes', '2')
    .option('--limit <count>', 'at most this many rows', '100')
    .addOption(outputOption('value'))
    .action(async (subject: Subject, options: TopFlags, command: Command) => {
      const intervalMs = parseInteger('--interval', options.interval, { min: 1, max: 3_600 }) * 1_000;
      const limit = parseInteger('--limit', options.limit, { min: 1, max: 100_000 });
      const { client } = await openSession(cli, command);
      // Of all projects, like the queue, unless one is given.
      const { project } = command.optsWithGlobals<{ project?: string }>();
      const read = async (): Promise<Top> => (await topOf[subject](client, project))(limit);
      const attempt = `show the ${subject}`;
      const { output } = options;
      if (output === 'json' || output === 'yaml')
        return printValue(cli, output, (await attempting(attempt, read)).rows);
      const first = await attempting(attempt, read);
      const refreshes = cli.stdout.isTTY === true && cli.environment['TERM'] !== 'dumb' && !options.once;
      if (!refreshes) return void cli.stdout.write(`${first.lines(cli).join('\n')}\n`);
      await refresh(cli, first, { read, intervalMs });
    });
}

/** Rows for programs, and the same for people. */
interface Top {
  readonly rows: readonly object[];
  readonly lines: (cli: Cli) => string[];
}

/** Until Ctrl-C: then throws `Interrupted`. */
async function refresh(
  cli: Cli,
  first: Top,
  { read, intervalMs }: { readonly read: () => Promise<Top>; readonly intervalMs: number },
): Promise<never> {
  const signal = cli.interruption();
  const colours = coloursFor(cli.stdout, cli.environment);
  let top = first;
  let note = '';
  for (let drawn = 0; ; ) {
    const room = Math.max(3, (cli.stdout.rows || 24) - 2);
    const all = top.lines(cli);
    const shown = all.length > room ? [...all.slice(0, room - 1), `… ${all.length - room + 1} more`] : all;
    if (note !== '') shown.push(colours.yellow(note.slice(0, (terminalColumns(cli.stdout) ?? 80) - 1)));
    cli.stdout.write(`${drawn > 0 ? `\u001b[${drawn}A` : ''}\r\u001b[0J${shown.join('\n')}\n`);
    drawn = shown.length;
    await sleep(cli.clock, intervalMs, signal);
    if (signal.aborted) throw new Interrupted();
    try {
      top = await read();
      note = '';
    } catch (error) {
      // A server that restarts comes back; any other refusal stays the same.
      if (!(error instanceof ApiError) || error.code !== 'Unavailable') throw error;
      note = `no answer from the server (${visible(error.message)}); trying again`;
    }
  }
}

const topOf: Readonly<Record<Subject, (client: UserClient, project?: string) => Promise<Ranking>>> = {
  hosts: async (client) => {
    const [{ items: hosts }, usage] = await Promise.all([listAll(client, 'host'), allUsage(client)]);
    return ranking(hosts.map((host) => hostRow(host, usage.get(host.metadata.name))).sort(byShare), hostColumns);
  },
  instances: async (client, project) => {
    const of = project === undefined ? {} : { project };
    const [{ items }, used] = await Promise.all([listAll(client, 'instance', of), allUsed(client, of)]);
    const rows = items.map((instance) => instanceRow(instance, used.get(keyOf(instance.metadata))));
    const measured = rows.some(({ used: seen }) => seen !== undefined);
    return ranking(rows.sort(byUse), [...instanceColumns, ...(measured ? useColumns : []), ...claimColumns]);
  },
  projects: async (client, project) => {
    const { items } = await client.projectTotals(project === undefined ? {} : { project });
    return ranking([...items].sort(byClaim), projectColumns);
  },
};

type Ranking = (limit: number) => Top;

function ranking<Row extends object>(rows: readonly Row[], columns: readonly Column<Row>[]): Ranking {
  return (limit) => {
    const kept = rows.slice(0, limit);
    return {
      rows: kept,
      lines: (cli) => [
        ...tableLines(columns, kept, {
          colours: coloursFor(cli.stdout, cli.environment),
          columns: terminalColumns(cli.stdout),
        }),
        ...(rows.length > limit ? [`and ${rows.length - limit} more`] : []),
      ],
    };
  };
}

async function allUsage(client: UserClient): Promise<ReadonlyMap<string, HostUsage>> {
  const usage = new Map<string, HostUsage>();
  let next: string | undefined;
  do {
    const page = await client.usage(next === undefined ? {} : { continue: next });
    for (const item of page.items) usage.set(item.host, item);
    next = page.continue;
  } while (next !== undefined);
  return usage;
}

/** Usage of all measured instances, by project and name. */
async function allUsed(client: UserClient, of: { project?: string }): Promise<ReadonlyMap<string, InstanceUsage>> {
  const { items } = await client.allInstanceUsage({ ...of, limit: 100_000 });
  return new Map(items.map((item) => [keyOf({ project: item.project, name: item.instance }), item]));
}

function keyOf({ project, name }: { readonly project: string; readonly name: string }): string {
  return `${project}/${name}`;
}

interface Claimed {
  readonly claimed: number;
  readonly capacity: number;
}

interface HostRow {
  readonly host: string;
  readonly state: string;
  readonly pool: string;
  readonly consumers: number;
  readonly cpus: Claimed;
  readonly memoryMiB: Claimed;
  readonly diskGiB: Claimed;
}

function hostRow(host: Host, usage: HostUsage | undefined): HostRow {
  const of = (resourceClass: string): Claimed => {
    const { used = 0, capacity = 0 } = usage?.classes[resourceClass] ?? {};
    return { claimed: used, capacity };
  };
  return {
    host: host.metadata.name,
    state: hostStateName(host),
    pool: host.spec.pool ?? '',
    consumers: usage?.consumers ?? 0,
    cpus: of('VCPU'),
    memoryMiB: of('MEMORY_MB'),
    diskGiB: of('DISK_GB'),
  };
}

function shareOf({ claimed, capacity }: Claimed): number {
  return capacity === 0 ? 0 : claimed / capacity;
}

/** The scarcest class decides: that is the one that refuses the next instance. */
function scarcest({ cpus, memoryMiB, diskGiB }: HostRow): number {
  return Math.max(shareOf(cpus), shareOf(memoryMiB), shareOf(diskGiB));
}

function byShare(a: HostRow, b: HostRow): number {
  return scarcest(b) - scarcest(a) || a.host.localeCompare(b.host);
}

function ofCapacity(amount: Claimed, show: (amount: number) => string): string {
  return amount.capacity === 0 ? '' : `${show(amount.claimed)}/${show(amount.capacity)}`;
}

const hostColumns: readonly Column<HostRow>[] = [
  { header: 'HOST', value: ({ host }) => host },
  { header: 'STATE', value: ({ state }) => state },
  { header: 'POOL', importance: 'minor', value: ({ pool }) => pool },
  { header: 'FULL', value: (row) => `${Math.round(scarcest(row) * 100)} %`, right: true },
  { header: 'CPUS', value: ({ cpus }) => ofCapacity(cpus, count), right: true },
  { header: 'MEMORY', value: ({ memoryMiB }) => ofCapacity(memoryMiB, memory), right: true },
  { header: 'DISK', value: ({ diskGiB }) => ofCapacity(diskGiB, (gib) => `${gib} GiB`), right: true },
  { header: 'CONSUMERS', value: ({ consumers }) => String(consumers), right: true },
];

interface Claim {
  readonly project: string;
  readonly name?: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
}

interface InstanceRow extends Claim {
  readonly name: string;
  readonly phase: string;
  readonly host: string;
  /** Absent: not measured. */
  readonly used?: { readonly cpus?: number; readonly memoryMiB: number };
}

function instanceRow({ metadata, status }: Instance, used?: InstanceUsage): InstanceRow {
  const { assigned } = status;
  return {
    project: metadata.project,
    name: metadata.name,
    phase: status.phase,
    host: status.host ?? '',
    cpus: assigned?.['VCPU'] ?? 0,
    memoryMiB: assigned?.['MEMORY_MB'] ?? 0,
    diskGiB: assigned?.['DISK_GB'] ?? 0,
    ...(used === undefined ? {} : { used: usedOf(used) }),
  };
}

function usedOf({ cpus, memoryBytes }: InstanceUsage): NonNullable<InstanceRow['used']> {
  return { ...(cpus === undefined ? {} : { cpus }), memoryMiB: Math.ceil(memoryBytes / 2 ** 20) };
}

/** Sorts by usage, then by claims, the largest first. */
function byUse(a: InstanceRow, b: InstanceRow): number {
  return (b.used?.cpus ?? 0) - (a.used?.cpus ?? 0) || byClaim(a, b);
}

function byClaim(a: Claim, b: Claim): number {
  const byName = a.project.localeCompare(b.project) || (a.name ?? '').localeCompare(b.name ?? '');
  return b.cpus - a.cpus || b.memoryMiB - a.memoryMiB || byName;
}

const claimColumns: readonly Column<Claim>[] = [
  { header: 'CPUS', value: ({ cpus }) => count(cpus), right: true },
  { header: 'MEMORY', value: ({ memoryMiB }) => memory(memoryMiB), right: true },
  { header: 'DISK', value: ({ diskGiB }) => `${diskGiB} GiB`, right: true },
];

const instanceColumns: readonly Column<InstanceRow>[] = [
  { header: 'PROJECT', value: ({ project }) => project },
  { header: 'NAME', importance: 'major', value: ({ name }) => name },
  { header: 'PHASE', value: ({ phase }) => phase },
  { header: 'HOST', value: ({ host }) => host },
];

const useColumns: readonly Column<InstanceRow>[] = [
  { header: 'USES CPUS', value: ({ used }) => used?.cpus?.toFixed(2) ?? '', right: true },
  { header: 'USES MEMORY', value: ({ used }) => (used === undefined ? '' : memory(used.memoryMiB)), right: true },
];

interface ProjectRow extends Claim {
  readonly instances: number;
  readonly running: number;
  readonly pending: number;
}

const projectColumns: readonly Column<ProjectRow>[] = [
  { header: 'PROJECT', value: ({ project }) => project },
  { header: 'INSTANCES', value: ({ instances }) => String(instances), right: true },
  { header: 'RUNNING', value: ({ running }) => String(running), right: true },
  { header: 'PENDING', value: ({ pending }) => String(pending), right: true },
  ...claimColumns,
];

/** Shares of CPUs may be fractions. */
function count(amount: number): string {
  return String(Number(amount.toFixed(3)));
}
