// `berth logs NAME`: a guest's console. Piped, the bytes go through as they are; on a terminal nothing of them may steer it.

import { Command } from 'commander';
import { ApiError } from '../api/errors.ts';
import { pathOf } from '../api/user-client.ts';
import { sleep } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import type { Cli } from './cli.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from './exit-codes.ts';
import { openSession, type Session } from './session.ts';
import { consoleFilter } from './terminal.ts';

interface LogsOptions {
  readonly follow?: true;
  readonly offset: string;
}

export function logsCommand(cli: Cli): Command {
  return new Command('logs')
    .description("Show an instance's console")
    .argument('<instance>')
    .option('-f, --follow', 'go on until the guest is gone or Ctrl-C')
    .option('--offset <bytes>', 'begin at this byte of the console', '0')
    .action(async (name: string, { follow, offset }: LogsOptions, command: Command) => {
      if (!/^\d{1,15}$/.test(offset)) throw usageError(`--offset must be a number of bytes, not "${offset}"`);
      const session = await openSession(cli, command);
      const filter = cli.stdout.isTTY ? consoleFilter() : undefined;
      const print = (bytes: Uint8Array): void => void cli.stdout.write(filter ? filter.push(bytes) : bytes);
      try {
        await attempting(
          `read the console of instance "${name}"`,
          () => readConsole(cli, session, { name, offset: Number(offset), follow: follow === true, print }),
          {
            NotFound: '"berth ps" shows the instances',
            HostUnreachable: 'its host is not connected to this control plane now: ask another, or see berth host ls',
            Conflict: `"berth explain ${name}" says why`,
          },
        );
      } finally {
        if (filter) cli.stdout.write(filter.end());
      }
    });
}

const retryMs = 1_000;

interface ReadOptions {
  readonly name: string;
  readonly offset: number;
  readonly follow: boolean;
  readonly print: (bytes: Uint8Array) => void;
}

/** Following survives a server or a line that goes away: it goes on at the byte where it was. */
async function readConsole(
  cli: Cli,
  { client, project }: Session,
  { name, offset, follow, print }: ReadOptions,
): Promise<void> {
  const signal = cli.interruption();
  let next = offset;
  for (let begun = false; ; ) {
    try {
      const query = { project, offset: next, follow };
      const { headers, body } = await client.request(`${pathOf('instance', name)}/log`, { query, signal });
      // The start may have been dropped to keep the console's file bounded.
      next = Math.max(next, Number(headers.get('berth-log-offset') ?? next) || 0);
      begun = true;
      for await (const bytes of body ?? []) {
        print(bytes);
        next += bytes.length;
      }
      if (signal.aborted) throw new Interrupted();
      return;
    } catch (error) {
      if (signal.aborted) throw new Interrupted();
      const away = !(error instanceof ApiError) || error.code === 'Unavailable' || error.code === 'HostUnreachable';
      if (begun && error instanceof ApiError && error.code === 'NotFound') return; // removed while we were away
      if (!away || (!begun && error instanceof ApiError)) throw error;
      const reason = describeError(error);
      if (!follow) {
        throw new CommandError(
          exitCodes.internal,
          `cannot read all of the console of instance "${name}": the connection broke at byte ${next} (${reason})`,
          {
            advice: `go on with: berth logs ${name} --offset ${next}`,
            cause: error,
          },
        );
      }
      cli.stderr.write(`berth: the connection broke (${reason}); trying again\n`);
      await sleep(cli.clock, retryMs, signal);
    }
  }
}
