// `berth job-template`: jobs that are created on request or at times.

import { Command } from 'commander';
import type { JobSpec } from '../../api/resources/job.ts';
import type { JobSchedule, JobTemplateSpec } from '../../api/resources/job-template.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { show } from '../get.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { oneOf } from '../options/place-options.ts';
import { collect, parseDurationMs, parseLabels } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';
import { type JobOptions, jobOf, withJobOptions } from './job-options.ts';
import { argumentsOf, runOrDetach } from './job-run.ts';

const unknown = { NotFound: '"berth job-template ls" shows the job templates' };
const overlaps = ['skip', 'allow', 'replace'] as const;

export function jobTemplateCommand(cli: Cli): Command {
  const command = new Command('job-template').description(
    'Job templates: jobs that are created on request or at times',
  );
  for (const make of [createCommand, runCommand, lsCommand, showCommand, pauseCommand, resumeCommand, rmCommand])
    command.addCommand(make(cli));
  return command;
}

interface CreateOptions extends JobOptions {
  readonly cron?: string;
  readonly timeZone?: string;
  readonly overlap?: string;
  readonly catchUp?: string;
  readonly parameter: readonly string[];
  readonly output: Format;
}

function createCommand(cli: Cli): Command {
  return withJobOptions(new Command('create').description('Create a job template').argument('<job-template>'))
    .option('--cron <times>', 'create a job at these times: "0 3 * * 1-5" is 3:00 from Monday to Friday')
    .option('--time-zone <zone>', 'of --cron: UTC, Europe/Berlin; default: UTC')
    .option(
      '--overlap <rule>',
      'while the previous scheduled job has not ended: skip, allow, or replace (cancel it); default: skip',
    )
    .option('--catch-up <duration>', 'make up the newest time that was missed by less than this; default: 10m')
    .option(
      '--parameter <name[=default]>',
      'an environment variable that "run" may set, and must set without a default; may be repeated',
      collect,
      [],
    )
    .addOption(outputOption('one'))
    .action(
      async (
        name: string,
        first: string | undefined,
        rest: readonly string[],
        options: CreateOptions,
        command: Command,
      ) => {
        const words = argumentsOf(command, first === undefined ? [] : [first, ...rest]);
        const { labels, spec: job } = await jobOf(cli, words, options);
        const schedule = scheduleOf(options);
        const spec: Partial<JobTemplateSpec> = {
          template: { labels, spec: job as JobSpec }, // the server adds the defaults
          ...(options.parameter.length === 0 ? {} : { parameters: options.parameter.map(parameterOf) }),
          ...(schedule === undefined ? {} : { schedule }),
        };
        const session = await openSession(cli, command);
        const made = await attempting(
          `create job template "${name}"`,
          () => session.client.create('jobTemplate', { metadata: { name, project: session.project }, spec }),
          { AlreadyExists: 'change it with "berth apply", or remove it: berth job-template rm NAME' },
        );
        if (options.output === 'json' || options.output === 'yaml') return printValue(cli, options.output, made);
        printNames(cli, [made]);
      },
    );
}

function scheduleOf({ cron, timeZone, overlap, catchUp }: CreateOptions): JobSchedule | undefined {
  if (cron === undefined) {
    for (const [option, value] of Object.entries({
      '--time-zone': timeZone,
      '--overlap': overlap,
      '--catch-up': catchUp,
    }))
      if (value !== undefined) throw usageError(`${option} needs --cron`, 'write --cron "0 3 * * *"');
    return undefined;
  }
  const schedule = {
    cron,
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(overlap === undefined ? {} : { overlap: oneOf('--overlap', overlap, overlaps) }),
    ...(catchUp === undefined ? {} : { catchUpMs: parseDurationMs('--catch-up', catchUp) }),
  };
  return schedule as JobSchedule; // the server adds the defaults
}

/** `MODE=full`, `BRANCH`. */
function parameterOf(text: string): JobTemplateSpec['parameters'][number] {
  const at = text.indexOf('=');
  return at < 0 ? { name: text } : { name: text.slice(0, at), default: text.slice(at + 1) };
}

interface RunOptions {
  readonly name?: string;
  readonly parameter: readonly string[];
  readonly label: readonly string[];
  readonly detach?: true;
  readonly timestamps?: true;
  readonly idempotencyKey?: string;
  readonly output: Format;
}

function runCommand(cli: Cli): Command {
  return new Command('run')
    .description('Run a job of a template now; as "berth job run" does')
    .argument('<job-template>')
    .option('-p, --parameter <name=value>', 'value of a parameter; may be repeated', collect, [])
    .option('-n, --name <name>', 'name of the job; default: made from that of the template')
    .option('-l, --label <key=value>', 'label of the job; may be repeated', collect, [])
    .option('--detach', 'print the name of the job and do not wait for it')
    .option('--timestamps', 'print the time before each line')
    .option('--idempotency-key <key>', 'repeating a request with the same key creates no second job')
    .addOption(outputOption('one'))
    .action(async (template: string, options: RunOptions, command: Command) => {
      if (options.output !== 'table' && !options.detach) throw usageError('-o needs --detach');
      const { name, idempotencyKey } = options;
      const body = {
        metadata: { ...(name === undefined ? {} : { name }), labels: parseLabels('--label', options.label) },
        spec: { parameters: Object.fromEntries(options.parameter.map(valueOf)) },
      };
      const session = await openSession(cli, command);
      const job = await attempting(
        `run job template "${template}"`,
        () =>
          session.client.runJobTemplate(template, body, {
            project: session.project,
            ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
          }),
        { ...unknown, AlreadyExists: 'choose another --name, or remove the existing one: berth job rm NAME' },
      );
      await runOrDetach(cli, session, job, options);
    });
}

function valueOf(text: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw usageError(`--parameter cannot be "${text}"`, 'write a name and its value: MODE=full');
  return [text.slice(0, at), text.slice(at + 1)];
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all job templates of the project, with the next and the last job of their schedules')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list job templates', () => listAll(client, 'jobTemplate', { project }));
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      await printList(cli, output, {
        items,
        columns: kindViews.jobTemplate({ nowMs: cli.clock.nowMs() }),
        empty: 'no job templates; create one: berth job-template create NAME LABEL --cron "0 3 * * *" -- COMMAND',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show a job template as it is stored')
    .argument('<job-template>')
    .addOption(outputOption('one', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'jobTemplate', { name, format: output }),
    );
}

function pauseCommand(cli: Cli): Command {
  return pausing(cli, {
    verb: 'pause',
    paused: true,
    description: 'Create no jobs by the schedule; "run" still works',
  });
}

function resumeCommand(cli: Cli): Command {
  const description = 'Follow the schedule again, from now; missed times are not made up';
  return pausing(cli, { verb: 'resume', paused: false, description });
}

interface Pausing {
  readonly verb: string;
  readonly paused: boolean;
  readonly description: string;
}

function pausing(cli: Cli, { verb, paused, description }: Pausing): Command {
  return new Command(verb)
    .description(description)
    .argument('<job-template...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        const change = { kind: 'jobTemplate', name, project } as const;
        await attempting(
          `${verb} job template "${name}"`,
          () => replace(client, { ...change, change: ({ spec }) => ({ ...spec, paused }) }),
          unknown,
        );
        cli.stdout.write(`${name} ${paused ? 'is paused' : 'follows its schedule'}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove job templates; their jobs stay')
    .argument('<job-template...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(
          `remove job template "${name}"`,
          () => client.delete('jobTemplate', name, { project }),
          unknown,
        );
        cli.stdout.write(`${name} removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
