// Scenario: everything about a run that its seed decides before it begins: how large the fleet is, how full, what its people do and
// what goes wrong. Each seed draws its own subset of faults (swarm testing), so that rare combinations come up.

import type { BuggifyPlace } from '../base/buggify.ts';
import type { Prng } from '../base/prng.ts';
import type { Policy } from '../core/state/context.ts';
import type { Amounts } from '../api/resources/metadata.ts';
import { type FaultKind, faults } from './faults/registry.ts';
import type { ClockFaults } from './world/process-clock.ts';
import { drawUnusual } from './unusual.ts';
import { drawWeather, type Weather } from './world/weather.ts';

/** Instead of a mean time: this kind never happens. */
export const neverMs = Number.POSITIVE_INFINITY;

/** The project of some tenants; hosts may be dedicated to it. */
export const otherProject = 'ci';

export interface Scenario {
  readonly controlPlanes: number;
  readonly stickyClients: boolean;
  readonly hosts: readonly Amounts[];
  readonly instancesMax: number;
  readonly tenants: number;
  /** How long faults and new work go on. */
  readonly stormMs: number;
  readonly betweenCallsMsMean: number;
  readonly weather: { readonly calm: Weather; readonly stormy: Weather };
  /** Each with the mean time between two strikes. */
  readonly faults: readonly { readonly kind: FaultKind; readonly everyMsMean: number }[];
  /** Places where production code does the unusual, each with its rate in thousandths. */
  readonly unusual: ReadonlyMap<BuggifyPlace, number>;
  /** The clock of each machine, servers first: its offset and its rate. */
  readonly clocks: readonly ClockFaults[];
  /** A backup made in the storm is restored when the cluster is at rest. */
  readonly restored: boolean;
  /** Faults also happen during the restore and for some time after it. */
  readonly restoredInStorm: boolean;
  /** Not repaired when the storm ends: the first server, the last host. */
  readonly staysDead: { readonly controlPlane: boolean; readonly host: boolean };
  /** Machines have watchdog devices, and instances rules for the loss of their host. */
  readonly losesHosts?: true;
  /** Workloads are updated all the time. calm: nothing else goes wrong with hosts and guests. */
  readonly updates?: 'calm' | 'stormy';
  /** An operator moves instances between hosts. */
  readonly moves?: true;
  /** Machines are prepared ahead. */
  readonly preparesSpares?: true;
  /** A user resizes instances. */
  readonly resizes?: true;
  /** There are warm pools, one of them for jobs. */
  readonly keepsWarm?: true;
  /** An operator drains hosts, and there is a workload to be replaced. */
  readonly drainsHosts?: true;
  readonly heartbeatMs: number;
  readonly offlineAfterMs: number;
  readonly restartDelayMs: number;
  /** How many instances may exist at once: of all images, and of one image. */
  readonly limits: Pick<Policy, 'maxConcurrency' | 'capacityMap'>;
  /** The tenants' projects, in turn. */
  readonly projects: readonly string[];
  /** How many instances the project `default` may have; missing: no limit. */
  readonly quota?: number;
  readonly guest: {
    readonly pullMs: number;
    readonly cloneMs: number;
    readonly startMs: number;
    readonly bootMs: number;
    readonly shutdownMs: number;
  };
}

export function drawScenario(prng: Prng): Scenario {
  const between = (min: number, max: number): number => min + prng.below(max - min + 1);
  const hosts = between(1, 8);
  // Mostly small hosts, so that claims collide; sometimes with room to move elsewhere.
  const roominess = prng.chance(1, 3) ? between(2, 4) : 1;
  const heartbeatMs = between(1, 4) * 1000;
  const instancesMax = Math.max(5, Math.min(60, between(1, 8) * hosts));
  const controlPlanes = prng.chance(1, 4) ? 1 : prng.chance(1, 4) ? 3 : 2;
  // From one or two kinds, which show what each does alone, to nearly all at once.
  const kindsInTen = [1, 3, 4, 6][prng.below(4)] ?? 4;
  const drawFaults = (last: boolean): Scenario['faults'] =>
    faults
      .filter(({ drawnLast = false }) => drawnLast === last)
      .flatMap(({ kind }) => (prng.chance(kindsInTen, 10) ? [{ kind, everyMsMean: between(4, 40) * 1000 }] : []))
      // When the only host lies, the checkers have nothing left to check.
      .filter(({ kind }) => kind !== 'rogue-agent' || hosts > 1);
  const scenario: Scenario = {
    controlPlanes,
    stickyClients: prng.chance(2, 3),
    hosts: Array.from({ length: hosts }, () => ({
      VCPU: between(1, 6) * roominess,
      MEMORY_MB: between(1, 6) * roominess * 1024,
      DISK_GB: between(2, 20) * roominess,
    })),
    instancesMax,
    tenants: between(2, 5),
    stormMs: between(20, 90) * 1000,
    betweenCallsMsMean: prng.chance(1, 4) ? between(5, 50) : between(1, 20) * 100,
    weather: drawWeather(prng),
    faults: drawFaults(false),
    heartbeatMs,
    offlineAfterMs: heartbeatMs * between(3, 6),
    restartDelayMs: prng.chance(1, 2) ? between(0, 1000) : between(1, 15) * 1000,
    guest: {
      pullMs: between(0, 2000),
      cloneMs: between(0, 100),
      startMs: between(0, 300),
      bootMs: between(100, 4000),
      shutdownMs: between(0, 800),
    },
    limits: {
      ...(prng.chance(1, 5) ? { maxConcurrency: between(1, 12) } : {}),
      ...(prng.chance(1, 5) ? { capacityMap: { tiny: between(0, 5) } } : {}),
    },
    ...(prng.chance(1, 5) ? { quota: between(1, instancesMax) } : {}),
    projects: prng.chance(1, 2) ? ['default', otherProject] : ['default'],
    unusual: drawUnusual(prng),
    clocks: drawClocks(prng, controlPlanes + hosts),
    staysDead: { controlPlane: controlPlanes > 1 && prng.chance(1, 6), host: hosts > 1 && prng.chance(1, 6) },
    restored: prng.chance(1, 5),
    restoredInStorm: prng.chance(1, 2),
  };
  return { ...scenario, faults: [...scenario.faults, ...drawFaults(true)] };
}

/** The clocks of two machines never agree. In some fleets they are up to 50 minutes apart, in some they run at different rates. */
function drawClocks(prng: Prng, machines: number): ClockFaults[] {
  const wallOffsetMsMax = prng.chance(1, 4) ? 1_500_000 : 1000;
  const ratePercentMax = prng.chance(1, 3) ? 10 : 0;
  return Array.from({ length: machines }, () => ({
    wallOffsetMs: prng.below(2 * wallOffsetMsMax) - wallOffsetMsMax,
    rate: 1 + (prng.below(2 * ratePercentMax + 1) - ratePercentMax) / 100,
  }));
}
