// Faults: things that go wrong at drawn moments while the storm lasts. Whatever is broken here is also mended here, at the latest when
// the storm ends.

import { sleep } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';
import type { FakeFault, FakeWorld } from '../agent/drivers/fake/world.ts';
import { driverErrorCodes } from '../agent/host/driver-error.ts';
import type { Store } from '../store/store.ts';
import type { ControlPlaneProcess } from './world/control-plane-process.ts';
import type { Database } from './world/sim-database.ts';
import type { HostProcess } from './world/host-process.ts';
import type { Network, Partition } from './world/network.ts';
import type { ProcessClock } from './world/process-clock.ts';
import { type FaultKind, neverMs, type Scenario } from './scenario.ts';
import { nothingToHit, type Tally } from './batch/tally.ts';

export interface FaultTargets {
  readonly scenario: Scenario;
  /** Of the one who breaks things: it never dies. */
  readonly clock: ProcessClock;
  readonly prng: Prng;
  readonly tally: Tally;
  readonly controlPlanes: readonly ControlPlaneProcess[];
  readonly hosts: readonly HostProcess[];
  readonly network: Network;
  readonly world: FakeWorld;
  readonly store: Store;
  readonly database: Database;
  /** How slow calls of the store are just now; undefined: as always. */
  readonly crawl: (latencyMsMean: number | undefined) => void;
  /** The newest revision there is. */
  readonly revision: () => number;
  /** What only an operator can do, through the API. */
  readonly operator: {
    /** Each answers whether it came about. */
    pause(host: string): Promise<boolean>;
    reserve(host: string): Promise<boolean>;
    rule(host: string): Promise<boolean>;
  };
  /** Both answer whether they got an answer. */
  readonly rogueClient: { strike(): Promise<boolean> };
  /** On the first host. */
  readonly rogueAgent: { strike(): Promise<boolean> };
  /** Nothing is promised of that host's guests from now on. */
  readonly distrust: (host: string) => void;
  /** Many creates at once. Answers how many. */
  readonly burst: (count: number) => number;
  readonly trace: (line: () => string) => void;
}

export interface Faults {
  /** No new ones, and all that is broken gets mended. Resolves when it is. */
  end(): Promise<void>;
}

/** In times that a host may be silent. */
const floodedSilencesMax = 2;
/** When there was nothing to hit yet: no guest ran, say. */
const retryMs = 250;
/** A minute: what found nothing to hit in the whole storm may hit something when it is over. */
const triesInCalm = 240;

export function startFaults(targets: FaultTargets): Faults {
  const { scenario, clock, prng, tally, controlPlanes, hosts, network } = targets;
  const over = new AbortController();
  let lied = false;
  const running = scenario.faults.map(({ kind, everyMsMean }) => repeat(kind, everyMsMean));

  /** Each kind that was drawn is to happen: the first early in the storm, and as soon as there is something to hit. */
  async function repeat(kind: FaultKind, everyMsMean: number): Promise<void> {
    const own = prng.split();
    if (everyMsMean === neverMs) return;
    const firstMsMax = Math.ceil(Math.min(2 * everyMsMean, scenario.stormMs / 2));
    for (let waitMs = 1 + own.below(firstMsMax); ; ) {
      await sleep(clock, waitMs, over.signal);
      if (over.signal.aborted) break;
      await strike(kind, own);
      waitMs = tally.counts.has(kind) ? 1 + own.below(2 * everyMsMean) : retryMs;
    }
    for (let tries = 0; !tally.counts.has(kind) && tries < triesInCalm; tries++) {
      await sleep(clock, retryMs);
      await strike(kind, own);
    }
    // Where hosts are small, guests may never run, or none be made since.
    if (!tally.counts.has(kind) && /^(guest|driver|power-button)-/.test(kind)) tally.hit(`${nothingToHit}-${kind}`);
  }

  const jumpMs = (own: Prng): number => own.below(120_000) - 60_000;
  const downMs = (own: Prng): number => own.below(own.chance(1, 3) ? 20_000 : 3000);

  /** Of each kind one at a time waits for a guest that meets it. */
  const waiting = new Set<FaultKind>();
  const inject = (kind: FaultKind, fault: FakeFault, what: string): void => {
    if (waiting.has(kind)) return;
    waiting.add(kind);
    targets.world.inject(fault, () => {
      waiting.delete(kind);
      tally.hit(kind);
      targets.trace(() => `fault ${kind}: ${what}`);
    });
  };

  /** Counted only when it came about. */
  const strike = async (kind: FaultKind, own: Prng): Promise<void> => {
    const hit = (what: string): void => {
      tally.hit(kind);
      targets.trace(() => `fault ${kind}: ${what}`);
    };
    const up = controlPlanes.filter((each) => each.up);
    const plane = pick(up, own);
    const host = pick(hosts, own);
    const agent = pick(
      hosts.filter((each) => each.up),
      own,
    );
    const guest = pick(
      targets.world.guests().filter(({ running: runs }) => runs),
      own,
    );
    switch (kind) {
      case 'server-crash':
      case 'server-stop':
        if (!plane || (kind === 'server-stop' && plane.cache === undefined)) return;
        hit(plane.name);
        if (kind === 'server-stop') await stopWithin(plane, own);
        else plane.crash();
        await sleep(clock, downMs(own), over.signal);
        return plane.start();
      case 'server-pause':
        if (!plane) return;
        hit(plane.name);
        return plane.pause(own.below(8000));
      case 'server-flooded':
        if (!plane) return;
        hit(plane.name);
        plane.flood(true);
        await sleep(clock, 500 + own.below(Math.ceil(floodedSilencesMax * scenario.offlineAfterMs)), over.signal);
        plane.flood(false);
        // One silence meets one flood, or none: at the edges of each the product may see rest where the checker counts a flood.
        return sleep(clock, floodedSilencesMax * scenario.offlineAfterMs, over.signal);
      case 'server-clock-jump':
        if (!plane) return;
        hit(plane.name);
        return plane.jumpWallTime(jumpMs(own));
      case 'server-store-parted':
        if (!plane) return;
        hit(plane.name);
        plane.partFromStore(true);
        await sleep(clock, 500 + own.below(own.chance(1, 2) ? 5000 : 40_000), over.signal);
        return plane.partFromStore(false);
      case 'all-servers-crash': {
        // All agents lose their server at once, and all come back together.
        if (up.length === 0) return;
        hit(`${up.length}`);
        for (const each of up) each.crash();
        await sleep(clock, downMs(own), over.signal);
        for (const each of up) each.start();
        return;
      }
      case 'agent-crash':
      case 'agent-stop':
        if (!agent) return;
        hit(agent.name);
        if (kind === 'agent-stop') await stopWithin(agent, own);
        else agent.crash();
        await sleep(clock, downMs(own), over.signal);
        return agent.start();
      case 'agent-pause':
        if (!agent) return;
        hit(agent.name);
        return agent.pause(own.below(30_000));
      case 'agent-clock-jump':
        if (!agent) return;
        hit(agent.name);
        return agent.jumpWallTime(jumpMs(own));
      case 'host-power-loss':
        if (!agent) return;
        hit(agent.name);
        agent.losePower();
        await sleep(clock, 500 + downMs(own), over.signal);
        return agent.start();
      case 'partition': {
        if (!host) return;
        const partition = pick<Partition>(['both', 'both', 'to-server', 'from-server'], own) ?? 'both';
        hit(`${host.name} ${partition}`);
        tally.hit(`partition-${partition}`);
        network.part(host.name, partition);
        await sleep(clock, 500 + own.below(own.chance(1, 2) ? 5000 : 40_000), over.signal);
        return network.heal(host.name);
      }
      case 'all-hosts-parted':
        hit(`${hosts.length}`);
        for (const { name } of hosts) network.part(name, 'both');
        await sleep(clock, 500 + downMs(own), over.signal);
        for (const { name } of hosts) network.heal(name);
        return;
      case 'guest-crash':
        if (!guest) return;
        hit(`${guest.instanceId} on ${guest.host}`);
        return targets.world.crash(guest.host, guest.instanceId);
      case 'guest-held': // somebody holds it still, or lets it go on, past its agent
        if (!guest) return;
        hit(`${guest.instanceId} on ${guest.host}`);
        return targets.world.setSuspended(guest, guest.state === 'running');
      case 'guest-power-off':
        if (!guest) return;
        hit(`${guest.instanceId} on ${guest.host}`);
        return targets.world.powerOff(guest.host, guest.instanceId);
      case 'driver-fails': {
        const codes = driverErrorCodes.filter(
          (code) =>
            code !== 'NoSuchGuest' && code !== 'NotPossible' && code !== 'Aborted' && code !== 'ContainerEngineFailed', // as HypervisorFailed
        );
        const code = pick(codes, own) ?? 'Internal';
        const step = pick(['pull', 'clone', 'start'] as const, own) ?? 'start';
        return inject(kind, { do: 'fail', step, code }, `${step} ${code}`);
      }
      case 'driver-slow':
        return inject(kind, { do: 'slow', factor: own.chance(1, 4) ? 16 : 2 }, 'a guest');
      case 'guest-dies-early':
        return inject(kind, { do: own.chance(1, 2) ? 'crash' : 'power-off', afterMs: own.below(5000) }, 'a guest');
      case 'power-button-ignored':
        return inject(kind, { do: 'ignore-power-button' }, 'a guest');
      case 'store-compacted':
        if (targets.revision() === 0) return;
        hit(`below ${targets.revision()}`);
        return targets.store.compact(Math.max(1, targets.revision() - own.below(20)));
      case 'store-crash':
        if (own.chance(3, 4))
          return targets.database.crashUnderNext({ downMs: 200 + downMs(own), onCrash: () => hit('') });
        hit('');
        return targets.database.crash(200 + downMs(own));
      case 'store-away':
        hit('');
        return leaveStore(5000 + own.below(55_000));
      case 'store-crawls':
        hit('');
        targets.crawl(50 + own.below(own.chance(1, 3) ? 3000 : 400));
        await sleep(clock, 1000 + own.below(20_000), over.signal);
        return targets.crawl(undefined);
      case 'create-burst':
        if (targets.burst(5 + own.below(20)) > 0) hit('');
        return;
      case 'rogue-client':
        if (await targets.rogueClient.strike()) hit('');
        return;
      case 'rogue-agent':
        // With one host only there is nobody left of whom anything is promised.
        if (hosts.length < 2 || !hosts[0]) return;
        if (!lied) targets.distrust(hosts[0].name);
        lied = true;
        if (await targets.rogueAgent.strike()) hit(hosts[0].name);
        return;
      case 'host-paused':
        if (host && (await targets.operator.pause(host.name))) hit(host.name);
        return;
      case 'host-reserve':
        if (host && (await targets.operator.reserve(host.name))) hit(host.name);
        return;
      case 'host-rules':
        if (host && (await targets.operator.rule(host.name))) hit(host.name);
        return;
    }
  };

  /** A supervisor's patience: who does not stop in time is killed. */
  const stopWithin = async (stopped: ControlPlaneProcess | HostProcess, own: Prng): Promise<void> => {
    await Promise.race([stopped.stop(), sleep(clock, 2000 + own.below(8000))]);
    stopped.crash();
  };

  const leaveStore = async (awayMs: number): Promise<void> => {
    targets.database.leave(awayMs);
    await sleep(clock, awayMs); // nobody can bring it back sooner
  };

  return {
    async end() {
      over.abort();
      await Promise.all(running);
      for (const plane of controlPlanes) plane.partFromStore(false);
      targets.crawl(undefined);
      targets.database.crashUnderNext(undefined);
      // What was said in the name of its sessions must not outlive them.
      if (lied) hosts[0]?.crash();
      const { staysDead } = scenario;
      for (const plane of staysDead.controlPlane ? controlPlanes.slice(1) : controlPlanes) plane.start();
      for (const host of staysDead.host ? hosts.slice(0, -1) : hosts) {
        network.heal(host.name);
        host.start();
      }
      if (staysDead.controlPlane) controlPlanes[0]?.crash();
      if (staysDead.host) hosts.at(-1)?.losePower();
    },
  };
}

function pick<T>(items: readonly T[], prng: Prng): T | undefined {
  return items[prng.below(Math.max(1, items.length))];
}
