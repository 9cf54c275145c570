// Local ports forwarded to a guest while the command runs. Each connection uses its own WebSocket.

import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { drained } from '../../base/drained.ts';
import { describeError } from '../../base/log.ts';
import type { Cli } from '../cli.ts';
import { CommandError, usageError } from '../exit-codes.ts';
import { openGuestLine } from './guest-line.ts';
import type { Session } from '../session.ts';

export interface LocalPort {
  readonly way: string;
  /** 0: any free port. */
  readonly localPort: number | string;
  /** The message when the port listens; `at` is `address:port`. */
  readonly shown: (at: string) => string;
  /**
   * The message when the guest closes a connection without sending anything, as QEMU's user network does where nothing
   * listens.
   */
  readonly silence?: string;
}

/** Runs until Ctrl-C. Throws when a port cannot be listened on. */
export async function listenFor(
  cli: Cli,
  session: Session,
  { name, address, ways }: { readonly name: string; readonly address: string; readonly ways: readonly LocalPort[] },
): Promise<void> {
  const signal = cli.interruption();
  const open = new Set<Socket>();
  const servers: Server[] = [];
  const silent = new Set<string>();
  try {
    for (const { way, localPort, shown, silence } of ways) {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
        open.add(socket);
        socket.on('close', () => open.delete(socket));
        socket.on('error', () => {}); // reported by 'close'
        const onSilence = (): void => {
          if (silence === undefined || silent.has(way)) return;
          silent.add(way); // reported once: a browser retries
          cli.stderr.write(`berth: ${silence}\n`);
        };
        carry(session, { name, way, socket, onSilence }).catch((error: unknown) => {
          cli.stderr.write(`berth: instance "${name}", ${way}: ${describeError(error)}\n`);
          socket.destroy();
        });
      });
      servers.push(server);
      cli.stdout.write(`${shown(await listening(server, { address, localPort }))}\n`);
    }
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    for (const socket of open) socket.destroy();
    for (const server of servers) server.close();
  }
}

async function listening(
  server: Server,
  { address, localPort }: { readonly address: string; readonly localPort: number | string },
): Promise<string> {
  const port = Number(localPort);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw usageError(`"${localPort}" is not a port`);
  server.listen({ host: address, port });
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new CommandError(2, `cannot listen on ${address}:${port}: ${describeError(cause)}`, {
      advice: 'choose another port, or 0 for any free one',
      cause,
    });
  }
  const at = server.address();
  return `${address}:${typeof at === 'object' && at !== null ? at.port : port}`;
}

/**
 * Forwards one connection to its end, each direction at the speed of its reader. `onSilence`: the guest closed it first
 * without sending anything.
 */
async function carry(
  session: Session,
  {
    name,
    way,
    socket,
    onSilence,
  }: { readonly name: string; readonly way: string; readonly socket: Socket; readonly onSilence: () => void },
): Promise<void> {
  const line = await openGuestLine(session, { name, way });
  let leaving = false;
  socket.once('end', () => {
    leaving = true;
  });
  socket.once('close', () => {
    leaving = true;
    line.end();
  });
  line.over.addEventListener('abort', () => void socket.destroySoon(), { once: true });
  const up = async (): Promise<void> => {
    try {
      for await (const data of socket.iterator({ destroyOnReturn: false })) await line.send(data);
    } catch {
      return line.end(); // it was reset
    }
    await line.tell({ type: 'end' });
  };
  const down = async (): Promise<void> => {
    let silent = true;
    for await (const message of line.messages()) {
      if (!(message instanceof Uint8Array)) break; // `end`: no more output from the guest
      silent = false;
      if (!socket.destroyed && !socket.write(message)) await drained(socket);
    }
    if (silent && !leaving) onSilence();
    socket.end();
  };
  await Promise.all([up(), down()]);
  line.end();
}
