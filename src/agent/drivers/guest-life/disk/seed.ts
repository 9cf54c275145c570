// The files of a guest's NoCloud seed, as a pure function. User-data of the user is passed on byte by byte, and never parsed.

import type { GuestSpec } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { metadataIdOf, nocloudTexts } from '../../../metadata/nocloud-texts.ts';
import type { IsoFile } from './iso9660.ts';

export interface SeedInput extends Pick<GuestSpec, 'instanceId' | 'incarnation' | 'hostname' | 'sshKeys' | 'userData'> {
  /** Of the host's operator; empty: none. */
  readonly vendorData: string;
  readonly macAddress: string;
}

/** The files of the seed. SSH keys are in meta-data, so that cloud-init adds them with any user-data. */
export function seedFiles(input: SeedInput): IsoFile[] {
  for (const key of input.sshKeys) {
    if (hasControlCharacter(key)) {
      throw new DriverError(
        'Internal',
        `cannot write the seed of ${input.instanceId}: an SSH key has a line break or control character; give one key per entry`,
      );
    }
  }
  const text = new TextEncoder();
  const files = {
    ...nocloudTexts({ ...input, metadataId: metadataIdOf(input) }),
    'network-config': networkConfig(input.macAddress),
  };
  return Object.entries(files).map(([name, data]) => ({ name, data: text.encode(data) }));
}

/** `set-name`, because older renderers of cloud-init use the key as the interface's name. */
function networkConfig(macAddress: string): string {
  return lines(
    'version: 2',
    'ethernets:',
    '  eth0:',
    '    match:',
    `      macaddress: "${macAddress}"`,
    '    set-name: eth0',
    '    dhcp4: true',
  );
}

const lines = (...all: string[]): string => `${all.join('\n')}\n`;

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 32 || text.charCodeAt(i) === 127) return true;
  return false;
}
