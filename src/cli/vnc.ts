// `berth vnc NAME`: a guest's screen for any VNC viewer on this machine.

import { Command } from 'commander';
import type { Cli } from './cli.ts';
import { listenFor } from './local-ports.ts';
import { openSession } from './session.ts';

export function vncCommand(cli: Cli): Command {
  return new Command('vnc')
    .description("Bring an instance's screen to this machine, for a VNC viewer")
    .argument('<instance>')
    .option('--address <address>', 'where it listens here', '127.0.0.1')
    .option('--port <port>', '0: any free one', '0')
    .action(
      async (
        name: string,
        { address, port }: { readonly address: string; readonly port: string },
        command: Command,
      ) => {
        const session = await openSession(cli, command);
        await listenFor(cli, session, {
          name,
          address,
          ways: [{ way: 'vnc', localPort: port, shown: (at) => `the screen of ${name}: vnc://${at}` }],
        });
      },
    );
}
