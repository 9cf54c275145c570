// `berth host ...`: the hosts, and which of them take new instances.

import { Command } from 'commander';
import type { Host } from '../../api/resources/host.ts';
import { hostStateName } from '../../api/resources/host-state.ts';
import { reservedOf } from '../../api/resources/host-reserve.ts';
import type { HostProviders, HostUsage } from '../../api/usage.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { conditionOf } from '../instances/instance-view.ts';
import { declareDownCommand } from './hosts/declare-down.ts';
import { openAfterDrain } from './hosts/open-after-drain.ts';
import { drainCommand, evacuateCommand } from './host-drain.ts';
import { restoreCommand } from './hosts/host-restore.ts';
import { rollCommand } from './hosts/host-roll.ts';
import { joinTokenCommand } from './join-token.ts';
import { setCommand, taintCommand, untaintCommand } from './host-set.ts';
import { inventoriesOf, originLines } from '../inventory/outside-host.ts';
import { hostStateAge, kindViews, type ViewFacts } from '../kinds.ts';
import { assertPool } from '../options/known-places.ts';
import { nothingFound } from '../print/nothing-found.ts';
import { type Format, fieldLines, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { replace } from '../replace.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { openSession } from '../session.ts';
import { taintText } from './taints.ts';
import { age, amountText, bytes, collect, parseLabels } from '../options/units.ts';
import { watchList } from '../print/watch-list.ts';

const advice = { NotFound: '"berth host ls" shows the hosts' } as const;

export function hostCommand(cli: Cli): Command {
  return new Command('host')
    .description('Hosts: show, change, pause, resume, drain, remove')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(pauseCommand(cli, 'pause', true, 'Pause hosts: place nothing new on them; running instances stay'))
    .addCommand(
      pauseCommand(cli, 'resume', false, 'Resume hosts that were paused or drained: place new instances on them again'),
    )
    .addCommand(drainCommand(cli))
    .addCommand(restoreCommand(cli))
    .addCommand(rollCommand(cli))
    .addCommand(evacuateCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(poolCommand(cli))
    .addCommand(setCommand(cli))
    .addCommand(taintCommand(cli))
    .addCommand(untaintCommand(cli))
    .addCommand(joinTokenCommand(cli))
    .addCommand(declareDownCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all hosts')
    .option('-l, --selector <selector>', 'only hosts with these labels')
    .option('-w, --watch', 'show changes until Ctrl-C')
    .addOption(outputOption('list'))
    .action(
      async ({ output, selector, watch }: { output: Format; selector?: string; watch?: true }, command: Command) => {
        const { client } = await openSession(cli, command);
        const query = selector === undefined ? {} : { selector };
        const empty = nothingFound('hosts', {
          selector,
          otherwise: 'no hosts; start an agent on one: berth agent --help',
        });
        await attempting('list hosts', async () => {
          if (watch) {
            const columns = (nowMs: number) => kindViews.host({ nowMs });
            return watchList(cli, client, { kind: 'host', query, format: output, columns, sort: byName, empty });
          }
          const [{ items }, usageByHost] = await Promise.all([listAll(client, 'host', query), usageOf(client)]);
          const inventories = await inventoriesOf(client, items);
          const hostTokens = items.some(({ status }) => status.credential === 'host-token');
          const columns = kindViews.host({ nowMs: cli.clock.nowMs(), usageByHost, inventories, hostTokens });
          await printList(cli, output, { items: items.sort(byName), columns, empty });
        });
      },
    );
}

function byName(a: Host, b: Host): number {
  return a.metadata.name.localeCompare(b.metadata.name);
}

async function usageOf(client: UserClient): Promise<Map<string, HostUsage>> {
  const found = new Map<string, HostUsage>();
  let next: string | undefined;
  do {
    const page = await client.usage({ limit: 5_000, ...(next === undefined ? {} : { continue: next }) });
    for (const usage of page.items) found.set(usage.host, usage);
    next = page.continue;
  } while (next !== undefined);
  return found;
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one host with everything that it reported')
    .argument('<host>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      const [host, held, inventories] = await attempting(
        `show host "${name}"`,
        async () => {
          const found = await client.get('host', name);
          const providers = await client.providers(found.metadata.name);
          return [found, providers, await inventoriesOf(client, [found])] as const;
        },
        advice,
      );
      if (output === 'json' || output === 'yaml') return printValue(cli, output, { ...host, ...held });
      cli.stdout.write(`${hostLines(host, held, { nowMs: cli.clock.nowMs(), inventories }).join('\n')}\n`);
    });
}

function credentialText({ credential }: Host['status']): string | undefined {
  return credential === 'host-token'
    ? 'a host token, which never expires; "berth agent join" replaces it by a certificate'
    : credential;
}

/** Only when its agent claims more than is counted. */
function limitLines({ conditions }: Host['status']): [string, string][] {
  return ['WithinLimits', 'OwnMachine'].flatMap((type): [string, string][] => {
    const condition = conditionOf(conditions, type);
    return condition?.status === 'False' ? [['', condition.message]] : [];
  });
}

/** Only while it is closed by a drain. */
function drainingLines({ conditions }: Host['status']): [string, string][] {
  const draining = conditionOf(conditions, 'Draining');
  return draining?.status === 'True' ? [['drained', draining.message]] : [];
}

function hostLines(host: Host, held: HostProviders, { nowMs, inventories }: ViewFacts): string[] {
  const { metadata, spec, status } = host;
  const ready = conditionOf(status.conditions, 'Ready');
  const capacity = Object.entries(status.capacity ?? {}).map(([resourceClass, measured]) => {
    const stated = spec.inventory?.[resourceClass];
    const total = stated?.total ?? measured;
    const percent = spec.reserved?.[resourceClass] === undefined ? stated?.reservedPercent : undefined;
    const kept = reservedOf(spec, { resourceClass, total, measuredReserve: status.reserved ?? {} });
    const share = percent === undefined ? '' : `, ${percent} %`;
    return `${amountText(resourceClass, total)}${kept ? ` (${amountText(resourceClass, kept)} kept for the host${share})` : ''}`;
  });
  return fieldLines([
    ['name', metadata.name],
    ['state', `${hostStateName(host)}, for ${hostStateAge(host, nowMs)}`],
    ['down', status.down?.message],
    ['proof', status.down?.proof && `${status.down.proof.kind}: ${status.down.proof.message}`],
    [
      'ready',
      ready
        ? `${ready.status === 'True' ? 'yes' : 'no'}, for ${age(nowMs - ready.sinceMs)}: ${ready.message}`
        : 'no: its agent has never registered',
    ],
    ['paused', spec.paused ? 'yes: nothing new is placed here' : 'no'],
    ...drainingLines(status),
    ['pool', spec.pool],
    ...purposeLines(spec, status),
    [
      'labels',
      Object.entries(metadata.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(', '),
    ],
    ...originLines(status, inventories, nowMs),
    ['address', status.address],
    ['credential', credentialText(status)],
    ['architecture', status.architecture],
    ...capacity.map((line, index): [string, string] => [index === 0 ? 'capacity' : '', line]),
    ...limitLines(status),
    ...overcommitLines(spec, held),
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
    ...(status.unknownVolumes ?? []).map((id): [string, string] => ['unknown', `volume ${id}: berth verify`]),
    ...status.unknownGuests.map(({ instanceId, driver, state }): [string, string] => [
      'unknown',
      `guest ${instanceId} (${driver}, ${state})`,
    ]),
    ...providerLines(held),
    ...heldLines(held),
    ['agent', status.agentVersion === undefined ? undefined : `${status.agentVersion}, session ${status.epoch}`],
    ['age', age(nowMs - metadata.createdAtMs)],
  ]);
}

/** From the ledger, so ratios of the pool or the fleet are included. */
function overcommitLines(spec: Host['spec'], { providers }: HostProviders): [string, string][] {
  const [root] = providers;
  const ratios = root
    ? Object.entries(root.inventories).map(([key, { allocationRatio }]): [string, number] => [key, allocationRatio])
    : Object.entries(spec.allocationRatios);
  return ratios.filter(([, ratio]) => ratio !== 1).map(([key, ratio]) => ['overcommit', `${key} × ${ratio}`]);
}

/** Which instances may use the host. */
function purposeLines(spec: Host['spec'], status: Host['status']): [string, string | undefined][] {
  const controlPlane = spec.controlPlane ?? status.controlPlane === 'excluded';
  return [
    [
      'dedicated',
      spec.dedicatedTo === undefined
        ? spec.dedicated
          ? 'to instances that request it'
          : undefined
        : `to project ${spec.dedicatedTo}${spec.dedicated ? ', on request' : ''}`,
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

/** `host: 3/8 CPUs, 4 GiB/16 GiB memory`; then each device and cell. */
function providerLines({ providers }: HostProviders): [string, string][] {
  return providers.map(({ parent, id, inventories }, index) => {
    const held = Object.entries(inventories).map(
      ([resourceClass, { used, capacity }]) =>
        `${amountText(resourceClass, used)} of ${amountText(resourceClass, capacity)}`,
    );
    const name = parent === undefined ? '' : `${id.slice(id.indexOf('.') + 1)}: `;
    return [index === 0 ? 'held' : '', `${name}${held.join(', ')}`];
  });
}

/** The allocations, one per line. */
function heldLines({ allocations }: HostProviders): [string, string][] {
  if (allocations.length === 0) return [['instances', 'none']];
  return allocations.map(({ kind, project, name, amounts }, index) => {
    const sums = new Map<string, number>();
    for (const each of Object.values(amounts))
      for (const [resourceClass, amount] of Object.entries(each))
        sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + amount);
    const held = [...sums].map(([resourceClass, amount]) => amountText(resourceClass, amount)).join(', ');
    const who = `${project === 'default' ? '' : `${project}/`}${name}${kind === 'instance' ? '' : ` (${kind})`}`;
    return [index === 0 ? 'instances' : '', `${who}  ${held || 'nothing'}`];
  });
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create a host before its agent connects, or allow a removed host to return')
    .argument('<name>')
    .option('--pool <pool>', 'add it to this pool')
    .option('--label <key=value>', 'label of the host; may be repeated', collect, [])
    .option('--paused', 'create it paused: nothing is placed on it before it is resumed')
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
        cli.stdout.write(`host ${name} created; its agent can now register\n`);
      },
    );
}

function poolCommand(cli: Cli): Command {
  return new Command('pool')
    .description('Add a host to a pool, or remove it from its pool')
    .argument('<host>')
    .argument('[pool]', 'berth pool ls')
    .option('--none', 'remove it from its pool')
    .action(async (name: string, pool: string | undefined, { none }: { none?: true }, command: Command) => {
      if ((pool === undefined) !== (none === true))
        throw usageError(
          'give either a pool or --none',
          `berth host pool ${name} POOL; "berth host show ${name}" shows its pool`,
        );
      const { client } = await openSession(cli, command);
      const change = ({ spec: { pool: _former, ...spec } }: Host): Host['spec'] =>
        pool === undefined ? spec : { ...spec, pool };
      if (pool !== undefined) await assertPool(client, pool);
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
          async () => {
            const changed = await replace(client, { kind: 'host', name, change });
            if (!paused) await openAfterDrain(client, changed);
            return changed;
          },
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
    .option('--force', 'also when it has instances: they fail; only for a host that will never return')
    .action(async (names: readonly string[], { force }: { force?: true }, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove host "${name}"`, () => client.delete('host', name, force ? { force } : {}), advice);
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
