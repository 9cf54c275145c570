// `berth group ...`: placement groups, and whether their instances satisfy the rules now.

import { Command } from 'commander';
import type { Group, GroupSpec } from '../../api/resources/group.ts';
import type { GroupRule } from '../../api/resources/placement-rules.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { listAll } from '../print/follow.ts';
import { brokenRules } from './group-rules.ts';
import { kindViews } from '../kinds.ts';
import { parseMaxPerHost, parseSpread } from '../options/neighbour-options.ts';
import { type Column, type Format, printList } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { removeUsed } from './remove-used.ts';
import { openSession } from '../session.ts';

interface CreateOptions {
  readonly affinity?: string;
  readonly antiAffinity?: string;
  readonly spread?: string;
  readonly maxPerHost?: string;
  readonly description: string;
}

export function groupCommand(cli: Cli): Command {
  return new Command('group')
    .description('Placement groups: rules for placing instances together or apart')
    .addCommand(lsCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all placement groups, and whether their instances meet the rules now')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const [groups, instances, hosts] = await attempting('list placement groups', () =>
        Promise.all([
          listAll(client, 'group', { project }),
          listAll(client, 'instance', { project }),
          listAll(client, 'host'),
        ]),
      );
      const membersOf = ({ metadata: { name } }: Group) =>
        instances.items.filter(({ spec }) => spec.placement.group === name);
      const columns: Column<Group>[] = [
        { header: 'INSTANCES', value: (group) => String(membersOf(group).length), right: true },
        {
          header: 'KEPT',
          value: (group) => brokenRules(group.spec, membersOf(group), hosts.items)[0] ?? 'yes',
          paint: (cell, _group, colours) => (cell.trim() === 'yes' ? colours.green(cell) : colours.yellow(cell)),
        },
      ];
      const [name, rules, ...others] = kindViews.group({ nowMs: cli.clock.nowMs() });
      await printList(cli, output, {
        items: groups.items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
        columns: [name, rules, ...columns, ...others].filter((column) => column !== undefined),
        empty: 'no placement groups; create one: berth group create web --anti-affinity host',
      });
    });
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Create a placement group; berth run --group NAME adds instances to it')
    .argument('<name>')
    .option('--affinity <key>', 'place all together: host, or a host label; host:soft makes it a preference')
    .option('--anti-affinity <key>', 'place each apart: host, or a host label; zone:soft makes it a preference')
    .option(
      '--spread <rule>',
      'spread evenly over the values of a host label: zone, zone:2 for a skew of 2, zone:1:soft',
    )
    .option('--max-per-host <count>', 'at most this many on one host')
    .option('--description <text>', 'free text', '')
    .action(async (name: string, options: CreateOptions, command: Command) => {
      const spec = specOf(options);
      const { client, project } = await openSession(cli, command);
      await attempting(`create placement group "${name}"`, () =>
        client.create('group', { metadata: { name, project }, spec }),
      );
      cli.stdout.write(`group ${name} created\n`);
    });
}

function specOf({ affinity, antiAffinity, spread, maxPerHost, description }: CreateOptions): GroupSpec {
  return {
    description,
    ...(affinity === undefined ? {} : { affinity: parseRule('--affinity', affinity) }),
    ...(antiAffinity === undefined ? {} : { antiAffinity: parseRule('--anti-affinity', antiAffinity) }),
    ...(spread === undefined ? {} : { spread: parseSpread(spread) }),
    ...(maxPerHost === undefined ? {} : { maxPerHost: parseMaxPerHost(maxPerHost) }),
  };
}

/** `host`, `zone:soft`. */
function parseRule(flag: string, text: string): GroupRule {
  const match = /^([^:=]+)(:soft)?$/.exec(text);
  if (!match) throw usageError(`${flag} cannot be "${text}"`, 'write host, or a label of hosts: zone, zone:soft');
  return { by: match[1] ?? '', required: match[2] === undefined };
}

function rmCommand(cli: Cli): Command {
  const command = new Command('rm').description('Remove empty placement groups').argument('<group...>');
  return removeUsed(cli, command, {
    kind: 'group',
    word: 'placement group',
    advice: { NotFound: '"berth group ls" shows the placement groups' },
  });
}
