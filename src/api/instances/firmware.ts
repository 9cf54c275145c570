// Firmware: what a virtual machine boots with, and its TPM. Fields of instances and images, and what they mean together.

import { type Static, Type } from 'typebox';

export const Firmware = Type.Enum(['bios', 'uefi', 'uefi-secure-boot']);
export type Firmware = Static<typeof Firmware>;

const Uefi = Type.Enum(['uefi', 'uefi-secure-boot']);
export type Uefi = Static<typeof Uefi>;

export const firmwareHelp =
  'firmware of a virtual machine; uefi-secure-boot: it boots only what is signed with a key of Microsoft';
export const tpmHelp = 'whether it has a virtual TPM 2.0, whose state is kept beside its disk';

/** What differs from a machine with a BIOS and without a TPM. */
export const bootFields = { firmware: Type.Optional(Uefi), tpm: Type.Optional(Type.Literal(true)) } as const;

export interface Boot {
  readonly firmware?: Uefi;
  readonly tpm?: true;
}

export interface BootFields {
  readonly firmware?: Firmware | undefined;
  readonly tpm?: boolean | undefined;
}

/** The fields of an instance win over those of its image. Of equal meaning, an equal result: never a field that is undefined. */
export function bootOf(spec: BootFields, image: BootFields | undefined): Boot {
  const firmware = spec.firmware ?? image?.firmware ?? 'bios';
  const tpm = spec.tpm ?? image?.tpm ?? false;
  return { ...(firmware === 'bios' ? {} : { firmware }), ...(tpm ? { tpm } : {}) };
}

export function bootText({ firmware, tpm }: Boot): string | undefined {
  const words = { uefi: 'UEFI', 'uefi-secure-boot': 'UEFI with secure boot' };
  const parts = [...(firmware === undefined ? [] : [words[firmware]]), ...(tpm ? ['TPM'] : [])];
  return parts.length === 0 ? undefined : parts.join(', ');
}
