import { expect, it } from 'vitest';
import type { GuestPort } from '../../../api/resources/guest.ts';
import { placement } from '../../controllers/placement.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';
import { explain } from '../../explain/explain.ts';

const port = (hostPort: number, protocol: 'tcp' | 'udp' = 'tcp'): GuestPort => ({ guestPort: 80, hostPort, protocol });

it('a port of a host is given once, to tcp and udp apart; what nobody chose is in nobody’s way', () => {
  const cache = testCache([testImage(), ...testHost('a'), ...testHost('b')]);
  const ctx = testContext();
  const hostOf = (name: string, ports: GuestPort[]) => {
    addRecord(cache, testInstance(name, { ports }));
    commitPlan(cache, placement.reconcile(cache, `instances/default/${name}`, ctx));
    return cache.get('instance', `instances/default/${name}`)?.value.status.host;
  };
  expect(hostOf('one', [port(8080)])).toBe('a');
  expect(hostOf('two', [port(8080)])).toBe('b');
  expect(hostOf('three', [port(8080)])).toBeUndefined();
  expect(hostOf('udp', [port(8080, 'udp')])).toBeDefined();
  expect(hostOf('any', [port(0)])).toBeDefined();
  const refusals = explain(cache, testInstance('four', { ports: [port(8080)] })).hosts.flatMap((host) => host.refusals);
  expect(refusals).toContainEqual({
    rule: 'ports',
    reason: 'PortConflict',
    message: 'its port tcp/8080 is used by another instance',
  });
});
