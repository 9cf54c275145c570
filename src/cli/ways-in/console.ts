// `berth console NAME`: attaches to a guest's serial console. After a broken connection it attaches again, at the same
// byte.

import { Command } from 'commander';
import { ApiError } from '../../api/errors.ts';
import { sleep } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { orItsEnd, tellEnd } from './guest-end.ts';
import { type GuestLine, type GuestWay, hasNoConsole, mayComeBack, openGuestLine } from './guest-line.ts';
import { escapeKeyName, type RawTerminal, rawTerminal } from './raw-terminal.ts';
import { openSession } from '../session.ts';
import { writeOut } from '../print/write-out.ts';
import { seeInstances } from '../instances/instance-advice.ts';

interface ConsoleOptions {
  readonly history: string;
  readonly offset?: string;
}

const retryMs = 1_000;

export function consoleCommand(cli: Cli): Command {
  return new Command('console')
    .description("Attach to an instance's serial console")
    .argument('<instance>')
    .option('--history <bytes>', 'first show this many bytes of earlier output', '2048')
    .option('--offset <bytes>', 'start at this byte of the console instead')
    .addHelpText('after', `\n${escapeKeyName} detaches from the console; the guest keeps running.`)
    .action(async (name: string, { history, offset }: ConsoleOptions, command: Command) => {
      const begin: GuestWay['query'] =
        offset === undefined ? { history: bytesOf('--history', history) } : { offset: bytesOf('--offset', offset) };
      const session = await openSession(cli, command);
      const outcome = await attempting(
        `attach to the console of instance "${name}"`,
        () =>
          orItsEnd(session, name, () =>
            sitAt(cli, name, (query = begin) => openGuestLine(session, { name, way: 'console', query })),
          ),
        {
          NotFound: seeInstances,
          Conflict: (error) =>
            hasNoConsole(error)
              ? `"berth logs -f ${name}" follows its output; "berth exec -it ${name} -- sh" opens a shell in a container`
              : `"berth explain ${name}" says why`,
        },
      );
      if (outcome === 'ended') await tellEnd(cli, session, { name, ended: true });
    });
}

type Open = (query?: GuestWay['query']) => Promise<GuestLine>;

async function sitAt(cli: Cli, name: string, open: Open): Promise<'left' | 'ended'> {
  let line = await open();
  let next: number | undefined;
  const terminal = rawTerminal(cli, { escapable: true });
  if (terminal.interactive)
    cli.stderr.write(`berth: attached to the console of "${name}"; ${escapeKeyName} detaches\n`);
  const left = typeInto(terminal, () => line);
  const show = async (): Promise<'ended' | 'broke'> => {
    for await (const message of line.messages()) {
      if (message instanceof Uint8Array) {
        await writeOut(cli.stdout, message);
        next = (next ?? 0) + message.length;
      } else if (message.type === 'offset') {
        if (next !== undefined && message.offset > next)
          cli.stderr.write(`\r\nberth: ${message.offset - next} bytes of the console were dropped\r\n`);
        next = message.offset;
      }
      if (!(message instanceof Uint8Array) && message.type === 'end') return 'ended';
    }
    return 'broke';
  };
  try {
    for (;;) {
      const outcome = await Promise.race([left, show()]).catch((error: unknown) => {
        if (!mayComeBack(error)) throw error;
        return 'broke' as const;
      });
      line.end();
      if (outcome === 'ended' && terminal.interactive) cli.stderr.write('\r\nberth: the guest has ended\r\n');
      if (outcome !== 'broke') return outcome;
      line = await openAgain(cli, () => open(next === undefined ? undefined : { offset: next }));
    }
  } finally {
    terminal.restore();
  }
}

/**
 * Resolves when the user detaches. Input that is not a terminal simply ends: the guest's output is still worth showing.
 */
async function typeInto(terminal: RawTerminal, line: () => GuestLine): Promise<'left'> {
  for await (const keys of terminal.keys()) await line().send(keys);
  if (!terminal.interactive) await new Promise(() => {});
  return 'left';
}

async function openAgain(cli: Cli, open: () => Promise<GuestLine>): Promise<GuestLine> {
  for (;;) {
    cli.stderr.write('\r\nberth: the connection broke; trying again\r\n');
    await sleep(cli.clock, retryMs);
    try {
      return await open();
    } catch (error) {
      if (!mayComeBack(error) && !(error instanceof ApiError && error.code === 'Conflict')) throw error;
      cli.stderr.write(`berth: ${describeError(error)}\r\n`);
    }
  }
}

function bytesOf(option: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw usageError(`${option} must be a number of bytes, not "${text}"`);
}
