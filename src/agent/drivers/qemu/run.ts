// Starts the QEMU process of a guest, or adopts the one that an earlier agent started. The process lives in its own session, so that neither the
// agent's death nor a closed terminal reaches it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DriverError } from '../../host/driver-error.ts';
import { socketFolder } from '../../host/guest-user.ts';
import { identify, type ProcessIdentity } from '../../host/processes.ts';
import { toolEnvironment } from '../../host/run-tool.ts';
import type { Run } from '../guest-life/hypervisor.ts';
import { qemuFiles } from './command-line.ts';
import { type RunOptions, superviseQemu } from './supervise-qemu.ts';

/** Starts QEMU. `onProcess` runs as soon as the process exists, before QEMU is asked anything. */
export async function launchRun(
  options: RunOptions,
  call: {
    readonly program: string;
    readonly arguments: readonly string[];
    readonly onProcess: (process: ProcessIdentity) => Promise<void>;
  },
): Promise<Run> {
  await rm(join(options.directory, await socketFolder(options.directory), qemuFiles.qmp), { force: true });
  const stderrPath = join(options.directory, qemuFiles.stderr);
  await rm(stderrPath, { force: true });
  const stderr = await open(stderrPath, 'a', 0o600);
  let exit: string | undefined;
  try {
    const child = spawn(call.program, [...call.arguments], {
      cwd: options.directory,
      detached: true,
      stdio: ['ignore', 'ignore', stderr.fd],
      env: { ...toolEnvironment },
    });
    child.unref();
    child.on('exit', (code, signal) => {
      exit = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    });
    await once(child, 'spawn');
    if (child.pid === undefined) throw new DriverError('HypervisorFailed', `cannot start ${call.program}`);
    // A process that has ended already is supervised too: the supervision reports its end.
    const hypervisor = (await identify(child.pid)) ?? { pid: child.pid, startTicks: 0 };
    const run = superviseQemu(options, { hypervisor, exit: () => exit });
    try {
      await call.onProcess(hypervisor);
    } catch (error) {
      await run.end(); // a process that is not in the record must not live
      throw error;
    }
    return run;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new DriverError(
        'HypervisorFailed',
        `cannot start a guest: ${call.program} is not installed; install the package qemu-system-x86`,
        error,
      );
    }
    throw error;
  } finally {
    await stderr.close();
  }
}

/** Adopts a process that an earlier run of the agent started. */
export function adoptRun(options: RunOptions, hypervisor: ProcessIdentity): Run {
  return superviseQemu(options, { hypervisor, exit: () => undefined, left: options.publishedPorts });
}
