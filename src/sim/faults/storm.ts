// The storm: strikes with the faults of a scenario at drawn moments. Whatever a fault breaks is also repaired, at the latest when the
// storm ends.

import { sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { FakeFault } from '../../agent/drivers/fake/world.ts';
import { nothingToHit } from '../batch/tally.ts';
import { neverMs, type Scenario } from '../scenario.ts';
import { type Fault, type FaultWorld, pick, type Strike } from './fault.ts';
import { type FaultKind, faults } from './registry.ts';

export interface StormOptions {
  readonly scenario: Pick<Scenario, 'faults' | 'stormMs' | 'staysDead'>;
  readonly prng: Prng;
  readonly world: FaultWorld;
  readonly trace: (line: () => string) => void;
}

/** After a strike that found no target. */
const retryMs = 250;
/** A minute: a fault that found no target in the whole storm may find one when the storm is over. */
const triesInCalm = 240;

export class Storm {
  readonly #options: StormOptions;
  readonly #over = new AbortController();
  /** Kinds whose injected fault waits for a guest that meets it. */
  readonly #waiting = new Set<FaultKind>();
  readonly #struck = new Set<FaultKind>();
  readonly #running: readonly Promise<void>[];

  /** Begins at once. */
  constructor(options: StormOptions) {
    this.#options = options;
    const { scenario, prng } = options;
    this.#running = scenario.faults.map(({ kind, everyMsMean }) => {
      const own = prng.split();
      const fault = faults.find((each) => each.kind === kind);
      return fault && everyMsMean !== neverMs ? this.#repeat(fault, everyMsMean, own) : Promise.resolve();
    });
  }

  /** Starts no new fault and repairs what is broken. Resolves when all is repaired. */
  async end(): Promise<void> {
    const { scenario, world } = this.#options;
    const { controlPlanes, hosts, network } = world;
    const { staysDead } = scenario;
    this.#over.abort();
    await Promise.all(this.#running);
    for (const fault of faults) fault.mend?.(world, this.#struck.has(fault.kind));
    for (const server of staysDead.controlPlane ? controlPlanes.slice(1) : controlPlanes) server.start();
    for (const host of staysDead.host ? hosts.slice(0, -1) : hosts) {
      network.heal(host.name);
      host.start();
    }
    if (staysDead.controlPlane) controlPlanes[0]?.crash();
    if (staysDead.host) hosts.at(-1)?.losePower();
  }

  /** Every kind that was drawn must happen: for the first time early in the storm, and as soon as there is a target. */
  async #repeat(fault: Fault<FaultKind>, everyMsMean: number, prng: Prng): Promise<void> {
    const { kind } = fault;
    const { scenario, world } = this.#options;
    const { clock, tally } = world;
    const over = this.#over.signal;
    const firstMsMax = Math.ceil(Math.min(2 * everyMsMean, scenario.stormMs / 2));
    for (let waitMs = 1 + prng.below(firstMsMax); ; ) {
      await sleep(clock, waitMs, over);
      if (over.aborted) break;
      await this.#strike(fault, prng);
      waitMs = tally.counts.has(kind) ? 1 + prng.below(2 * everyMsMean) : retryMs;
    }
    for (let tries = 0; !tally.counts.has(kind) && tries < triesInCalm; tries++) {
      await sleep(clock, retryMs);
      await this.#strike(fault, prng);
    }
    if (!tally.counts.has(kind) && fault.mayFindNothing) tally.hit(`${nothingToHit}-${kind}`);
  }

  async #strike(fault: Fault<FaultKind>, prng: Prng): Promise<void> {
    const { kind } = fault;
    const { world } = this.#options;
    this.#struck.add(kind);
    await fault.strike({
      on: world,
      prng,
      targets: drawTargets(world, prng),
      hit: (what) => this.#hit(kind, what),
      wait: (durationMs) => sleep(world.clock, durationMs, this.#over.signal),
      inject: (injected, what) => this.#inject(kind, injected, what),
    });
  }

  #hit(kind: FaultKind, what: string): void {
    this.#options.world.tally.hit(kind);
    this.#options.trace(() => `fault ${kind}: ${what}`);
  }

  #inject(kind: FaultKind, fault: FakeFault, what: string): void {
    if (this.#waiting.has(kind)) return;
    this.#waiting.add(kind);
    this.#options.world.world.inject(fault, () => {
      this.#waiting.delete(kind);
      this.#hit(kind, what);
    });
  }
}

function drawTargets({ controlPlanes, hosts, world }: FaultWorld, prng: Prng): Strike['targets'] {
  const serversUp = controlPlanes.filter(({ up }) => up);
  const server = pick(serversUp, prng);
  const host = pick(hosts, prng);
  const agentsUp = hosts.filter(({ up }) => up);
  const agent = pick(agentsUp, prng);
  const running = world.guests().filter((guest) => guest.running);
  return { serversUp, server, host, agent, guest: pick(running, prng) };
}
