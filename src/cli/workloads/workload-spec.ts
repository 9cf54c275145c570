// `berth workload create` and `update`: the template is given by the options of `berth run`.

import { Command } from 'commander';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import type { RolloutPlan } from '../../api/plans/rollout-plan.ts';
import type { Workload, WorkloadSpec, WorkloadStrategy } from '../../api/resources/workload.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { hasNeighbourRules } from '../options/neighbour-options.ts';
import { type SpecOptions, specOf, withSpecOptions } from '../instances/run.ts';
import { parseDurationMs, parseInteger, parseLabels, parseMemoryMiB } from '../options/units.ts';
import { type Format, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { dryRunOfReplace, replace } from '../replace.ts';
import { openSession } from '../session.ts';
import { printRollout } from './rollout-lines.ts';
import { untilAvailable } from './workload-wait.ts';

interface StrategyOptions {
  readonly recreate?: true;
  readonly maxSurge?: string;
  readonly maxUnavailable?: string;
  readonly minHealthy?: string;
  readonly progressDeadline?: string;
  readonly autoRevert?: boolean;
}

interface CreateOptions extends SpecOptions, StrategyOptions {
  readonly replicas?: string;
  readonly perHost?: true;
  readonly wait?: true;
  readonly timeout?: string;
  readonly output: Format;
}

function withStrategy(command: Command): Command {
  return command
    .option('--recreate', 'update by removing all copies before new ones are created')
    .option('--max-surge <share>', 'copies above the wanted number during an update: 2, 25%; default: 25%')
    .option('--max-unavailable <share>', 'copies below the wanted number during an update; default: 25%')
    .option('--min-healthy <duration>', 'a copy counts when it has been ready for this long; default: 10s')
    .option('--progress-deadline <duration>', 'an update without progress for this long has failed; default: 10m')
    .option('--no-auto-revert', 'do not revert a failed update');
}

export function createCommand(cli: Cli): Command {
  const command = withSpecOptions(
    new Command('create').description('Create a workload of an image').argument('<workload>'),
  );
  return withStrategy(command)
    .option('--replicas <count>', 'number of copies; default: 1')
    .option('--per-host', 'one copy on each host that matches --pool and --host-label')
    .option('-w, --wait', 'wait until all copies are available')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('list'))
    .action(async (name: string, image: string, options: CreateOptions, called: Command) => {
      const template = apart(name, options, {
        labels: parseLabels('--label', options.label),
        spec: (await specOf(cli, image, options)) as InstanceSpec, // the server adds the defaults
      });
      const spec: Partial<WorkloadSpec> = {
        template,
        ...(options.perHost ? { perHost: true } : {}),
        ...(options.replicas === undefined ? {} : { replicas: replicasOf(options.replicas) }),
        strategy: strategyOf({}, options) as WorkloadStrategy, // the same
      };
      const session = await openSession(cli, called);
      const made = await attempting(
        `create workload "${name}"`,
        () => session.client.create('workload', { metadata: { name, project: session.project }, spec }),
        { AlreadyExists: `change it with "berth workload update ${name}"` },
      );
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      const workload = options.wait ? await untilAvailable(cli, session, made, timeoutMs) : made;
      if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, workload);
      printNames(cli, [workload]);
    });
}

/** Without rules about neighbours, the copies are spread over hosts as far as that is possible: a lost host should not take all of them. */
function apart(workload: string, options: CreateOptions, template: WorkloadSpec['template']): WorkloadSpec['template'] {
  const { spec } = template;
  if (options.perHost || hasNeighbourRules(spec.placement)) return template;
  const labels = Object.keys(template.labels).length === 0 ? { workload } : template.labels;
  const placement = { ...spec.placement, spread: [{ by: 'host', maxSkew: 1, required: false, among: labels }] };
  return { labels, spec: { ...spec, placement } };
}

interface UpdateOptions extends StrategyOptions {
  readonly dryRun?: true;
  readonly apply?: string;
  readonly output: Format;
  readonly image?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly size?: string;
  readonly wait?: true;
  readonly timeout?: string;
}

export function updateCommand(cli: Cli): Command {
  const command = new Command('update')
    .description('Change the template of a workload; its copies are replaced step by step')
    .argument('<workload>')
    .option('--image <image>', 'another image')
    .option('--size <size>', 'another size')
    .option('--cpus <count>', 'other CPUs')
    .option('--memory <amount>', 'other memory: 2GiB');
  return withStrategy(command)
    .option('--dry-run', 'only show the plan: what changes, and which copies are replaced')
    .option('--apply <hash>', 'carry out the plan with this hash, with the same options; refused when it has changed')
    .option('-w, --wait', 'wait until all copies are updated and available')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .addOption(outputOption('value'))
    .addHelpText('after', '\nOther fields are changed with "berth apply"; "berth workload show NAME" prints them all.')
    .action(async (name: string, options: UpdateOptions, called: Command) => {
      const { dryRun, apply, output } = options;
      if (apply !== undefined && dryRun) throw usageError('give only one of --dry-run and --apply');
      const given = called.options.filter((each) => called.getOptionValueSource(each.attributeName()) === 'cli');
      if (!given.some((each) => !planOptions.has(each.attributeName())))
        throw usageError(
          `no change of workload "${name}" is given`,
          '"berth workload update --help" shows the options',
        );
      const changes = templateChanges(options);
      const session = await openSession(cli, called);
      const { client, project } = session;
      const replacement = {
        ...({ kind: 'workload', name, project } as const),
        change: ({ spec }: Workload) => ({
          ...spec,
          template: { ...spec.template, spec: { ...spec.template.spec, ...changes } },
          strategy: strategyOf(spec.strategy, options) as WorkloadStrategy, // it was whole
        }),
      };
      const changed: Workload & { readonly rollout?: RolloutPlan } = await attempting(
        `update workload "${name}"`,
        () =>
          dryRun
            ? dryRunOfReplace(client, replacement)
            : replace(client, { ...replacement, ...(apply ? { apply } : {}) }),
        { NotFound: '"berth workload ls" shows the workloads' },
      );
      if (dryRun) return printRollout(cli, output, changed, called);
      const timeoutMs = options.timeout === undefined ? undefined : parseDurationMs('--timeout', options.timeout);
      const seen = options.wait ? await untilAvailable(cli, session, changed, timeoutMs) : changed;
      if (output === 'json' || output === 'yaml') return printValue(cli, output, seen);
      cli.stdout.write(`workload ${name}: revision ${changed.status.revision}${options.wait ? ' is available' : ''}\n`);
    });
}

/** Options of `update` that change nothing. */
const planOptions: ReadonlySet<string> = new Set(['dryRun', 'apply', 'wait', 'timeout', 'output']);

function templateChanges({ image, size, cpus, memory }: UpdateOptions): Partial<InstanceSpec> {
  return {
    ...(image === undefined ? {} : { image }),
    ...(size === undefined ? {} : { size }),
    ...(cpus === undefined ? {} : { cpus: parseInteger('--cpus', cpus, { min: 1, max: 1024 }) }),
    ...(memory === undefined ? {} : { memoryMiB: parseMemoryMiB(memory, '--memory') }),
  };
}

function strategyOf(before: Partial<WorkloadStrategy>, options: StrategyOptions): Partial<WorkloadStrategy> {
  const { maxSurge, maxUnavailable, minHealthy, progressDeadline } = options;
  return {
    ...before,
    ...(options.recreate ? { type: 'Recreate' } : {}),
    ...(maxSurge === undefined ? {} : { maxSurge: shareOf('--max-surge', maxSurge) }),
    ...(maxUnavailable === undefined ? {} : { maxUnavailable: shareOf('--max-unavailable', maxUnavailable) }),
    ...(minHealthy === undefined ? {} : { minHealthyMs: parseDurationMs('--min-healthy', minHealthy) }),
    ...(progressDeadline === undefined
      ? {}
      : { progressDeadlineMs: parseDurationMs('--progress-deadline', progressDeadline) }),
    ...(options.autoRevert === false ? { autoRevert: false } : {}),
  };
}

function shareOf(option: string, text: string): number | string {
  return /^\d{1,4}%$/.test(text) ? text : parseInteger(option, text, { min: 0, max: 100_000 });
}

function replicasOf(text: string): number {
  return parseInteger('--replicas', text, { min: 0, max: 100_000 });
}
