// `berth logs NAME`: a guest's console. Piped, the bytes are unchanged; on a terminal control sequences are escaped.

import { Command } from 'commander';
import { ApiError } from '../../api/errors.ts';
import { pathOf } from '../../api/client/user-client.ts';
import { sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from '../exit-codes.ts';
import { orItsEnd, tellEnd } from './guest-end.ts';
import { openSession, type Session } from '../session.ts';
import { consoleFilter } from '../print/terminal.ts';
import { parseInteger } from '../options/units.ts';
import { seeInstances } from '../instances/instance-advice.ts';

interface LogsOptions {
  readonly follow?: true;
  readonly offset: string;
  readonly tail?: string;
}

export function logsCommand(cli: Cli): Command {
  return new Command('logs')
    .description("Show an instance's console")
    .argument('<instance>')
    .option('-f, --follow', 'follow until the guest ends or Ctrl-C')
    .option('--offset <bytes>', 'start at this byte of the console', '0')
    .option('-n, --tail <lines>', 'only the last lines')
    .action(async (name: string, { follow, offset, tail }: LogsOptions, command: Command) => {
      if (!/^\d{1,15}$/.test(offset)) throw usageError(`--offset must be a number of bytes, not "${offset}"`);
      const lines = tail === undefined ? undefined : parseInteger('--tail', tail, { min: 0, max: linesMax });
      const session = await openSession(cli, command);
      const filter = cli.stdout.isTTY ? consoleFilter() : undefined;
      const print = (bytes: Uint8Array): void => void cli.stdout.write(filter ? filter.push(bytes) : bytes);
      try {
        await attempting(
          `read the console of instance "${name}"`,
          () =>
            orItsEnd(session, name, async () => {
              const end =
                lines === undefined
                  ? Number(offset)
                  : await readTail(cli, session, { name, offset: Number(offset), lines, print });
              if (lines !== undefined && !follow) return;
              await readConsole(cli, session, { name, offset: end, follow: follow === true, print });
            }),
          {
            NotFound: seeInstances,
            HostUnreachable: 'its host is not connected to this server now: use another server, or see berth host ls',
            Conflict: `"berth explain ${name}" says why`,
          },
        );
      } finally {
        if (filter) cli.stdout.write(filter.end());
      }
      await tellEnd(cli, session, { name, ended: follow === true });
    });
}

const retryMs = 1_000;
const linesMax = 100_000;
/** Output without newlines must not fill the memory: at most this much of the tail is kept. */
const tailBytesMax = 8 * 2 ** 20;

/** Prints the current last lines; returns the offset after them. */
async function readTail(
  cli: Cli,
  session: Session,
  { name, offset, lines, print }: Omit<ReadOptions, 'follow'> & { readonly lines: number },
): Promise<number> {
  let parts: Uint8Array[] = [];
  let size = 0;
  const keep = (bytes: Uint8Array): void => {
    parts.push(bytes);
    size += bytes.length;
    if (size <= 2 * tailBytesMax) return;
    const last = Buffer.from(lastLines(Buffer.concat(parts), lines));
    parts = [last];
    size = last.length;
  };
  const end = await readConsole(cli, session, { name, offset, follow: false, print: keep });
  print(lastLines(Buffer.concat(parts), lines));
  return end;
}

/** The last line may be incomplete. */
function lastLines(bytes: Buffer, lines: number): Buffer {
  let from = bytes.length - (bytes.at(-1) === newLine ? 1 : 0);
  if (lines === 0) return bytes.subarray(bytes.length);
  for (let left = lines; left > 0; left--) {
    const end = from === 0 ? -1 : bytes.lastIndexOf(newLine, from - 1);
    if (end < 0) return bytes.subarray(Math.max(0, bytes.length - tailBytesMax));
    from = end;
  }
  return bytes.subarray(Math.max(from + 1, bytes.length - tailBytesMax));
}

const newLine = 0x0a;

interface ReadOptions {
  readonly name: string;
  readonly offset: number;
  readonly follow: boolean;
  readonly print: (bytes: Uint8Array) => void;
}

/**
 * Following survives a lost server or connection: it continues at the same byte. Returns the offset after the last
 * byte.
 */
async function readConsole(
  cli: Cli,
  { client, project }: Session,
  { name, offset, follow, print }: ReadOptions,
): Promise<number> {
  const signal = cli.interruption();
  let next = offset;
  for (let begun = false; ; ) {
    try {
      const query = { project, offset: next, follow };
      const { headers, body } = await client.request(`${pathOf('instance', name)}/log`, { query, signal });
      // The beginning may have been dropped to keep the console's file bounded.
      const begins = Math.max(next, Number(headers.get('berth-log-offset') ?? next) || 0);
      if (begun && begins > next) cli.stderr.write(`berth: ${begins - next} bytes of the console were dropped\n`);
      next = begins;
      begun = true;
      for await (const bytes of body ?? []) {
        print(bytes);
        next += bytes.length;
      }
      if (signal.aborted) throw new Interrupted();
      return next;
    } catch (error) {
      if (signal.aborted) throw new Interrupted();
      const away = !(error instanceof ApiError) || error.code === 'Unavailable' || error.code === 'HostUnreachable';
      if (begun && error instanceof ApiError && error.code === 'NotFound') return next; // deleted in the meantime
      if (!away || (!begun && error instanceof ApiError)) throw error;
      const reason = describeError(error);
      if (!follow) {
        throw new CommandError(
          exitCodes.internal,
          `cannot read all of the console of instance "${name}": the connection broke at byte ${next} (${reason})`,
          {
            advice: `continue with: berth logs ${name} --offset ${next}`,
            cause: error,
          },
        );
      }
      cli.stderr.write(`berth: the connection broke (${reason}); trying again\n`);
      await sleep(cli.clock, retryMs, signal);
    }
  }
}
