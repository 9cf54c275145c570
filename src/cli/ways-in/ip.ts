// `berth ip NAME`: the address of a guest on its network, and its published ports.

import { Command } from 'commander';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, exitCodes } from '../exit-codes.ts';
import { assertNotEnded } from './guest-end.ts';
import { currentAddress, userNetworkAddress } from '../instances/instance-view.ts';
import { openSession } from '../session.ts';
import { seeInstances } from '../instances/instance-advice.ts';

export function ipCommand(cli: Cli): Command {
  return new Command('ip')
    .description("Print an instance's address")
    .argument('<instance>')
    .option('--ports', 'print its published ports instead: HOST:PORT and the guest port, one per line')
    .action(async (name: string, { ports }: { readonly ports?: true }, command: Command) => {
      const session = await openSession(cli, command);
      const instance = await attempting(
        `print the address of instance "${name}"`,
        () => session.client.get('instance', name, { project: session.project }),
        { NotFound: seeInstances },
      );
      assertNotEnded(instance, exitCodes.badOutcome); // its former address may belong to another guest
      const { metadata, status } = instance;
      const { guest } = status;
      if (ports) {
        for (const port of guest?.ports ?? [])
          cli.stdout.write(`${port.hostAddress ?? ''}:${port.hostPort} ${port.guestPort}/${port.protocol}\n`);
        return;
      }
      const address = currentAddress(status);
      if (address === undefined)
        throw new CommandError(exitCodes.badOutcome, `the address of instance "${name}" is not known yet`, {
          advice:
            status.host === undefined
              ? `it is ${status.phase}; "berth explain ${name}" says why`
              : `it is ${status.phase}; "berth logs ${name}" shows its progress`,
        });
      cli.stdout.write(`${address}\n`);
      if (address === userNetworkAddress)
        cli.stderr.write(
          `every guest of the network "user" has this address, which is not reachable from outside: use "berth port-forward ${metadata.name} PORT" or its published ports (--ports)\n`,
        );
    });
}
