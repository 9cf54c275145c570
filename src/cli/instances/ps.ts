// `berth ps`: the instances, once or as they change.

import { Command, Option } from 'commander';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { instanceColumns } from './instance-view.ts';
import { type Format, printList } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { nothingFound } from '../print/nothing-found.ts';
import { openSession } from '../session.ts';
import { watchList } from '../print/watch-list.ts';

interface PsOptions {
  readonly output: Format;
  readonly watch?: true;
  readonly selector?: string;
  readonly allProjects?: true;
}

export function psCommand(cli: Cli): Command {
  return new Command('ps')
    .alias('ls')
    .description('Show instances')
    .option('-w, --watch', 'show changes until Ctrl-C')
    .option('-l, --selector <selector>', 'only instances with these labels: tier=web,zone!=a,!old')
    .option('-A, --all-projects', 'of every project')
    .addOption(outputOption('list'))
    .addOption(new Option('--wide', 'show every column, and full reasons, like -o wide').implies({ output: 'wide' }))
    .action(async ({ output, watch, selector, allProjects }: PsOptions, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const query = { ...(allProjects ? {} : { project }), ...(selector === undefined ? {} : { selector }) };
      const columns = (nowMs: number) => instanceColumns(nowMs, { project: allProjects === true });
      const where = allProjects || project === 'default' ? '' : ` in project "${project}"`;
      const otherwise = `no instances${where}; create one: berth run IMAGE`;
      const view = { columns, sort: byProjectAndName, empty: nothingFound('instances', { selector, otherwise }) };
      await attempting('list instances', async () => {
        if (watch) return watchList(cli, client, { kind: 'instance', query, format: output, ...view });
        const { items } = await listAll(client, 'instance', query);
        await printList(cli, output, {
          items: items.sort(byProjectAndName),
          columns: columns(cli.clock.nowMs()),
          empty: view.empty,
        });
      });
    });
}

function byProjectAndName(a: Instance, b: Instance): number {
  return a.metadata.project.localeCompare(b.metadata.project) || a.metadata.name.localeCompare(b.metadata.name);
}
