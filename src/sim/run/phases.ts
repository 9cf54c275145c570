// The phases of a run, in virtual time.
//
//   prepare (calm) ─▶ storm: faults and work ─▶ calm: no work, everything repaired ─▶ at rest, or too late
//                                                                                       │
//                         in some runs: a backup is restored, with its own storm and calm ◀┘

import { describeError } from '../../base/log.ts';
import { system } from '../../base/system.ts';
import { partOf, type Tally } from '../batch/tally.ts';
import { faults } from '../faults/registry.ts';
import { Storm } from '../faults/storm.ts';
import type { Scenario } from '../scenario.ts';
import type { World } from './world.ts';

/** Everything that retries does so at least once a minute. Five rounds are enough for parts that wait for one another. */
const calmMsMax = 5 * 60_000;
const restedMs = 10_000;
const lookEveryMs = 2_500;
const prepareMs = 20_000;
/** Two or three heartbeats of every host. */
const restoredStormMs = 10_000;
const whileRestoring = new Set(faults.flatMap((fault) => (fault.whileRestoring ? [fault.kind] : [])));

export class Phases {
  readonly #world: World;
  readonly #turn = system.turns();

  constructor(world: World) {
    this.#world = world;
  }

  /** Ends early with the first violation. */
  async run(): Promise<void> {
    await this.#prepare();
    const { storm, backedUp } = await this.#storm();
    await this.#calm(storm, backedUp);
    const { verdict, epilogue } = this.#world;
    if (verdict.violation === undefined && epilogue.restore) await this.#restore(epilogue.restore);
  }

  async #prepare(): Promise<void> {
    const { controlPlanes, hosts, workload, prng } = this.#world;
    await this.#world.prepare();
    for (const server of controlPlanes) server.start();
    await this.#runUntil(workload.prepare(), prepareMs, 'preparing');
    for (const host of hosts) host.start();
    await this.#runFor(3000 + prng.below(5000)); // until every control plane knows the images
  }

  async #storm(): Promise<{ readonly storm: Storm; readonly backedUp: Promise<void> | undefined }> {
    const { scenario, weather, workload, epilogue, verdict, tally } = this.#world;
    weather.become('stormy');
    workload.start();
    const storm = this.#startStorm(scenario, tally);
    const backupAfterMs = scenario.restored ? scenario.stormMs * 0.6 : scenario.stormMs;
    await this.#runFor(backupAfterMs);
    if (!scenario.restored) return { storm, backedUp: undefined };
    const backedUp = epilogue.backUp();
    backedUp.catch((error: unknown) => verdict.violate(0, `backing up: ${describeError(error)}`));
    await this.#runFor(scenario.stormMs - backupAfterMs);
    return { storm, backedUp };
  }

  async #calm(storm: Storm, backedUp: Promise<void> | undefined): Promise<void> {
    const { scenario, weather, trace, hosts, dead, workload } = this.#world;
    weather.become('calm');
    trace.line(() => 'calm');
    if (scenario.staysDead.host) for (const { name } of hosts.slice(-1)) dead.add(name);
    await this.#runUntil(
      Promise.all([storm.end(), workload.end(), backedUp]).then(() => {}),
      calmMsMax,
      'mending',
    );
    await this.#rest();
  }

  async #restore(restore: () => Promise<void>): Promise<void> {
    const { scenario, weather, trace, tally, verdict } = this.#world;
    trace.line(() => 'a backup is restored');
    const stormy = scenario.restoredInStorm;
    if (stormy) {
      weather.become('stormy');
      tally.hit('restored-in-storm');
    }
    const kinds = scenario.faults.filter(({ kind }) => stormy && whileRestoring.has(kind));
    const storm = this.#startStorm({ faults: kinds, stormMs: restoredStormMs }, partOf(tally, 'restored'));
    verdict.progress.forgetServed();
    await this.#runUntil(restore(), calmMsMax, 'restoring');
    await this.#runFor(restoredStormMs);
    weather.become('calm');
    await this.#runUntil(storm.end(), calmMsMax, 'mending after a restore');
    await this.#rest();
  }

  #startStorm({ faults: drawn, stormMs }: Pick<Scenario, 'faults' | 'stormMs'>, tally: Tally): Storm {
    const { scenario, prng, trace } = this.#world;
    return new Storm({
      scenario: { faults: drawn, stormMs, staysDead: scenario.staysDead },
      prng: prng.split(),
      world: this.#world.forFaults(tally),
      trace: trace.line,
    });
  }

  /** Until everything is as it must be and nothing but heartbeats was written for a while. */
  async #rest(): Promise<void> {
    const { timeline, verdict, survivingControlPlanes } = this.#world;
    const { progress } = verdict;
    const calmSinceMs = timeline.nowMs;
    let restingSinceMs: number | undefined;
    for (
      let unrest = verdict.unrest(survivingControlPlanes);
      verdict.violation === undefined;
      unrest = verdict.unrest(survivingControlPlanes)
    ) {
      if (unrest === undefined) restingSinceMs ??= timeline.nowMs;
      else restingSinceMs = undefined;
      const quietSinceMs = Math.max(restingSinceMs ?? timeline.nowMs, progress.lastNewsMs);
      if (restingSinceMs !== undefined && timeline.nowMs - quietSinceMs >= restedMs) return verdict.recount();
      // Tasks in the queue get their turn one after the other: each begins the wait again.
      if (timeline.nowMs >= Math.max(calmSinceMs, progress.lastServedMs) + calmMsMax) {
        const busy = `nothing is amiss, yet it goes on writing: ${progress.lastNews()}`;
        return verdict.violate(unrest?.invariant ?? 8, unrest?.message ?? busy);
      }
      await this.#runFor(lookEveryMs);
    }
  }

  /** Fires event after event, each until no promise has anything left to do, to the given time or the first violation. */
  async #runFor(durationMs: number, done: () => boolean = () => false): Promise<void> {
    const { timeline, trace, verdict } = this.#world;
    const untilMs = timeline.nowMs + durationMs;
    await this.#turn();
    while (verdict.violation === undefined && !done() && timeline.step(untilMs)) {
      trace.addMoment();
      await this.#turn();
    }
  }

  /** Until `work` is done; a violation when it takes longer than `limitMs`. */
  async #runUntil(work: Promise<void>, limitMs: number, what: string): Promise<void> {
    const { verdict } = this.#world;
    let finished = false;
    void work.then(
      () => {
        finished = true;
      },
      (error: unknown) => verdict.violate(0, `${what}: ${describeError(error)}`),
    );
    await this.#runFor(limitMs, () => finished);
    if (!finished) verdict.violate(3, `${what} did not end within ${limitMs / 1000} s`);
  }
}
