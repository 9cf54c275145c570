// `berth job ...`: programs that run once, each in a fresh instance.

import { Command, Option } from 'commander';
import type { Job } from '../../api/resources/job.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { listAll } from '../print/follow.ts';
import { nothingFound } from '../print/nothing-found.ts';
import { type Column, type Format, printList, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { watchList } from '../print/watch-list.ts';
import { openSession } from '../session.ts';
import { artifactsCommand } from './job-artifacts.ts';
import { logsCommand } from './job-logs.ts';
import { runCommand } from './job-run.ts';
import { byAge, jobLines } from './job-view.ts';

export function jobCommand(cli: Cli): Command {
  return new Command('job')
    .description('Jobs: run a command once in a fresh instance, show, cancel, retry')
    .addCommand(runCommand(cli))
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(logsCommand(cli))
    .addCommand(artifactsCommand(cli))
    .addCommand(cancelCommand(cli))
    .addCommand(retryCommand(cli))
    .addCommand(rmCommand(cli));
}

const notFound = { NotFound: '"berth job ls" shows the jobs' };

interface LsOptions {
  readonly output: Format;
  readonly watch?: true;
  readonly selector?: string;
  readonly allProjects?: true;
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show jobs, the newest last; LEFT: how long the instance of a failed job stays')
    .option('-w, --watch', 'show changes until Ctrl-C')
    .option('-l, --selector <selector>', 'only jobs with these labels: team=web,!nightly')
    .option('-A, --all-projects', 'of every project')
    .addOption(outputOption('list'))
    .addOption(new Option('--wide', 'show every column, and full reasons, like -o wide').implies({ output: 'wide' }))
    .action(async ({ output, watch, selector, allProjects }: LsOptions, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const query = { ...(allProjects ? {} : { project }), ...(selector === undefined ? {} : { selector }) };
      const columns = (nowMs: number): Column<Job>[] => [
        ...(allProjects ? [{ header: 'PROJECT', value: ({ metadata }: Job) => metadata.project }] : []),
        ...kindViews.job({ nowMs }),
      ];
      const otherwise = 'no jobs; run one: berth job run LABEL -- COMMAND';
      const empty = nothingFound('jobs', { selector, otherwise });
      await attempting('list jobs', async () => {
        if (watch) return watchList(cli, client, { kind: 'job', query, format: output, columns, sort: byAge, empty });
        const { items } = await listAll(client, 'job', query);
        await printList(cli, output, { items: items.sort(byAge), columns: columns(cli.clock.nowMs()), empty });
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show the state of a job, its attempts and its instance')
    .argument('<job>')
    .addOption(outputOption('one'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const job = await attempting(`show job "${name}"`, () => client.get('job', name, { project }), notFound);
      if (output === 'json' || output === 'yaml') return printValue(cli, output, job);
      if (output === 'name') return printNames(cli, [job]);
      cli.stdout.write(`${jobLines(job, cli.clock.nowMs()).join('\n')}\n`);
    });
}

function cancelCommand(cli: Cli): Command {
  return new Command('cancel')
    .description('Cancel jobs: SIGTERM, after a grace period SIGKILL, and their instances are removed')
    .argument('<job...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        const { status } = await attempting(`cancel job "${name}"`, () => client.cancelJob(name, { project }), {
          ...notFound,
          Conflict: `see: berth job show ${name}`,
        });
        cli.stdout.write(`${name} ${status.phase === 'Cancelled' ? 'is cancelled' : 'is being cancelled'}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function retryCommand(cli: Cli): Command {
  return new Command('retry')
    .description('Create a new job with the settings of one that has ended')
    .argument('<job>')
    .addOption(outputOption('one'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const job = await attempting(`retry job "${name}"`, () => client.retryJob(name, { project }), {
        ...notFound,
        Conflict: `end it first: berth job cancel ${name}`,
      });
      if (output === 'json' || output === 'yaml') return printValue(cli, output, job);
      printNames(cli, [job]);
      if (cli.stderr.isTTY) cli.stderr.write(`accepted; follow it with: berth job logs -f ${job.metadata.name}\n`);
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove jobs, with their logs and artifacts; what has not ended is cancelled first')
    .argument('<job...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove job "${name}"`, () => client.delete('job', name, { project }), notFound);
        cli.stdout.write(`${name} is being removed\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
