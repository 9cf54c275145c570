// `berth driver ls`: the drivers of this program, how far each was tested, and the hosts that offer it.

import { Command } from 'commander';
import { type DriverFacts, driverFacts } from '../../api/driver-facts.ts';
import type { Host, HostDriver } from '../../api/resources/host.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { type Column, type Format, printTable, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { visible } from '../print/terminal.ts';

export interface DriverRow extends Partial<DriverFacts> {
  readonly name: string;
  /** Null: the hosts are unknown. */
  readonly hosts: readonly OfferedBy[] | null;
}

interface OfferedBy extends Omit<HostDriver, 'name'> {
  readonly host: string;
}

export function driverCommand(cli: Cli): Command {
  return new Command('driver')
    .description('Drivers: show them, and the hosts that have them')
    .addCommand(lsCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all drivers, how each was tested, and the hosts that have it; works without a server')
    .addOption(outputOption('list'))
    .option('--json', 'as -o json')
    .action(async ({ output, json }: { output: Format; json?: true }, command: Command) => {
      const format = json ? 'json' : output;
      const rows = driverRows(await hostsOf(cli, command));
      if (format === 'json' || format === 'yaml') return printValue(cli, format, rows);
      if (format === 'name') return void cli.stdout.write(rows.map(({ name }) => `${visible(name)}\n`).join(''));
      printTable(cli, columns, rows, format);
      for (const line of missingLines(rows)) cli.stdout.write(`${visible(line)}\n`);
    });
}

/** Undefined when no server responds, which is reported; the drivers of this program are known anyway. */
async function hostsOf(cli: Cli, command: Command): Promise<readonly Host[] | undefined> {
  try {
    const { client } = await openSession(cli, command);
    const { items } = await attempting('list hosts', () => listAll(client, 'host'));
    return items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    cli.stderr.write(`which hosts have them is not known: ${visible(reason)}\n`);
    return undefined;
  }
}

/** Drivers of this program first; then those that only hosts of another version have. */
export function driverRows(hosts: readonly Host[] | undefined): DriverRow[] {
  const offers = new Map<string, OfferedBy[]>();
  for (const { metadata, status } of hosts ?? [])
    for (const { name, ...seen } of status.drivers) {
      const before = offers.get(name) ?? [];
      before.push({ host: metadata.name, ...seen });
      offers.set(name, before);
    }
  const known = driverFacts.map((facts) => ({ ...facts, hosts: hosts && (offers.get(facts.name) ?? []) }));
  const others = [...offers].filter(([name]) => driverFacts.every((facts) => facts.name !== name));
  return [...known, ...others.map(([name, found]) => ({ name, hosts: found }))].map((row) => ({
    ...row,
    hosts: row.hosts ?? null,
  }));
}

const hostsShown = 5;

const columns: readonly Column<DriverRow>[] = [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'GUESTS', value: ({ summary }) => summary ?? 'this program does not have this driver' },
  { header: 'VOLUMES', value: ({ volumes }) => (volumes === undefined ? '' : volumes ? 'yes' : 'no') },
  {
    header: 'SUSPENDS',
    importance: 'minor',
    value: ({ suspends, saves }) => (suspends === undefined ? '' : !suspends ? 'no' : saves ? 'also to disk' : 'yes'),
  },
  {
    header: 'RUNS JOBS',
    importance: 'minor',
    value: ({ runs }) => (runs === undefined ? '' : runs ? 'yes' : 'no'),
  },
  { header: 'PROVEN BY', value: ({ proven }) => proven ?? '' },
  {
    header: 'HOSTS',
    importance: 'major',
    value: ({ hosts }) => (hosts === null ? '?' : shown(hosts.filter(({ available }) => available))),
  },
];

function shown(hosts: readonly OfferedBy[]): string {
  const names = hosts
    .slice(0, hostsShown)
    .map(({ host, accelerator }) =>
      accelerator === undefined || accelerator === 'none' ? host : `${host} (${accelerator})`,
    );
  return [...names, ...(hosts.length > hostsShown ? [`and ${hosts.length - hostsShown} more`] : [])].join(', ');
}

/** Hosts on which a requested driver does not work, and why. */
function missingLines(rows: readonly DriverRow[]): string[] {
  const missing = rows.flatMap(({ name, hosts }) =>
    (hosts ?? []).flatMap(({ host, available, reason }) =>
      available ? [] : [`${name} is not available on ${host}: ${reason ?? 'it does not say why'}`],
    ),
  );
  const more = missing.length - hostsShown;
  return [...missing.slice(0, hostsShown), ...(more > 0 ? [`and ${more} more: berth driver ls -o json`] : [])];
}
