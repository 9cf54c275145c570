import { expect, it } from 'vitest';
import { type BootFields, bootOf, bootText } from './firmware.ts';

it.each<[string, BootFields, BootFields | undefined, ReturnType<typeof bootOf>, string | undefined]>([
  ['has a BIOS by default', {}, undefined, {}, undefined],
  ['may say so itself', { firmware: 'bios', tpm: false }, {}, {}, undefined],
  ['takes what its image needs', {}, { firmware: 'uefi', tpm: true }, { firmware: 'uefi', tpm: true }, 'UEFI, TPM'],
  [
    'wins over its image',
    { firmware: 'uefi-secure-boot', tpm: false },
    { firmware: 'uefi', tpm: true },
    { firmware: 'uefi-secure-boot' },
    'UEFI with secure boot',
  ],
  ['may go back to a BIOS', { firmware: 'bios' }, { firmware: 'uefi', tpm: true }, { tpm: true }, 'TPM'],
])('an instance %s', (_, spec, image, boot, text) => {
  expect(bootOf(spec, image)).toEqual(boot);
  expect(bootText(boot)).toBe(text);
});
