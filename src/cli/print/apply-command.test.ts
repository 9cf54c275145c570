import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { applyCommand } from './apply-command.ts';

async function shown(words: readonly string[], names?: readonly string[]): Promise<string> {
  let text = '';
  const update = new Command('update')
    .argument('<workload>')
    .option('--image <image>')
    .option('--label <label>', 'may be repeated', (label, before: readonly string[]) => [...before, label], [])
    .option('--moves-max <count>', 'has a default', '2')
    .option('--recreate')
    .option('--no-auto-revert')
    .option('--dry-run')
    .option('-y, --yes')
    .option('-o, --output <format>')
    .action((_name: string, _flags: unknown, called: Command) => void (text = applyCommand(called, '4f2a', names)));
  const program = new Command('berth')
    .option('--project <project>')
    .option('--context <context>')
    .addCommand(new Command('workload').addCommand(update));
  await program.parseAsync(['workload', 'update', ...words], { from: 'user' });
  return text;
}

describe('the command that applies a plan', () => {
  it.each([
    ['names its command and its arguments', ['web'], 'berth workload update web --apply 4f2a'],
    ['leaves out defaults', ['web', '--dry-run'], 'berth workload update web --apply 4f2a'],
    [
      'repeats the options that were given',
      ['web', '--image', 'tiny', '--recreate', '--no-auto-revert', '--moves-max', '3'],
      'berth workload update web --image tiny --moves-max 3 --recreate --no-auto-revert --apply 4f2a',
    ],
    [
      'repeats each value of a repeatable option',
      ['web', '--label', 'a=1', '--label', 'b=2'],
      'berth workload update web --label a=1 --label b=2 --apply 4f2a',
    ],
    [
      'repeats the project and the context',
      ['web', '--project', 'ci', '--context', 'lab'],
      'berth workload update web --project ci --context lab --apply 4f2a',
    ],
    [
      'leaves out what says only what to do with the plan',
      ['web', '--dry-run', '-y', '-o', 'wide'],
      'berth workload update web --apply 4f2a',
    ],
    [
      'quotes words for a shell',
      ['web', '--image', "a b'c"],
      String.raw`berth workload update web --image 'a b'\''c' --apply 4f2a`,
    ],
  ])('%s', async (_, words, text) => {
    expect(await shown(words)).toBe(text);
  });

  it('may name one of several arguments', async () => {
    expect(await shown(['web'], ['api'])).toBe('berth workload update api --apply 4f2a');
  });
});
