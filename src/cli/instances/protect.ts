// `berth protect` and `berth unprotect`: whether an instance may be deleted.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';
import { forEachName, joined } from './rm.ts';

export const protectCommand = (cli: Cli): Command =>
  protectionCommand(cli, { verb: 'protect', wanted: true, description: 'Protect instances from deletion' });
export const unprotectCommand = (cli: Cli): Command =>
  protectionCommand(cli, {
    verb: 'unprotect',
    wanted: false,
    description: 'Allow deletion of protected instances again',
  });

interface Words {
  readonly verb: string;
  readonly wanted: boolean;
  readonly description: string;
}

function protectionCommand(cli: Cli, { verb, wanted, description }: Words): Command {
  return new Command(verb)
    .description(description)
    .argument('<instance...>')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`${verb} instance "${name}"`, () =>
          replace(client, {
            ...{ kind: 'instance', name, project },
            change: ({ spec }) => ((spec.protected ?? false) === wanted ? undefined : { ...spec, protected: wanted }),
          }),
        );
        cli.stdout.write(`${name} ${wanted ? 'is protected' : 'is not protected'}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}
