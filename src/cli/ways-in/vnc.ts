// `berth vnc NAME`: forwards a guest's screen to a local port for any VNC viewer.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting } from '../exit-codes.ts';
import { openGuestLine } from './guest-line.ts';
import { listenFor } from './local-ports.ts';
import { runningInstance } from './running-instance.ts';
import { openSession } from '../session.ts';

export function vncCommand(cli: Cli): Command {
  return new Command('vnc')
    .description("Forward an instance's screen to a local port, for a VNC viewer")
    .argument('<instance>')
    .option('--address <address>', 'local address to listen on', '127.0.0.1')
    .option('--port <port>', 'local port; 0 takes any free port', '0')
    .action(
      async (
        name: string,
        { address, port }: { readonly address: string; readonly port: string },
        command: Command,
      ) => {
        const session = await openSession(cli, command);
        const attempt = `forward the screen of instance "${name}"`;
        await runningInstance(session, { name, attempt, standing: true });
        // Not every guest has a screen, and only its host knows.
        (await attempting(attempt, () => openGuestLine(session, { name, way: 'vnc' }))).end();
        await listenFor(cli, session, {
          name,
          address,
          ways: [{ way: 'vnc', localPort: port, shown: (at) => `the screen of ${name}: vnc://${at}` }],
        });
      },
    );
}
