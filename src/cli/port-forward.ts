// `berth port-forward NAME [LOCAL:]PORT...`: ports of a guest on this machine, with no route to its host. With --stdio, one connection over
// standard input and output, as ssh's ProxyCommand wants it.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Command } from 'commander';
import { drained } from '../base/drained.ts';
import { describeError } from '../base/log.ts';
import type { Cli } from './cli.ts';
import { attempting, CommandError, exitCodes, usageError } from './exit-codes.ts';
import { type GuestLine, openGuestLine } from './guest-line.ts';
import { openSession, type Session } from './session.ts';

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
      await listenForAll(cli, session, { name, address, forwards });
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
    cli.stdout.write(message);
    if (cli.stdout.writableNeedDrain === true)
      await new Promise<void>((resolve) => cli.stdout.once?.('drain', resolve));
  }
  line.end();
}

async function listenForAll(
  cli: Cli,
  session: Session,
  {
    name,
    address,
    forwards,
  }: { readonly name: string; readonly address: string; readonly forwards: readonly Forward[] },
): Promise<void> {
  const signal = cli.interruption();
  const open = new Set<Socket>();
  const servers: Server[] = [];
  try {
    for (const { localPort, guestPort } of forwards) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        open.add(socket);
        socket.on('close', () => open.delete(socket));
        socket.on('error', () => {}); // told by 'close'
        forward(session, { name, guestPort, socket }).catch((error: unknown) => {
          cli.stderr.write(`berth: port ${guestPort} of instance "${name}": ${describeError(error)}\n`);
          socket.destroy();
        });
      });
      servers.push(server);
      server.listen({ host: address, port: localPort });
      await once(server, 'listening').catch((cause: unknown) => {
        throw new CommandError(exitCodes.usage, `cannot listen on ${address}:${localPort}: ${describeError(cause)}`, {
          advice: `choose another port: berth port-forward ${name} 0:${guestPort}`,
          cause,
        });
      });
      const at = server.address();
      const port = typeof at === 'object' && at !== null ? at.port : localPort;
      cli.stdout.write(`${address}:${port} is port ${guestPort} of ${name}\n`);
    }
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    for (const socket of open) socket.destroy();
    for (const server of servers) server.close();
  }
}

/** Carries one connection to its end, each way only as fast as the other end takes it. */
async function forward(
  session: Session,
  { name, guestPort, socket }: { readonly name: string; readonly guestPort: number; readonly socket: Socket },
): Promise<void> {
  const line = await openGuestLine(session, { name, way: `ports/${guestPort}` });
  const cut = (): void => line.end();
  socket.once('close', cut);
  line.over.addEventListener('abort', () => void socket.destroy(), { once: true });
  const up = async (): Promise<void> => {
    for await (const data of socket.iterator({ destroyOnReturn: false })) await line.send(data);
    await line.tell({ type: 'end' });
  };
  const down = async (): Promise<void> => {
    for await (const message of line.messages()) {
      if (!(message instanceof Uint8Array)) break;
      if (!socket.destroyed && !socket.write(message)) await drained(socket);
    }
    socket.end();
  };
  await Promise.all([up(), down()]).finally(() => {
    line.end();
    socket.destroySoon();
  });
}

function forwardOf(word: string): Forward {
  const match = /^(?:(\d{1,5}):)?(\d{1,5})$/.exec(word);
  const guestPort = Number(match?.[2]);
  const localPort = match?.[1] === undefined ? guestPort : Number(match[1]);
  if (match === null || guestPort < 1 || guestPort > 65_535 || localPort > 65_535)
    throw usageError(`"${word}" is no port: write 8080, or LOCAL:8080`);
  return { localPort, guestPort };
}
