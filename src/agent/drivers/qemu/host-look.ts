// What QEMU can do on this host: whether it is installed, and under which accelerator guests run. Starts no guest but the
// probe's.

import { join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import type { Fingerprint } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { bootOffersOf } from '../guest-life/boot/firmware.ts';
import { kvmFailed, kvmWorks, type ProbeImage } from './kvm-probe.ts';
import { tpmProgram } from './tpm.ts';
import { runTool, type ToolResult } from '../../host/run-tool.ts';

const bootSectorTimeoutMs = 5000;
const kernelTimeoutMs = 15_000; // a sound KVM needs one second; the agent waits 30 s for all of this

export interface HostLookOptions {
  readonly clock: Clock;
  readonly qemu: string;
  readonly qemuImg: string;
  readonly root: () => Promise<string>;
  readonly accelerator: AcceleratorSetting;
  /** What the TPM of a guest needs on the host. Default: swtpm. */
  readonly tpmTools?: readonly string[];
  /** Default /dev/kvm. */
  readonly kvmDevice?: string | undefined;
  /** How long a guest of the probe may take. Default 5 s, with a kernel 15 s. */
  readonly probeTimeoutMs?: number | undefined;
  /** KVM is tried with it, where there is one. */
  readonly probeImage?: (() => Promise<ProbeImage | undefined>) | undefined;
}

export interface HostLook {
  /** Looks again each time; calls at the same time share one look. */
  fingerprint(): Promise<Fingerprint>;
  /** As the last look found it. Throws `HypervisorFailed`. */
  chosenAccelerator(): Promise<Accelerator>;
  /** KVM could not run a guest: from now on it is looked at again. Absent: the setting allows nothing else. */
  readonly fallBack?: (from: { readonly image: string; readonly reason: string }) => Promise<void>;
  changes(): number;
}

export function createHostLook(options: HostLookOptions): HostLook {
  let fingerprinting: Promise<Fingerprint> | undefined;
  let chosen: Accelerator | undefined;
  let changes = 0;
  /** Guests that failed are noted one after another, and before anything is looked at. */
  let noting: Promise<void> = Promise.resolve();

  const look = async (): Promise<Fingerprint> => {
    const seen = await lookAtHost(options);
    if (seen.available) chosen = seen.accelerator; // a look that failed changes nothing
    return seen;
  };
  const fingerprint = async (): Promise<Fingerprint> => {
    await noting;
    fingerprinting ??= look().finally(() => {
      fingerprinting = undefined;
    });
    return fingerprinting;
  };

  const chosenAccelerator = async (): Promise<Accelerator> => {
    if (options.accelerator === 'tcg') return 'tcg'; // nothing has to be looked at
    await noting;
    if (chosen !== undefined) return chosen;
    const seen = await fingerprint();
    if (seen.available && seen.accelerator !== undefined) return seen.accelerator;
    throw new DriverError('HypervisorFailed', seen.reason ?? 'QEMU is not usable on this host');
  };

  const fallBack = (from: { readonly image: string; readonly reason: string }): Promise<void> => {
    const noted = noting.then(async () => {
      await fingerprinting; // which writes what it found to the same file
      const version = await versionOf(options);
      if (version.ok) await kvmFailed(await memoryOf(options, version.output), from);
      chosen = undefined;
      changes += 1;
    });
    noting = noted.catch(() => {}); // reported to the caller
    return noted;
  };
  return {
    fingerprint,
    chosenAccelerator,
    changes: () => changes,
    ...(options.accelerator === 'auto' ? { fallBack } : {}),
  };
}

async function lookAtHost(options: HostLookOptions): Promise<Fingerprint> {
  const { clock, qemu, qemuImg, accelerator } = options;
  try {
    const version = await versionOf(options);
    if (!version.ok) return unavailable(qemu, 'qemu-system-x86', version);
    const tool = await runTool(clock, { program: qemuImg, arguments: ['--version'], timeoutMs: 10_000 });
    if (!tool.ok) return unavailable(qemuImg, 'qemu-utils', tool);
    const number = /version (\S+)/.exec(version.output)?.[1] ?? 'unknown';
    const boots = await bootOffersOf(clock, { tools: options.tpmTools ?? [tpmProgram] });
    const seen = { available: true, version: number, boots } as const;
    if (accelerator === 'tcg') return { ...seen, accelerator };
    const image = await options.probeImage?.();
    const kvm = await kvmWorks({
      program: qemu,
      clock,
      timeoutMs: options.probeTimeoutMs ?? (image === undefined ? bootSectorTimeoutMs : kernelTimeoutMs),
      image,
      kvmDevice: options.kvmDevice ?? '/dev/kvm',
      ...(await memoryOf(options, version.output)),
    });
    if (kvm.works) return { ...seen, accelerator: 'kvm' };
    if (accelerator === 'kvm') return { ...seen, available: false, reason: onlyKvm(kvm.reason) };
    const reason = `KVM is not usable: ${kvm.reason}; guests run under TCG, ten times slower`;
    return { ...seen, accelerator: 'tcg', reason };
  } catch (error) {
    return { available: false, reason: `cannot look at QEMU on this host: ${describeError(error)}` };
  }
}

function versionOf({ clock, qemu }: HostLookOptions): Promise<ToolResult> {
  return runTool(clock, { program: qemu, arguments: ['--version'], timeoutMs: 10_000 });
}

async function memoryOf({ root }: HostLookOptions, qemuVersion: string): Promise<Parameters<typeof kvmFailed>[0]> {
  return { memoryPath: join(await root(), 'kvm-probe.json'), qemuVersion };
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
