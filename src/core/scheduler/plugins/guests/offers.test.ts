import { expect, it } from 'vitest';
import type { DriverOffer } from '../../../../api/resources/host.ts';
import { verdictsOn } from '../test-rule.ts';

const host = (name: string, offers?: DriverOffer[]) => ({
  status: { drivers: [{ name, available: true, ...(offers ? { offers } : {}) }] },
});
const hosts = { able: host('qemu', ['tcp', 'http', 'exec']), old: host('qemu'), zones: host('zones', []) };
const tcp = { tcp: { port: 80 } };

it('keeps checks away from hosts whose agent or driver does not make them', () => {
  expect(verdictsOn('offers', hosts, { checks: { liveness: tcp } })).toEqual({
    able: 'fits',
    old: 'OffersMissing: its agent does not know tcp checks of its driver qemu; update the agent',
    zones: 'OffersMissing: its driver zones has no tcp checks',
  });
});

it('keeps containers with mounts to agents that know them', () => {
  const containers = [{ name: 'main', env: {}, ports: [], mounts: [{ hostPath: '/srv/a', path: '/a' }] }];
  const driver = 'container';
  const engines = { able: host(driver, ['mounts']), old: host(driver) };
  expect(verdictsOn('offers', engines, { containers, placement: { driver } })).toEqual({
    able: 'fits',
    old: 'OffersMissing: its agent does not know mounts of containers of its driver container; update the agent',
  });
});

it('keeps guests with UEFI or a TPM to hosts that have the packages, and says which are missing', () => {
  const boots = {
    able: host('qemu', ['uefi', 'uefi-secure-boot', 'tpm']),
    bare: host('qemu', ['tcp']),
    engine: host('container', ['tcp']),
  };
  const firmware = 'its driver qemu has no UEFI firmware';
  const engine = 'OffersMissing: its driver container has no';
  expect(verdictsOn('offers', boots, { firmware: 'uefi' })).toEqual({
    able: 'fits',
    bare: `OffersMissing: ${firmware}: install the package ovmf on the host`,
    engine: `${engine} UEFI firmware`,
  });
  expect(verdictsOn('offers', boots, { firmware: 'uefi-secure-boot' })).toMatchObject({
    bare: `OffersMissing: ${firmware} for secure boot: install the package ovmf on the host`,
  });
  expect(verdictsOn('offers', boots, { tpm: true })).toMatchObject({
    able: 'fits',
    bare: 'OffersMissing: its driver qemu has no virtual TPM: install the packages swtpm and swtpm-tools on the host',
    engine: `${engine} virtual TPM`,
  });
  expect(verdictsOn('offers', boots, { firmware: 'bios', tpm: false })).toMatchObject({ bare: 'fits' });
});

it('lets instances without either go anywhere', () => {
  expect(verdictsOn('offers', hosts, {})).toEqual({ able: 'fits', old: 'fits', zones: 'fits' });
});
