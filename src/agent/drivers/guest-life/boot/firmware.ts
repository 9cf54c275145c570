// The UEFI firmware of this host: Debian's package ovmf, whose files the guests of all drivers use. Looks only.

import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Uefi } from '../../../../api/instances/firmware.ts';
import type { BootOffer } from '../../../../api/resources/host.ts';
import type { Clock } from '../../../../base/clock.ts';
import { runTool } from '../../../host/run-tool.ts';

export interface FirmwareFiles {
  /** Read-only, shared by all guests. */
  readonly code: string;
  /** What the variables of a new guest begin as; for secure boot, with the keys of Microsoft. */
  readonly variables: string;
}

/** Sizes of 4 MiB: those of 2 MiB are too small for the keys that Windows adds, and Debian ends them. */
const names: Readonly<Record<Uefi, FirmwareFiles>> = {
  uefi: { code: 'OVMF_CODE_4M.fd', variables: 'OVMF_VARS_4M.fd' },
  'uefi-secure-boot': { code: 'OVMF_CODE_4M.ms.fd', variables: 'OVMF_VARS_4M.ms.fd' },
};

export const firmwareDirectory = '/usr/share/OVMF';

export function firmwareFiles(firmware: Uefi, directory = firmwareDirectory): FirmwareFiles {
  const { code, variables } = names[firmware];
  return { code: join(directory, code), variables: join(directory, variables) };
}

/** What guests of this host can have. `tools`: what their TPM needs. */
export async function bootOffersOf(
  clock: Clock,
  { tools, directory }: { readonly tools: readonly string[]; readonly directory?: string | undefined },
): Promise<BootOffer[]> {
  const firmware = await Promise.all(
    (['uefi', 'uefi-secure-boot'] as const).map(async (each) => {
      const { code, variables } = firmwareFiles(each, directory);
      return (await isFile(code)) && (await isFile(variables)) ? [each] : [];
    }),
  );
  const found = await Promise.all(
    tools.map(async (program) => (await runTool(clock, { program, arguments: ['--version'], timeoutMs: 10_000 })).ok),
  );
  return [...firmware.flat(), ...(found.every(Boolean) ? (['tpm'] as const) : [])];
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isFile(),
    () => false, // it is not there, or cannot be reached: then no guest can use it either
  );
}
