// The flags that say how a virtual machine boots.

import type { Command } from 'commander';
import { Firmware } from '../../api/instances/firmware.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { oneOf } from './place-options.ts';

export interface BootOptions {
  readonly firmware?: string;
  readonly tpm?: boolean;
}

export function withBootOptions(command: Command): Command {
  return command
    .option('--firmware <firmware>', `${Firmware.enum.join(', ')}; default: the image's, then bios`)
    .option('--tpm', 'with a virtual TPM 2.0')
    .option('--no-tpm', 'without one, even if the image asks for it');
}

export function bootFieldsOf({ firmware, tpm }: BootOptions): Pick<InstanceSpec, 'firmware' | 'tpm'> {
  return {
    ...(firmware === undefined ? {} : { firmware: oneOf('--firmware', firmware, Firmware.enum) }),
    ...(tpm === undefined ? {} : { tpm }),
  };
}
