// The quickstart's host: waits until it is ready, and describes it.

import type { Host } from '../../api/resources/host.ts';
import type { Cli } from '../../cli/cli.ts';
import { CommandError, exitCodes, Interrupted } from '../../cli/exit-codes.ts';
import { follow } from '../../cli/print/follow.ts';
import { driversOf, hostReady } from '../../cli/kinds.ts';
import type { Session } from '../../cli/session.ts';
import { visible } from '../../cli/print/terminal.ts';
import { memory, seconds } from '../../cli/options/units.ts';
import type { Stage } from './stage.ts';

const hostReadyWithinMs = 60_000;
export async function untilHostReady(cli: Cli, { client }: Session, { plan, fleet, stopped }: Stage): Promise<Host> {
  const overdue = new AbortController();
  const timer = cli.clock.setTimer(hostReadyWithinMs, () => overdue.abort());
  try {
    for await (const change of follow(cli, client, 'host', {}, AbortSignal.any([stopped, overdue.signal]))) {
      const hosts = change.type === 'sync' ? change.items : change.type === 'put' ? [change.resource] : [];
      const host = hosts.find(({ metadata }) => metadata.name === fleet.hostName);
      const found = host?.status.drivers.find(({ name }) => name === plan.driver);
      if (!host || !hostReady(host) || !found) continue;
      if (found.available) return host;
      throw new CommandError(
        exitCodes.badOutcome,
        `the driver "${plan.driver}" does not work here: ${found.reason ?? 'it does not say why'}`,
        {
          advice:
            plan.driver === 'qemu' && plan.accelerator !== 'kvm'
              ? 'apt-get install qemu-system-x86 qemu-utils; or try Berth without real guests: --driver fake'
              : undefined,
        },
      );
    }
    throw new Interrupted();
  } catch (error) {
    if (!(error instanceof Interrupted) || stopped.aborted) throw error;
    throw new CommandError(
      exitCodes.timedOut,
      `host "${fleet.hostName}" was not ready after ${seconds(hostReadyWithinMs)}`,
    );
  } finally {
    timer.cancel();
  }
}

export function hostText({ status }: Host): string {
  const { VCPU: cpus, MEMORY_MB: mebi } = status.capacity ?? {};
  const reason = status.drivers.find(({ available }) => available)?.reason;
  return `${cpus ?? '?'} CPUs, ${mebi === undefined ? '?' : memory(mebi)}, ${driversOf(status.drivers)}${reason ? ` (${shortened(reason)})` : ''}`;
}

/** The beginning of a long reason; `berth host show` shows all of it. */
function shortened(reason: string): string {
  const [first = ''] = /^(?:KVM is not usable: )?.*?(?=: |; |\n|$)/.exec(reason) ?? [];
  return visible(first.length > 90 ? `${first.slice(0, 89)}…` : first);
}
