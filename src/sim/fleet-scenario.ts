// Fleet scenario: what a seed draws for a run of a whole fleet: thousands of hosts that register and send heartbeats, some hundreds of
// instances, a few faults, and a short storm. It tests how the parts scale; the small runs test the rest.

import type { Prng } from '../base/prng.ts';
import { type FaultKind, faultKinds } from './faults/registry.ts';
import type { Scenario } from './scenario.ts';
import { drawWeather } from './world/weather.ts';

const hostsCount = 2000;
/** Faults of one host or one guest of thousands; the rest of the fleet goes on. */
const kinds: readonly FaultKind[] = faultKinds.filter(
  (kind) =>
    kind.startsWith('agent-') || kind.startsWith('guest-') || kind.startsWith('driver-') || kind === 'partition',
);

export function drawFleet(prng: Prng): Scenario {
  const between = (min: number, max: number): number => min + prng.below(max - min + 1);
  const weather = drawWeather(prng);
  const heartbeatMs = between(15, 20) * 1000;
  return {
    controlPlanes: between(1, 2),
    stickyClients: true,
    hosts: Array.from({ length: hostsCount }, () => ({
      VCPU: between(4, 64),
      MEMORY_MB: between(4, 256) * 1024,
      DISK_GB: between(100, 2000),
    })),
    instancesMax: 400,
    tenants: 20,
    stormMs: between(5, 8) * 1000,
    betweenCallsMsMean: between(50, 150),
    weather,
    faults: kinds.flatMap((kind) => (prng.chance(1, 2) ? [{ kind, everyMsMean: between(2, 6) * 100 }] : [])),
    heartbeatMs,
    offlineAfterMs: heartbeatMs * 3,
    restartDelayMs: between(0, 2) * 1000,
    limits: {},
    projects: ['default'],
    unusual: new Map(),
    clocks: [],
    restored: false,
    restoredInStorm: false,
    staysDead: { controlPlane: false, host: false },
    guest: { pullMs: 500, cloneMs: 50, startMs: 100, bootMs: 1000, shutdownMs: 200 },
  };
}
