// `berth spare ...`: machines that are prepared ahead and held.

import { Command } from 'commander';
import { isEnded, type Spare, type SpareSpec } from '../../api/resources/spare.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { show } from '../get.ts';
import { conditionOf } from '../instances/instance-view.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { type Judge, waitForResource } from '../instances/wait.ts';
import { kindViews } from '../kinds.ts';
import { type PlaceOptions, placeOf, withPlaceOptions, withRoomOptions } from '../options/place-options.ts';
import { collect, parseDurationMs, parseInteger } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

export function spareCommand(cli: Cli): Command {
  return new Command('spare')
    .description('Spares: machines prepared ahead and held until they are needed')
    .addCommand(prepareCommand(cli))
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(releaseCommand(cli));
}

interface PrepareOptions extends PlaceOptions {
  readonly name?: string;
  readonly provisioner: string;
  readonly image?: string;
  readonly var: readonly string[];
  readonly for: string;
  readonly readyHttp?: string;
  readonly readyTcp?: string;
  readonly readyNode?: string;
  readonly readyTimeout: string;
  readonly attempts?: string;
  readonly queue?: true;
  readonly wait?: true;
  readonly timeout?: string;
  readonly output: Format;
}

function prepareCommand(cli: Cli): Command {
  const command = new Command('prepare')
    .description('Prepare a spare on a host with room')
    .requiredOption('--for <duration>', 'how long it is held, counted from when it is ready: 30m, 2h')
    .option('-n, --name <name>', 'its name; default: made from the time')
    .option('--provisioner <name>', 'vm: an instance of --image; or one of the configuration of the servers', 'vm')
    .option('--image <image>', 'of the instance')
    .option('--var <name=value>', 'for the provisioner; may be repeated', collect, []);
  return withPlaceOptions(withRoomOptions(command))
    .option('--ready-http <url>', 'it is ready when this answers 200 to 299; {address} stands for its address')
    .option('--ready-tcp <port>', 'it is ready when this port of it accepts connections')
    .option('--ready-node <cluster>', 'it is ready when it is a node of this cluster of Kubernetes, and Ready')
    .option('--ready-timeout <duration>', 'time until it must be ready', '10m')
    .option('--attempts <count>', 'attempts to prepare it; default: 3')
    .option('--queue', 'wait for room when no host has any, instead of failing')
    .option('-w, --wait', 'wait until it is ready')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('list'))
    .action(async (options: PrepareOptions, called: Command) => {
      const spec = specOf(options);
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      const session = await openSession(cli, called);
      const name = options.name ?? `spare-${Math.floor(cli.clock.nowMs()).toString(36)}`;
      const made = await attempting('prepare a spare', () =>
        session.client.create('spare', { metadata: { name, project: session.project }, spec }),
      );
      const { id } = made.metadata;
      const adviceAfter = (): string =>
        `it goes on; see "berth spare ls", or end it with "berth spare release ${name}"`;
      const spare = options.wait
        ? await waitForResource(cli, session, {
            kind: 'spare',
            id,
            name,
            timeoutMs,
            judge: untilReady(name),
            adviceAfter,
          })
        : made;
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, spare);
      if (!options.wait || options.output === 'name') return printNames(cli, [spare]);
      const { host = '?', address } = spare.status;
      cli.stdout.write(`${name} is ready on ${host}${address === undefined ? '' : `, at ${address}`}\n`);
    });
}

function specOf(options: PrepareOptions): Partial<SpareSpec> & Pick<SpareSpec, 'provisioner' | 'ttlMs'> {
  const ready = readyOf(options);
  return {
    ...placeOf(options),
    provisioner: options.provisioner,
    ttlMs: parseDurationMs('--for', options.for),
    ...(options.image === undefined ? {} : { image: options.image }),
    ...(options.var.length === 0 ? {} : { variables: Object.fromEntries(options.var.map(variableOf)) }),
    ...(ready === undefined ? {} : { ready }),
    ...(options.attempts === undefined
      ? {}
      : { attemptsMax: parseInteger('--attempts', options.attempts, { min: 1, max: 20 }) }),
    ...(options.queue ? { whenFull: 'wait' } : {}),
  };
}

function variableOf(pair: string): readonly [string, string] {
  const at = pair.indexOf('=');
  if (at <= 0) throw usageError(`--var ${pair} is not NAME=VALUE`);
  return [pair.slice(0, at), pair.slice(at + 1)];
}

function readyOf({ readyHttp, readyTcp, readyNode, readyTimeout }: PrepareOptions): SpareSpec['ready'] {
  if ([readyHttp, readyTcp, readyNode].filter((way) => way !== undefined).length > 1)
    throw usageError('only one of --ready-http, --ready-tcp and --ready-node can be given');
  const common = { timeoutMs: parseDurationMs('--ready-timeout', readyTimeout), periodMs: 5_000 };
  if (readyHttp !== undefined) return { http: { url: readyHttp }, ...common };
  if (readyTcp !== undefined)
    return { tcp: { port: parseInteger('--ready-tcp', readyTcp, { min: 1, max: 65_535 }) }, ...common };
  return readyNode === undefined ? undefined : { kubernetes: { cluster: readyNode }, ...common };
}

function untilReady(name: string): Judge<'spare', Spare> {
  return (spare) => {
    if (!spare) return { failed: `spare "${name}" was removed before it was ready` };
    const { phase, conditions } = spare.status;
    const why = conditionOf(conditions, 'Ready')?.message ?? '';
    if (phase === 'Ready') return { done: spare };
    if (isEnded(phase) || phase === 'Unknown') return { failed: `spare "${name}" will not be ready: ${why}` };
    return { waiting: `${phase}: ${why}` };
  };
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all spares of the project')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list spares', () => listAll(client, 'spare', { project }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.spare({ nowMs: cli.clock.nowMs() }),
        empty: 'no spares; prepare one: berth spare prepare --image IMAGE --for 1h',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a spare as it is stored')
    .argument('<spare>')
    .addOption(outputOption('one', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'spare', { name, format: output }),
    );
}

function releaseCommand(cli: Cli): Command {
  return new Command('release')
    .description('Undo the preparation of spares, and release their resources')
    .argument('<spare...>')
    .option('--force', 'without calling the provisioner: what it prepared stays, and its resources count as free')
    .action(async (names: readonly string[], { force }: { force?: true }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        const { status } = await attempting(
          `release spare "${name}"`,
          () => client.delete('spare', name, { project, ...(force ? { force } : {}) }),
          { NotFound: '"berth spare ls" shows the spares' },
        );
        cli.stdout.write(`${name} ${isEnded(status.phase) ? 'released' : 'is being released'}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
