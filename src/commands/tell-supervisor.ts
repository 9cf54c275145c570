// Tells systemd that this process serves now, so that "systemctl start" returns then. Only a unit with Type=notify asks for it.

import type { Cli } from '../cli/cli.ts';
import { describeError } from '../base/log.ts';

/** Never rejects: without the word the start of the unit times out, and its log says why. */
export async function tellSupervisor({ environment, runProgram, stderr }: Cli): Promise<void> {
  if (!environment['NOTIFY_SOCKET']) return;
  try {
    const code = await runProgram('systemd-notify', ['--ready']);
    if (code !== 0) stderr.write(`berth: systemd-notify ended with ${code}\n`);
  } catch (error) {
    stderr.write(`berth: cannot tell systemd that the start is over: ${describeError(error)}\n`);
  }
}
