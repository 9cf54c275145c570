// `berth rm NAME...`: deletes instances; with --wait it returns when no host holds anything of them.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes, failureOf, Interrupted } from '../exit-codes.ts';
import { openSession, type Session } from '../session.ts';
import { parseDurationMs } from '../options/units.ts';
import { untilGone, waitForInstance } from './wait.ts';
import { seeInstances } from './instance-advice.ts';

interface RmOptions {
  readonly wait?: true;
  readonly timeout?: string;
}

export function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove instances')
    .argument('<instance...>')
    .option('-w, --wait', 'wait until they are removed completely')
    .option('-t, --timeout <duration>', 'with --wait: give up after 90s, 5m')
    .action(async (names: readonly string[], { wait, timeout }: RmOptions, command: Command) => {
      const session = await openSession(cli, command);
      const timeoutMs = timeout === undefined ? undefined : parseDurationMs('--timeout', timeout);
      const failures = await forEachName(cli, names, (name) =>
        remove(cli, session, name, { wait: wait === true, timeoutMs }),
      );
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

async function remove(
  cli: Cli,
  session: Session,
  name: string,
  { wait, timeoutMs }: { wait: boolean; timeoutMs: number | undefined },
): Promise<void> {
  const { metadata } = await attempting(
    `remove instance "${name}"`,
    () => session.client.delete('instance', name, { project: session.project }),
    { NotFound: seeInstances },
  );
  if (wait) {
    const here = { ...session, project: metadata.project };
    await waitForInstance(cli, here, { id: metadata.id, name: metadata.name, judge: untilGone, timeoutMs });
  }
  cli.stdout.write(`${metadata.name} ${wait ? 'removed' : 'is being removed'}\n`);
}

/** One after the other; a failure does not stop the others. */
export async function forEachName(
  cli: Cli,
  names: readonly string[],
  work: (name: string) => Promise<void>,
): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (const name of names) {
    try {
      await work(name);
    } catch (error) {
      if (error instanceof Interrupted) throw error;
      failures.push(error);
      if (names.length > 1) cli.stderr.write(failureOf(error).text);
    }
  }
  return failures;
}

export function joined(failures: readonly unknown[], tried: number): unknown {
  if (tried === 1) return failures[0];
  const { exitCode } = failureOf(failures[0]);
  return new CommandError(exitCode || exitCodes.internal, `${failures.length} of ${tried} failed`);
}
