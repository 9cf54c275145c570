// `berth extend`: gives an instance with a limited lifetime more time. Relative to the time it has, so no clock of this machine matters.

import { Command } from 'commander';
import { errorCodes } from '../../api/errors.ts';
import { expiryOf } from '../../api/instances/lifetime.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError } from '../exit-codes.ts';
import { replace } from '../replace.ts';
import { openSession } from '../session.ts';
import { parseDurationMs } from '../options/units.ts';

export function extendCommand(cli: Cli): Command {
  return new Command('extend')
    .description('Extend the time until an instance expires')
    .argument('<instance>')
    .argument('<duration>', 'added to the time that it has: 30m, 2h, 7d')
    .action(async (name: string, duration: string, _options: object, command: Command) => {
      const moreMs = parseDurationMs('<duration>', duration);
      const { client, project } = await openSession(cli, command);
      const extended = await attempting(`extend instance "${name}"`, () =>
        replace(client, { kind: 'instance', name, project, change: (current) => withMoreTime(current, moreMs) }),
      );
      const expiresAtMs = expiryOf(extended) ?? 0;
      cli.stdout.write(`${extended.metadata.name} expires at ${new Date(expiresAtMs).toISOString()}\n`);
    });
}

function withMoreTime({ metadata, spec }: Instance, moreMs: number): Instance['spec'] {
  if (spec.expiresAtMs !== undefined) return { ...spec, expiresAtMs: spec.expiresAtMs + moreMs };
  if (spec.ttlMs !== undefined) return { ...spec, ttlMs: spec.ttlMs + moreMs };
  throw new CommandError(errorCodes.Conflict.exitCode, `instance "${metadata.name}" does not expire`, {
    advice: 'it stays until it is removed: berth rm',
  });
}
