// `berth logs NAME`: a guest's console. Piped, the bytes go through as they are; on a terminal nothing of them may steer it.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { attempting, Interrupted, usageError } from './exit-codes.ts';
import { openSession } from './session.ts';
import { consoleFilter } from './terminal.ts';

interface LogsOptions {
  readonly follow?: true;
  readonly offset?: string;
}

export function logsCommand(cli: Cli): Command {
  return new Command('logs')
    .description("Show an instance's console")
    .argument('<instance>')
    .option('-f, --follow', 'go on until the guest is gone or Ctrl-C')
    .option('--offset <bytes>', 'begin at this byte of the console', '0')
    .action(async (name: string, { follow, offset: text = '0' }: LogsOptions, command: Command) => {
      if (!/^\d{1,15}$/.test(text)) throw usageError(`--offset must be a number of bytes, not "${text}"`);
      const { client, project } = await openSession(cli, command);
      const signal = cli.interruption();
      const query = { project, offset: Number(text), follow: follow === true };
      await attempting(
        `read the log of instance "${name}"`,
        async () => {
          const filter = cli.stdout.isTTY ? consoleFilter() : undefined;
          try {
            for await (const bytes of client.log(name, query, signal))
              cli.stdout.write(filter ? filter.push(bytes) : bytes);
          } catch (error) {
            if (signal.aborted) throw new Interrupted();
            throw error;
          } finally {
            if (filter) cli.stdout.write(filter.end());
          }
          if (signal.aborted) throw new Interrupted();
        },
        {
          NotFound: '"berth ps" shows the instances',
          HostUnreachable: 'its host is not connected now: berth host ls',
          Conflict: `it has no console yet: berth explain ${name}`,
        },
      );
    });
}
