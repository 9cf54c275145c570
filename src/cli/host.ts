// `berth host ...`: the hosts, and which of them take new instances.

import { Command } from 'commander';
import type { Host } from '../api/resources/host.ts';
import type { Cli } from './cli.ts';
import { attempting } from './exit-codes.ts';
import { listAll } from './follow.ts';
import { conditionOf } from './instance-view.ts';
import { setCommand, taintCommand, untaintCommand } from './host-set.ts';
import { kindViews } from './kinds.ts';
import { type Format, fieldLines, parseFormat, printList, printValue } from './output.ts';
import { replace } from './replace.ts';
import { forEachName, joined } from './rm.ts';
import { openSession, type Session } from './session.ts';
import { taintText } from './taints.ts';
import { age, bytes, collect, memory, parseLabels } from './units.ts';
import { watchList } from './watch-list.ts';

const advice = { NotFound: '"berth host ls" shows the hosts' } as const;

export function hostCommand(cli: Cli): Command {
  return new Command('host')
    .description('Hosts: show, pause, resume, describe, remove')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(pauseCommand(cli, 'pause', true, 'Place nothing new on hosts; what runs there runs on'))
    .addCommand(pauseCommand(cli, 'resume', false, 'Place new instances on hosts again'))
    .addCommand(createCommand(cli))
    .addCommand(poolCommand(cli))
    .addCommand(setCommand(cli))
    .addCommand(taintCommand(cli))
    .addCommand(untaintCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all hosts')
    .option('-l, --selector <selector>', 'only hosts with these labels')
    .option('-w, --watch', 'go on showing changes until Ctrl-C')
    .option('-o, --output <format>', 'table, json, yaml or name', parseFormat, 'table')
    .action(
      async ({ output, selector, watch }: { output: Format; selector?: string; watch?: true }, command: Command) => {
        const { client } = await openSession(cli, command);
        const query = selector === undefined ? {} : { selector };
        const empty = 'no hosts; start an agent on one: berth agent --help';
        await attempting('list hosts', async () => {
          if (watch) {
            const columns = (nowMs: number) => kindViews.host({ nowMs });
            return watchList(cli, client, { kind: 'host', query, format: output, columns, sort: byName, empty });
          }
          const [{ items }, instancesByHost] = await Promise.all([
            listAll(client, 'host', query),
            countInstances({ client }),
          ]);
          const columns = kindViews.host({ nowMs: cli.clock.nowMs(), instancesByHost });
          await printList(cli, output, { items: items.sort(byName), columns, empty });
        });
      },
    );
}

function byName(a: Host, b: Host): number {
  return a.metadata.name.localeCompare(b.metadata.name);
}

async function countInstances({ client }: Pick<Session, 'client'>): Promise<Map<string, number>> {
  const { items } = await listAll(client, 'instance');
  const counts = new Map<string, number>();
  for (const { status } of items)
    if (status.host !== undefined) counts.set(status.host, (counts.get(status.host) ?? 0) + 1);
  return counts;
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one host with all that it reported')
    .argument('<host>')
    .option('-o, --output <format>', 'table, json or yaml', parseFormat, 'table')
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const [host, { items }] = await attempting(
        `show host "${name}"`,
        () => Promise.all([client.get('host', name), listAll(client, 'instance')]),
        advice,
      );
      if (output === 'json' || output === 'yaml') return printValue(cli, output, host);
      const instances = items
        .filter(({ status }) => status.host === host.metadata.name)
        .map(({ metadata }) => metadata.name);
      cli.stdout.write(`${hostLines(host, instances, cli.clock.nowMs()).join('\n')}\n`);
    });
}

export function hostLines({ metadata, spec, status }: Host, instances: readonly string[], nowMs: number): string[] {
  const ready = conditionOf(status.conditions, 'Ready');
  const reserved = spec.reserved ?? status.reserved ?? {};
  const capacity = Object.entries(status.capacity ?? {}).map(([resourceClass, total]) => {
    const kept = reserved[resourceClass];
    return `${amountText(resourceClass, total)}${kept ? ` (${amountText(resourceClass, kept)} kept for the host)` : ''}`;
  });
  return fieldLines([
    ['name', metadata.name],
    [
      'ready',
      ready
        ? `${ready.status === 'True' ? 'yes' : 'no'}, for ${age(nowMs - ready.sinceMs)}: ${ready.message}`
        : 'no: its agent has never registered',
    ],
    ['paused', spec.paused ? 'yes: nothing new is placed here' : 'no'],
    ['pool', spec.pool],
    ...purposeLines(spec, status),
    [
      'labels',
      Object.entries(metadata.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ['architecture', status.architecture],
    ...capacity.map((line, index): [string, string] => [index === 0 ? 'capacity' : '', line]),
    ...Object.entries(spec.allocationRatios).map(([key, ratio]): [string, string] => [
      'overcommit',
      `${key} × ${ratio}`,
    ]),
    ...status.drivers.map(({ name, available, reason, accelerator, version }): [string, string] => [
      'driver',
      [name, available ? (accelerator ?? '') : 'not available', version ?? '', reason ?? '']
        .filter((part) => part !== '')
        .join(', '),
    ]),
    ...status.images.map(({ name, digest, sizeBytes, problem }): [string, string] => [
      'image',
      problem === undefined
        ? `${name}, ${bytes(sizeBytes)}, ${digest.slice(0, 19)}`
        : `${name} cannot be fetched: ${problem}`,
    ]),
    ...status.unknownGuests.map(({ instanceId, driver, state }): [string, string] => [
      'unknown',
      `guest ${instanceId} (${driver}, ${state})`,
    ]),
    ['instances', instances.toSorted().join(', ') || 'none'],
    ['agent', status.agentVersion === undefined ? undefined : `${status.agentVersion}, session ${status.epoch}`],
    ['age', age(nowMs - metadata.createdAtMs)],
  ]);
}

/** Who may be here. */
function purposeLines(spec: Host['spec'], status: Host['status']): [string, string | undefined][] {
  const controlPlane = spec.controlPlane ?? status.controlPlane === 'excluded';
  return [
    [
      'dedicated',
      spec.dedicatedTo === undefined
        ? spec.dedicated
          ? 'to who asks for it'
          : undefined
        : `to project ${spec.dedicatedTo}${spec.dedicated ? ', when asked for' : ''}`,
    ],
    ['at most', spec.instancesMax === undefined ? undefined : `${spec.instancesMax} instances`],
    ['taints', spec.taints?.map(taintText).join(', ')],
    ['traits', [...(spec.traits ?? []), ...(status.traits ?? [])].join(', ') || undefined],
    [
      'devices',
      [...(spec.providers ?? []), ...(status.providers ?? [])].map(({ name }) => name).join(', ') || undefined,
    ],
    ['control', controlPlane ? 'the control plane runs here; nothing is placed here' : undefined],
  ];
}

function amountText(resourceClass: string, amount: number): string {
  switch (resourceClass) {
    case 'VCPU':
      return `${amount} CPUs`;
    case 'MEMORY_MB':
      return `${memory(amount)} memory`;
    case 'DISK_GB':
      return `${amount} GiB disk`;
    default:
      return `${amount} ${resourceClass}`;
  }
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Describe a host before its agent comes, or let one come back that was removed')
    .argument('<name>')
    .option('--pool <pool>', 'the pool it is in')
    .option('--label <key=value>', 'many times', collect, [])
    .option('--paused', 'it takes nothing before it is resumed')
    .action(
      async (
        name: string,
        { pool, label, paused }: { pool?: string; label: readonly string[]; paused?: true },
        command: Command,
      ) => {
        const { client } = await openSession(cli, command);
        const labels = parseLabels('--label', label);
        const spec = { paused: paused === true, ...(pool === undefined ? {} : { pool }) };
        await attempting(`create host "${name}"`, () => client.create('host', { metadata: { name, labels }, spec }));
        cli.stdout.write(`host ${name} created; its agent may come\n`);
      },
    );
}

function poolCommand(cli: Cli): Command {
  return new Command('pool')
    .description('Put a host into a pool, or without a pool take it out')
    .argument('<host>')
    .argument('[pool]')
    .action(async (name: string, pool: string | undefined, _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const change = ({ spec: { pool: _former, ...spec } }: Host): Host['spec'] =>
        pool === undefined ? spec : { ...spec, pool };
      await attempting(`set the pool of host "${name}"`, () => replace(client, { kind: 'host', name, change }), advice);
      cli.stdout.write(pool === undefined ? `${name} is in no pool\n` : `${name} is in pool ${pool}\n`);
    });
}

function pauseCommand(cli: Cli, verb: 'pause' | 'resume', paused: boolean, description: string): Command {
  return new Command(verb)
    .description(description)
    .argument('<host...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        const change = ({ spec }: Host): Host['spec'] => ({ ...spec, paused });
        const { metadata } = await attempting(
          `${verb} host "${name}"`,
          () => replace(client, { kind: 'host', name, change }),
          advice,
        );
        cli.stdout.write(`${metadata.name} ${paused ? 'paused' : 'resumed'}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove hosts from the fleet')
    .argument('<host...>')
    .option('--force', 'also when instances are there: they fail; only for a host that will never come back')
    .action(async (names: readonly string[], { force }: { force?: true }, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove host "${name}"`, () => client.delete('host', name, force ? { force } : {}), advice);
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
