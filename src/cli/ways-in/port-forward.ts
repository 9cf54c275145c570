// `berth port-forward NAME [LOCAL:]PORT...`: forwards local ports to a guest, without a route to its host. With --stdio
// it forwards one connection over standard input and output, for ssh's ProxyCommand.

import { Command } from 'commander';
import { ApiError } from '../../api/errors.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { type GuestLine, openGuestLine } from './guest-line.ts';
import { listenFor } from './local-ports.ts';
import { runningInstance } from './running-instance.ts';
import { openSession, type Session } from '../session.ts';
import { writeOut } from '../print/write-out.ts';

interface ForwardOptions {
  readonly address: string;
  readonly stdio?: true;
}

interface Forward {
  readonly localPort: number;
  readonly guestPort: number;
}

export function portForwardCommand(cli: Cli): Command {
  return new Command('port-forward')
    .description('Forward local ports to an instance')
    .argument('<instance>')
    .argument('<port...>', '8080 or LOCAL:8080; local port 0 takes any free port')
    .option('--address <address>', 'local address to listen on', '127.0.0.1')
    .option('--stdio', 'use standard input and output as one connection, for ssh -o ProxyCommand')
    .action(async (name: string, words: readonly string[], { address, stdio }: ForwardOptions, command: Command) => {
      const forwards = words.map(forwardOf);
      const session = await openSession(cli, command);
      const [first] = forwards;
      if (stdio && (forwards.length > 1 || first === undefined)) throw usageError('--stdio takes one port');
      if (stdio && first !== undefined) {
        return carryStandard(cli, session, { name, port: first.guestPort });
      }
      const { metadata } = await runningInstance(session, { name, attempt: `forward ports of instance "${name}"` });
      await listenFor(cli, session, {
        name: metadata.name,
        address,
        ways: forwards.map(({ localPort, guestPort }) => ({
          way: `ports/${guestPort}`,
          localPort,
          silence: `instance "${metadata.name}" closed its port ${guestPort} without sending data: does a program listen there?`,
          shown: (at) => `${at} is port ${guestPort} of ${metadata.name}`,
        })),
      });
    });
}

/** For ssh, which shows this command's messages, and by itself only reports a closed connection. */
async function carryStandard(
  cli: Cli,
  session: Session,
  { name, port }: { readonly name: string; readonly port: number },
): Promise<void> {
  let line: GuestLine;
  try {
    line = await openGuestLine(session, { name, way: `ports/${port}` });
  } catch (error) {
    const byHost = error instanceof ApiError && error.code === 'Conflict'; // otherwise nothing would ask again
    const shown = byHost ? await nameOf(session, name) : name;
    return attempting(`reach port ${port} of instance "${shown}"`, () => Promise.reject(error), {
      Conflict: waysWithoutSsh(shown),
    });
  }
  const outcome = await attempting(`reach port ${port} of instance "${name}"`, () => carryLine(cli, line));
  if (outcome === 'something was said') return;
  const shown = await nameOf(session, name);
  cli.stderr.write(
    `berth: instance "${shown}" closed its port ${port} without sending data: nothing listens there, or not yet\n  ${waysWithoutSsh(shown)}\n`,
  );
}

function waysWithoutSsh(name: string): string {
  return `without an ssh server: "berth console ${name}" attaches to the console of a virtual machine, "berth exec -it ${name} -- sh" opens a shell in a container`;
}

/** The name of the instance: ssh passes the id. */
async function nameOf({ client, project }: Session, name: string): Promise<string> {
  return client.get('instance', name, { project }).then(
    ({ metadata }) => metadata.name,
    () => name, // the message matters more than the name in it
  );
}

async function carryLine(cli: Cli, line: GuestLine): Promise<'something was said' | 'closed at once'> {
  let silent = true;
  const typing = async (): Promise<void> => {
    for await (const piece of cli.stdin) await line.send(typeof piece === 'string' ? Buffer.from(piece) : piece);
    silent = false; // this side has closed first
    await line.tell({ type: 'end' });
  };
  typing().catch(() => line.end()); // the reader of standard output is gone
  for await (const message of line.messages()) {
    if (!(message instanceof Uint8Array)) break; // `end`: no more output from the guest
    silent = false;
    await writeOut(cli.stdout, message);
  }
  line.end();
  return silent ? 'closed at once' : 'something was said';
}

function forwardOf(word: string): Forward {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(word);
  const guestPort = Number(match?.[2]);
  const localPort = match?.[1] === undefined ? guestPort : Number(match[1]);
  if (match === null || guestPort < 1 || guestPort > 65_535 || localPort > 65_535)
    throw usageError(`"${word}" is not a port: write 8080, or LOCAL:8080`);
  return { localPort, guestPort };
}
