// What a guest with UEFI or a TPM has beside its disk: its variables, and the state of its TPM. Each is there whole or not at all, and one
// that is there is kept: a guest whose keys are lost cannot open its disk.

import { constants, copyFile, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Boot } from '../../../../api/instances/firmware.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { putInPlace } from '../../../host/write-whole.ts';
import { guestFiles } from '../guest-files.ts';
import { firmwareFiles } from './firmware.ts';

/** Names of files in a guest's folder. */
export function bootFilesOf({ firmware, tpm }: Boot): string[] {
  return [...(firmware === undefined ? [] : [guestFiles.uefiVariables]), ...(tpm ? [guestFiles.tpmState] : [])];
}

export async function makeBootFiles(
  directory: string,
  { instanceId, firmware, tpm }: Boot & { readonly instanceId: string },
): Promise<void> {
  if (firmware !== undefined) {
    const { variables } = firmwareFiles(firmware);
    await makeFile(join(directory, guestFiles.uefiVariables), (temporary) =>
      copyFile(variables, temporary, constants.COPYFILE_EXCL).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
        const message = `cannot create ${instanceId}: ${variables} is not there; install the package ovmf on its host`;
        throw new DriverError('NotPossible', message, error);
      }),
    );
  }
  // Empty: the TPM is made when it is first switched on.
  if (tpm)
    await makeFile(join(directory, guestFiles.tpmState), async (temporary) => (await open(temporary, 'wx')).close());
}

/** Throws when one is missing: a new one in its place would hide that. */
export async function assertBootFiles(directory: string, boot: Boot & { readonly instanceId: string }): Promise<void> {
  for (const name of bootFilesOf(boot)) {
    const path = join(directory, name);
    if (await exists(path)) continue;
    const what = name === guestFiles.tpmState ? 'the state of its TPM' : 'its UEFI variables';
    const message = `cannot start ${boot.instanceId}: ${what}, ${path}, is missing; put it back, or delete the instance`;
    throw new DriverError('Internal', message);
  }
}

async function makeFile(path: string, write: (temporary: string) => Promise<void>): Promise<void> {
  if (await exists(path)) return;
  const temporary = `${path}.tmp`;
  await rm(temporary, { force: true });
  try {
    await write(temporary);
    await putInPlace(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
