// `berth port-forward NAME [LOCAL:]PORT...`: ports of a guest on this machine, with no route to its host. With --stdio, one connection over
// standard input and output, as ssh's ProxyCommand wants it.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { attempting, usageError } from './exit-codes.ts';
import { type GuestLine, openGuestLine } from './guest-line.ts';
import { listenFor } from './local-ports.ts';
import { openSession } from './session.ts';
import { writeOut } from './write-out.ts';

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
    .description("Bring an instance's ports to this machine")
    .argument('<instance>')
    .argument('<port...>', '8080 or LOCAL:8080; local port 0: any free one')
    .option('--address <address>', 'where they listen here', '127.0.0.1')
    .option('--stdio', 'one connection over standard input and output, for ssh -o ProxyCommand')
    .action(async (name: string, words: readonly string[], { address, stdio }: ForwardOptions, command: Command) => {
      const forwards = words.map(forwardOf);
      const session = await openSession(cli, command);
      const [first] = forwards;
      if (stdio && (forwards.length > 1 || first === undefined)) throw usageError('--stdio takes one port');
      if (stdio && first !== undefined) {
        await attempting(`reach port ${first.guestPort} of instance "${name}"`, async () =>
          carryStandard(cli, await openGuestLine(session, { name, way: `ports/${first.guestPort}` })),
        );
        return;
      }
      await listenFor(cli, session, {
        name,
        address,
        ways: forwards.map(({ localPort, guestPort }) => ({
          way: `ports/${guestPort}`,
          localPort,
          shown: (at) => `${at} is port ${guestPort} of ${name}`,
        })),
      });
    });
}

async function carryStandard(cli: Cli, line: GuestLine): Promise<void> {
  const typing = async (): Promise<void> => {
    for await (const piece of cli.stdin) await line.send(typeof piece === 'string' ? Buffer.from(piece) : piece);
    await line.tell({ type: 'end' });
  };
  typing().catch(() => line.end()); // our reader is gone
  for await (const message of line.messages()) {
    if (!(message instanceof Uint8Array)) break; // `end`: the guest has said all
    await writeOut(cli.stdout, message);
  }
  line.end();
}

function forwardOf(word: string): Forward {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(word);
  const guestPort = Number(match?.[2]);
  const localPort = match?.[1] === undefined ? guestPort : Number(match[1]);
  if (match === null || guestPort < 1 || guestPort > 65_535 || localPort > 65_535)
    throw usageError(`"${word}" is no port: write 8080, or LOCAL:8080`);
  return { localPort, guestPort };
}
