// `berth exec NAME -- COMMAND`: runs a command inside a guest: through its host (guest agent, container engine), or
// with the user's own ssh.

import { Command, Option } from 'commander';
import type { ExecRequest } from '../../api/access-protocol.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, CommandExit, usageError } from '../exit-codes.ts';
import { orItsEnd } from './guest-end.ts';
import { runInGuest } from './guest-command.ts';
import { adviceWhenSuspended, needsSsh } from './guest-line.ts';
import { rawTerminal } from './raw-terminal.ts';
import { openSession } from '../session.ts';
import { shellWord } from '../print/shell-word.ts';
import { partsOf, runSsh, sshOptions } from './ssh-options.ts';
import { writeOut } from '../print/write-out.ts';
import { seeInstances } from '../instances/instance-advice.ts';

interface ExecOptions {
  readonly stdin?: true;
  readonly tty?: true;
  readonly container?: string;
  readonly env: readonly string[];
  readonly workdir?: string;
  readonly by?: 'host' | 'ssh';
  readonly login?: string;
  readonly identity?: string;
  readonly port: string;
}

export function execCommand(cli: Cli): Command {
  return new Command('exec')
    .description('Run a command inside an instance')
    .argument('<instance>', 'NAME, or USER@NAME for ssh')
    .argument('<command...>', 'after --: program and arguments')
    .option('-i, --stdin', 'pass standard input to the command')
    .option('-t, --tty', 'allocate a terminal')
    .option('-c, --container <name>', 'container of the instance; default: the first')
    .option(
      '-e, --env <name=value>',
      'set an environment variable; may be repeated',
      (value, all: readonly string[]) => [...all, value],
      [],
    )
    .option('-w, --workdir <directory>', 'working directory of the command')
    .addOption(
      new Option(
        '--by <way>',
        'host: by guest agent or container engine; ssh: by your own ssh; default: host, else ssh',
      ).choices(['host', 'ssh']),
    )
    .option('-l, --login <user>', "for ssh: user to log in as; default: the image's default user")
    .option(
      '--identity <file>',
      'for ssh: your private key; default: the one in ~/.ssh whose public key the instance has',
    )
    .option('--port <port>', "port of the guest's ssh server", '22')
    .addHelpText(
      'after',
      '\nIn a virtual machine the QEMU guest agent runs the command: input and output are passed in one piece. If no guest agent answers, and\nfor a terminal, your own ssh runs it.\nThe exit code is that of the command.',
    )
    .action(async (target: string, words: readonly string[], options: ExecOptions, command: Command) => {
      const { name } = partsOf(target);
      const env = envOf(options.env);
      const bySsh = (): Promise<number> => runBySsh(cli, command, { target, name, words, env, options });
      if (options.by === 'ssh') return finish(await bySsh());
      try {
        finish(await runByHost(cli, command, { name, words, env, options }));
      } catch (error) {
        if (options.by === 'host' || !(error instanceof CommandError) || !needsSsh(error.cause)) throw error;
        cli.stderr.write(`berth: ${error.message}; trying your own ssh instead (--by host prevents this)\n`);
        finish(await bySsh());
      }
    });
}

interface Wanted {
  readonly name: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly options: ExecOptions;
}

async function runByHost(cli: Cli, command: Command, { name, words, env, options }: Wanted): Promise<number> {
  const session = await openSession(cli, command);
  const terminal = rawTerminal(options.tty ? cli : { ...cli, stdin: withoutTerminal(cli.stdin) }, {
    escapable: false,
  });
  const size = options.tty ? (terminal.size() ?? { columns: 80, rows: 24 }) : undefined;
  const request: ExecRequest = {
    command: [...words],
    stdin: options.stdin === true,
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(options.workdir === undefined ? {} : { workingDirectory: options.workdir }),
    ...(options.container === undefined ? {} : { container: options.container }),
    ...(size === undefined ? {} : { terminal: size }),
  };
  return attempting(
    `run a command in instance "${name}"`,
    () =>
      orItsEnd(session, name, () =>
        runInGuest(cli, session, {
          name,
          request,
          ...(options.stdin ? { input: terminal.keys() } : {}),
          take: (stream, bytes) => writeOut(stream === 'stderr' ? cli.stderr : cli.stdout, bytes),
          onResize: (listener) => terminal.onResize(listener),
        }),
      ),
    { NotFound: seeInstances, Conflict: adviceWhenSuspended(name) },
  ).finally(() => terminal.restore());
}

/** A login shell parses what ssh sends: each word is quoted for it. */
async function runBySsh(
  cli: Cli,
  command: Command,
  { target, words, env, options }: Wanted & { readonly target: string },
): Promise<number> {
  const { container, tty, stdin, workdir, login, identity, port } = options;
  if (container !== undefined) throw usageError('--container cannot be used with ssh: ssh does not reach containers');
  const way = await sshOptions(cli, command, {
    target,
    port,
    ...(login === undefined ? {} : { login }),
    ...(identity === undefined ? {} : { identity }),
  });
  const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`);
  const line = [...(variables.length === 0 ? [] : ['env', ...variables]), ...words].map(shellWord).join(' ');
  const there = workdir === undefined ? line : `cd -- ${shellWord(workdir)} && ${line}`;
  const flags = [tty ? '-tt' : '-T', ...(stdin ? [] : ['-n'])];
  return runSsh(cli, 'ssh', [...flags, ...way.words, target, '--', there]);
}

function finish(code: number): void {
  if (code !== 0) throw new CommandExit(code);
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
