// What QEMU can do on this host: whether it is installed, and under which accelerator guests run. Starts no guest but the
// probe's.

import { join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import { DriverError, type Fingerprint } from '../driver.ts';
import { kvmWorks } from './kvm-probe.ts';
import { runTool } from '../vm/run-tool.ts';

const kvmProbeTimeoutMs = 5000;

export interface HostLookOptions {
  readonly clock: Clock;
  readonly qemu: string;
  readonly qemuImg: string;
  readonly root: () => Promise<string>;
  readonly accelerator: AcceleratorSetting;
  /** Default /dev/kvm. */
  readonly kvmDevice?: string | undefined;
}

export interface HostLook {
  /** Looks again each time; calls at the same time share one look. */
  fingerprint(): Promise<Fingerprint>;
  /** The same until the agent restarts. Throws `HypervisorFailed`. */
  chosenAccelerator(): Promise<Accelerator>;
}

export function createHostLook(options: HostLookOptions): HostLook {
  let fingerprinting: Promise<Fingerprint> | undefined;
  let accelerating: Promise<Fingerprint> | undefined;

  const fingerprint = (): Promise<Fingerprint> => {
    fingerprinting ??= lookAtHost(options).finally(() => {
      fingerprinting = undefined;
    });
    return fingerprinting;
  };

  const chosenAccelerator = async (): Promise<Accelerator> => {
    accelerating ??= fingerprint();
    const seen = await accelerating;
    if (seen.accelerator !== undefined) return seen.accelerator;
    accelerating = undefined; // QEMU may be installed later
    throw new DriverError('HypervisorFailed', seen.reason ?? 'QEMU is not usable on this host');
  };

  return { fingerprint, chosenAccelerator };
}

async function lookAtHost(options: HostLookOptions): Promise<Fingerprint> {
  const { clock, qemu, qemuImg, root, accelerator } = options;
  try {
    const version = await runTool(clock, { program: qemu, arguments: ['--version'], timeoutMs: 10_000 });
    if (!version.ok) return unavailable(qemu, 'qemu-system-x86', version);
    const image = await runTool(clock, { program: qemuImg, arguments: ['--version'], timeoutMs: 10_000 });
    if (!image.ok) return unavailable(qemuImg, 'qemu-utils', image);
    const number = /version (\S+)/.exec(version.output)?.[1] ?? 'unknown';
    const seen = { available: true, version: number } as const;
    if (accelerator === 'tcg') return { ...seen, accelerator };
    const kvm = await kvmWorks({
      program: qemu,
      clock,
      timeoutMs: kvmProbeTimeoutMs,
      kvmDevice: options.kvmDevice ?? '/dev/kvm',
      memoryPath: join(await root(), 'kvm-probe.json'),
      qemuVersion: version.output,
    });
    if (kvm.works) return { ...seen, accelerator: 'kvm' };
    if (accelerator === 'kvm') return { ...seen, available: false, reason: onlyKvm(kvm.reason) };
    return { ...seen, accelerator: 'tcg', reason: `${kvm.reason}; guests run under TCG, ten times slower` };
  } catch (error) {
    return { available: false, reason: `cannot look at QEMU on this host: ${describeError(error)}` };
  }
}

/** Where the setting rules out TCG. */
export const onlyKvm = (reason: string): string =>
  `KVM is not usable: ${reason}; with the setting "accelerator: kvm" no guest runs here: mend KVM, or set it to auto or tcg`;

function unavailable(
  program: string,
  packageName: string,
  result: { readonly reason: string; readonly output: string },
): Fingerprint {
  return {
    available: false,
    reason:
      result.reason === 'missing'
        ? `${program} is not installed; install the package ${packageName}`
        : `${program} --version fails (${result.reason}): ${result.output}`,
  };
}
