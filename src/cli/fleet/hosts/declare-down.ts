// `berth host declare-down`: an operator says that silent hosts are down, and that none of their guests runs.

import { Command } from 'commander';
import type { Cli } from '../../cli.ts';
import { attempting } from '../../exit-codes.ts';
import { forEachName, joined } from '../../instances/rm.ts';
import { openSession } from '../../session.ts';

export function declareDownCommand(cli: Cli): Command {
  return new Command('declare-down')
    .description(
      'Declare that silent hosts are down and that none of their guests runs: instances are replaced at once',
    )
    .argument('<host...>')
    .option('--reason <text>', 'how you know: "power is off"', '')
    .action(async (names: readonly string[], { reason }: { readonly reason: string }, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`declare host "${name}" to be down`, () => client.declareHostDown(name, { reason }), {
          NotFound: '"berth host ls" shows the hosts',
        });
        cli.stdout.write(`${name} is down\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
