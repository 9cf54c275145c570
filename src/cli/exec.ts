// `berth exec NAME -- COMMAND`: runs a command inside a guest. When the connection breaks, the command goes on, and so does what is read and
// typed, at the byte where it was.

import { Command } from 'commander';
import type { ExecRequest } from '../api/access-protocol.ts';
import { sleep } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import type { Cli } from './cli.ts';
import { attempting, CommandError, CommandExit, exitCodes, usageError } from './exit-codes.ts';
import { type GuestLine, mayComeBack, openGuestLine } from './guest-line.ts';
import { rawTerminal, type RawTerminal } from './raw-terminal.ts';
import { openSession } from './session.ts';

interface ExecOptions {
  readonly stdin?: true;
  readonly tty?: true;
  readonly container?: string;
  readonly env: readonly string[];
  readonly workdir?: string;
}

/** Of api/access-protocol.ts, which brings schemas along. */
const streams = { stdin: 0, stdout: 1, stderr: 2 } as const;
const inputPieceBytes = 32 * 1024;
/** What was typed and may not have arrived; more is waited for. */
const inputKeptBytes = 1024 * 1024;
const retryMs = 1_000;
/** As long as a host keeps a command that nobody looks after. */
const patienceMs = 10 * 60 * 1000;

export function execCommand(cli: Cli): Command {
  return new Command('exec')
    .description('Run a command inside an instance')
    .argument('<instance>')
    .argument('<command...>', 'after --: the program and its arguments')
    .option('-i, --stdin', 'pass standard input on')
    .option('-t, --tty', 'with a terminal')
    .option('-c, --container <name>', 'of an instance of several containers; default: the first')
    .option(
      '-e, --env <name=value>',
      'set a variable (repeatable)',
      (value, all: readonly string[]) => [...all, value],
      [],
    )
    .option('-w, --workdir <directory>', 'run it there')
    .addHelpText(
      'after',
      '\nIn a virtual machine the QEMU guest agent runs it: it takes input and gives output in one piece. For more there is "berth ssh".\nThe exit code is that of the command.',
    )
    .action(async (name: string, words: readonly string[], options: ExecOptions, command: Command) => {
      const session = await openSession(cli, command);
      const terminal = rawTerminal(options.tty ? cli : { ...cli, stdin: withoutTerminal(cli.stdin) }, {
        escapable: false,
      });
      const size = options.tty ? (terminal.size() ?? { columns: 80, rows: 24 }) : undefined;
      const request: ExecRequest = {
        command: [...words],
        stdin: options.stdin === true,
        ...(options.env.length === 0 ? {} : { env: envOf(options.env) }),
        ...(options.workdir === undefined ? {} : { workingDirectory: options.workdir }),
        ...(options.container === undefined ? {} : { container: options.container }),
        ...(size === undefined ? {} : { terminal: size }),
      };
      const code = await attempting(
        `run a command in instance "${name}"`,
        () =>
          runThrough(cli, {
            request,
            terminal,
            open: (query) => openGuestLine(session, { name, way: 'exec', ...(query === undefined ? {} : { query }) }),
          }),
        { NotFound: '"berth ps" shows the instances' },
      ).finally(() => terminal.restore());
      if (code !== 0) throw new CommandExit(code);
    });
}

interface Running {
  readonly request: ExecRequest;
  readonly terminal: RawTerminal;
  readonly open: (query?: { readonly session: string; readonly received: number }) => Promise<GuestLine>;
}

async function runThrough(cli: Cli, { request, terminal, open }: Running): Promise<number> {
  let line = await open();
  let session: string | undefined;
  let received = 0;
  const input = createInput(() => line);
  await line.tell(request);
  terminal.onResize((size) => void line.tell({ type: 'resize', ...size }));

  const listen = async (): Promise<number | undefined> => {
    for await (const message of line.messages()) {
      if (message instanceof Uint8Array) {
        const output = message[0] === streams.stderr ? cli.stderr : cli.stdout;
        output.write(message.subarray(1));
        received += message.length - 1;
      } else if (message.type === 'started') {
        const first = session === undefined;
        session = message.session;
        await input.arrived(message.inputBytes);
        if (first && request.stdin) input.begin(terminal);
      } else if (message.type === 'exit') return message.code;
    }
    return undefined;
  };
  const interrupted = cli.interruption();
  interrupted.addEventListener('abort', () => void line.tell({ type: 'close' }).then(() => line.end()), { once: true });

  for (let brokeAtMs: number | undefined; ; ) {
    try {
      const code = await listen();
      if (code !== undefined) {
        line.end();
        return code;
      }
    } catch (error) {
      if (!mayComeBack(error)) throw error;
    }
    if (interrupted.aborted) return exitCodes.interrupted;
    brokeAtMs ??= cli.clock.monotonicMs();
    if (session === undefined || cli.clock.monotonicMs() - brokeAtMs > patienceMs)
      throw new CommandError(exitCodes.internal, 'the connection broke, and nobody knows what became of the command');
    cli.stderr.write('berth: the connection broke; trying again\n');
    await sleep(cli.clock, retryMs);
    try {
      line = await open({ session, received });
      brokeAtMs = undefined;
    } catch (error) {
      if (!mayComeBack(error)) throw error;
      cli.stderr.write(`berth: ${describeError(error)}\n`);
    }
  }
}

/** What is typed, kept until it has surely arrived. */
function createInput(line: () => GuestLine) {
  const kept: Uint8Array[] = [];
  let keptFrom = 0;
  let written = 0;
  let ended = false;
  const message = (bytes: Uint8Array): Uint8Array => Buffer.concat([Buffer.of(streams.stdin), bytes]);
  return {
    begin(terminal: RawTerminal): void {
      void (async () => {
        for await (const bytes of terminal.keys()) {
          for (let at = 0; at < bytes.length; at += inputPieceBytes) {
            const piece = bytes.subarray(at, at + inputPieceBytes);
            kept.push(piece);
            written += piece.length;
            while (written - keptFrom > inputKeptBytes && kept.length > 1) keptFrom += kept.shift()?.length ?? 0;
            await line().send(message(piece));
          }
        }
        ended = true;
        await line().tell({ type: 'end' });
      })();
    },
    /** The host has so much: the rest is said again. */
    async arrived(bytes: number): Promise<void> {
      if (bytes < keptFrom)
        throw new CommandError(exitCodes.internal, `bytes ${bytes} to ${keptFrom} of the input were lost on the way`);
      let at = keptFrom;
      for (const piece of kept) {
        const end = at + piece.length;
        if (end > bytes) await line().send(message(piece.subarray(Math.max(0, bytes - at))));
        at = end;
      }
      if (ended) await line().tell({ type: 'end' });
    },
  };
}

function envOf(words: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const word of words) {
    const cut = word.indexOf('=');
    if (cut < 1) throw usageError(`--env must be NAME=VALUE, not "${word}"`);
    env[word.slice(0, cut)] = word.slice(cut + 1);
  }
  return env;
}

const withoutTerminal = (stdin: Cli['stdin']): Cli['stdin'] => ({
  [Symbol.asyncIterator]: () => stdin[Symbol.asyncIterator](),
});
