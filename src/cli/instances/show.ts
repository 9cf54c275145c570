// `berth show NAME`: one instance on a page. `-o json|yaml` is for programs; secrets are shown by `berth get` only.

import { Command } from 'commander';
import { expiryOf } from '../../api/instances/lifetime.ts';
import { bootOf, bootText } from '../../api/instances/firmware.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { addressOf, isReady, portLines, reasonOf } from './instance-view.ts';
import { type Format, fieldLines, printNames, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { age, memory } from '../options/units.ts';
import { seeInstances } from './instance-advice.ts';

export function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show the status, host and settings of an instance')
    .argument('<instance>')
    .addOption(outputOption('one'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const instance = await attempting(`show instance "${name}"`, () => client.get('instance', name, { project }), {
        NotFound: seeInstances,
      });
      if (output === 'json' || output === 'yaml') return printValue(cli, output, instance);
      if (output === 'name') return printNames(cli, [instance]);
      cli.stdout.write(`${instanceLines(instance, cli.clock.nowMs()).join('\n')}\n`);
    });
}

function expiryText(instance: Instance, nowMs: number): string | undefined {
  const atMs = expiryOf(instance);
  return atMs === undefined ? undefined : `${new Date(atMs).toISOString()}, in ${age(Math.max(0, atMs - nowMs))}`;
}

function replacedText({ host, proof }: NonNullable<Instance['status']['replaced']>): string {
  return `a copy on ${host}, ${proof ? `${proof.kind}: ${proof.message}` : 'which may still run there'}`;
}

function instanceLines(instance: Instance, nowMs: number): string[] {
  const { metadata, spec, status } = instance;
  const cpus = status.assigned?.['VCPU'] ?? spec.cpus;
  const memoryMiB = status.assigned?.['MEMORY_MB'] ?? spec.memoryMiB;
  return [
    `${metadata.name}  ${status.phase}${isReady(instance) ? ', ready' : ''}`,
    ...fieldLines(
      [
        ['why', reasonOf(instance)],
        ['host', status.host],
        ['address', addressOf(instance)],
        ...portLines(instance).map((line): [string, string] => ['port', line]),
        ['image', spec.image],
        ['boot', bootText(status.boot ?? bootOf(spec, undefined))],
        ['cpus', cpus === undefined ? undefined : String(Number(cpus.toFixed(3)))],
        ['memory', memoryMiB === undefined ? undefined : memory(memoryMiB)],
        ...(spec.volumes ?? []).map(({ name, readOnly }): [string, string] => [
          'volume',
          `${name}${readOnly ? ', read only' : ''}`,
        ]),
        ...Object.entries(metadata.labels).map(([key, value]): [string, string] => ['label', `${key}=${value}`]),
        ['restarts', status.restartCount === 0 ? undefined : String(status.restartCount)],
        ['host loss', spec.onHostLoss && `${spec.onHostLoss}${spec.selfStop ? ', with self-stop' : ''}`],
        ['replaces', status.replaced && replacedText(status.replaced)],
        ['expires', expiryText(instance, nowMs)],
        ['protected', spec.protected === true ? 'from deletion' : undefined],
        ['age', age(nowMs - metadata.createdAtMs)],
        [
          'more',
          `berth explain ${metadata.name}, berth events ${metadata.name}, berth get instance ${metadata.name} -o yaml`,
        ],
      ],
      '  ',
    ),
  ];
}
