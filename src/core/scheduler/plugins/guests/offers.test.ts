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

it('lets instances without either go anywhere', () => {
  expect(verdictsOn('offers', hosts, {})).toEqual({ able: 'fits', old: 'fits', zones: 'fits' });
});
