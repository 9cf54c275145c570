import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import type { Cli } from '../cli.ts';
import { fieldRows } from './field-options.ts';
import { commandEntries } from '../registry.ts';
import { refusal, runBerth } from '../testing.ts';

const none: unknown = {};
const commands: Command[] = [];
for (const { load } of commandEntries) {
  const make = await load();
  commands.push(...withChildren(make(none as Cli))); // options and arguments only: nothing is run
}

function withChildren(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withChildren)];
}

const known = new Set(
  commands.flatMap((command) => [
    ...command.options.map(({ long }) => long),
    ...command.registeredArguments.map((argument) => `<${argument.name()}>`),
  ]),
);

describe('the table of fields and options', () => {
  it('names options that commands have', () => {
    expect(fieldRows.flatMap(({ names }) => names).filter((name) => !known.has(name))).toEqual([]);
  });

  it('has each field once', () => {
    const fields = fieldRows.map(({ field }) => field);
    expect(fields).toEqual([...new Set(fields)]);
  });
});

/** What is said of a refusal with this message, and perhaps this field. */
const said = async (line: string, message: string, field?: string): Promise<string> => {
  const { stderr } = await runBerth(line.split(' '), {
    handler: () => refusal(400, 'InvalidRequest', message, field),
  });
  return stderr.split('\n')[0] ?? '';
};

describe("a refusal in the command's own words", () => {
  it.each([
    ['run tiny -m 17MiB', 'spec.memoryMiB must be >= 32', '--memory must be >= 32 MiB'],
    ['run tiny -d 1GiB', 'spec.diskGiB must be <= 8', '--disk must be <= 8 GiB'],
    ['run tiny', 'spec.memoryMiB is missing', '--memory is missing'],
    [
      'run tiny --resource CUSTOM_A=1 --gpus 1',
      'CUSTOM_A is asked for by spec.gpus and by spec.resources.CUSTOM_A; leave one',
      'CUSTOM_A is asked for by --gpus and by --resource CUSTOM_A; leave one',
    ],
    ['run tiny -p 80:80 -p 81:81', 'spec.ports[1].hostPort is taken', '--publish 81:81 is taken'],
    ['run tiny', 'spec.containers[0].env.A is too long', '--env A is too long'],
    ['run tiny --host-label zone=a', 'spec.placement.hostLabels.zone excludes all', '--host-label zone excludes all'],
    ['run tiny', 'spec.unheardOf is not known', 'spec.unheardOf is not known'],
    ['plan run tiny', 'spec.numaCells must be <= 16', '--numa-cells must be <= 16'],
    ['candidates', 'spec.placement.pool: there is none', '--pool: there is none'],
    ['reserve --for 5m', 'spec.ttlMs must be <= 10', '--for must be <= 10'],
    ['size create s --cpus 1 --memory 1GiB', 'spec.memoryMiB must be >= 32', '--memory must be >= 32 MiB'],
    ['image add a --source file:///a', 'spec.defaults.memoryMiB must be >= 9', '--memory must be >= 9 MiB'],
    ['pool create p', 'spec.defaults.memoryMiB must be >= 9', '--default-memory must be >= 9 MiB'],
    ['project create p', 'spec.quota.VCPU is too much', '--quota VCPU is too much'],
    ['volume create v -s 1GiB', 'spec.sizeGiB must be <= 8', '--size must be <= 8 GiB'],
    ['group create Group', 'metadata.name must be: a name', '<name> must be: a name'],
    ['host drain h', 'deadlineMs must be <= 2592000000', '--deadline must be <= 30d'],
    ['host drain h', 'deadlineMs must be >= 500', '--deadline must be >= 500ms'],
    ['host drain h', 'apply must not have fewer than 8 characters', '--apply must not have fewer than 8 characters'],
    ['host drain h', 'it cannot apply here', 'it cannot apply here'],
    ['ps', 'spec.memoryMiB is no field of a list', 'spec.memoryMiB is no field of a list'],
  ])('berth %s: %s', async (line, message, expected) => {
    expect(await said(line, message)).toMatch(new RegExp(`: ${expected.replaceAll(/[[\].]/g, String.raw`\$&`)}$`));
  });

  it('names the option where the message names no field', async () => {
    expect(await said('run tiny --pool a', 'there is no pool "a"', 'spec.placement.pool')).toMatch(
      /there is no pool "a" \(--pool\)$/,
    );
    expect(await said('run tiny --cpus 0.5', 'a virtual machine has whole CPUs', 'spec.containers[0].cpus')).toMatch(
      /whole CPUs \(--cpus\)$/,
    );
    expect(await said('workload undo web --to 7', 'there is no revision 7', 'to')).toMatch(/revision 7 \(--to\)$/);
  });

  it.each(['json', 'yaml'])("keeps the API's path with -o %s", async (format) => {
    expect(await said(`run tiny -o ${format}`, 'spec.memoryMiB must be >= 32')).toContain('spec.memoryMiB must be');
  });

  it('leaves alone what a command says itself', async () => {
    const { stderr } = await runBerth(['run', 'tiny', '-l', 'spec.memoryMiB']);
    expect(stderr).toContain('--label cannot be "spec.memoryMiB"');
  });
});
