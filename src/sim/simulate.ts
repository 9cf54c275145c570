// One run: a world drawn from one seed, a storm, then calm until all is at rest. The same seed gives the same run to the last byte; the
// machine's clock, chance and network have no part in it.
//
//   prepare (calm) ─▶ storm: faults and work; checkers after every commit ─▶ calm: no work, all mended ─▶ at rest, or too late

import { type Prng, seededPrng } from '../base/prng.ts';
import { system } from '../base/system.ts';
import { Reports } from '../api/agent-protocol.ts';
import { matches } from '../api/parse.ts';
import { describeError } from '../base/log.ts';
import { createFakeWorld } from '../agent/drivers/fake/world.ts';
import type { Policy } from '../core/state/context.ts';
import { defaultPolicy } from '../core/state/context.ts';
import { keys } from '../core/state/keys.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import type { Store } from '../store/store.ts';
import { createChances } from './world/chances.ts';
import { createAssignmentCheck } from './checkers/assignment-watch.ts';
import type { Checker, Facts, ServerLife } from './checkers/checker.ts';
import { checkers as checkerFactories } from './checkers/registry.ts';
import { withWatchCheck } from './checkers/store-watch.ts';
import { type ControlPlaneProcess, createControlPlaneProcess } from './world/control-plane-process.ts';
import { createExcused } from './excused.ts';
import { faults as allFaults } from './faults/registry.ts';
import { Storm } from './faults/storm.ts';
import { drawFleet } from './fleet-scenario.ts';
import { type Commit, createHistory, type RecordEvent } from './history.ts';
import { createHostProcess } from './world/host-process.ts';
import { createIntents } from './intents.ts';
import { createNetwork, type Peer, type SeenRequest } from './world/network.ts';
import { chancesOf, misfortunesOf, narrowed, type Narrowing } from './batch/narrowing.ts';
import { createProcessClock } from './world/process-clock.ts';
import { drawScenario, type Scenario } from './scenario.ts';
import { createEpilogue } from './world/restore-epilogue.ts';
import { createDatabase } from './world/sim-database.ts';
import { createSimStore } from './world/sim-store.ts';
import { createRogueAgent } from './world/rogue-agent.ts';
import { createRogueClient } from './world/rogue-client.ts';
import { createSimDisk } from './world/sim-disk.ts';
import { createSimLog } from './world/sim-log.ts';
import { createTally, partOf, type Tally } from './batch/tally.ts';
import { createTimeline } from './world/timeline.ts';
import { createTraceHash } from './trace-hash.ts';
import { createUnusual } from './unusual.ts';
import { createWorkload } from './workload.ts';

export interface SimOptions {
  readonly seed: number;
  /** Less, or more, of what the seed draws. */
  readonly narrowing?: Narrowing;
  /** Default: small. */
  readonly size?: 'small' | 'fleet';
  /** Keeps every line that the run could tell; slow. */
  readonly trace?: boolean;
}

export interface Violation {
  /** Number of the invariant in docs/ARCHITECTURE.md; 0: one without a number, or the program itself failed. */
  readonly invariant: number;
  readonly message: string;
  readonly atMs: number;
}

export interface SimResult {
  readonly seed: number;
  readonly commitHash: string;
  /** Of every moment at which something happened, every request and every change of a guest. */
  readonly traceHash: string;
  readonly commits: number;
  readonly events: number;
  readonly virtualMs: number;
  /** Instances that ran at some time. */
  readonly instancesRun: number;
  readonly faults: Readonly<Record<string, number>>;
  /** The misfortunes of its scenario. */
  readonly drawn: readonly string[];
  readonly violation?: Violation;
  readonly trace: readonly string[];
}

/** So low that what bounds the store and what ages has work to do in so short a time; a fleet is given what is usual. */
const soonFull: Partial<Policy> = {
  eventsMax: 60,
  historyKeptMs: 30_000,
  historyRevisionsMax: 100,
  agingMs: 5_000,
  starvationMs: 25_000,
  nominationMs: 15_000, // each longer than what counts as rest
};
/** Everything that retries does so at least once a minute; five of them are enough for what waits on one another, counted anew while tasks in line get their turn. */
const calmMsMax = 5 * 60_000;
const restedMs = 10_000;
const lookEveryMs = 2_500;
/** Commits; a count of thousands of hosts takes its time. */
const recountEvery = { small: 200, fleet: 1000 };
const prepareMs = 20_000;
/** The share of a flood that is not held against those who were silent in it. */
const floodExcuses = 2 / 3;
const whileRestoring = new Set(allFaults.flatMap((each) => (each.whileRestoring ? [each.kind] : [])));
/** Two or three heartbeats of every host. */
const restoredStormMs = 10_000;

export async function simulate({
  seed,
  narrowing,
  size = 'small',
  trace: tracing = false,
}: SimOptions): Promise<SimResult> {
  const prng = prngOf(seed);
  const drawn = draw(size, prng.split());
  const scenario = narrowed(drawn, narrowing);
  const timeline = createTimeline(prng.split());
  const tally = createTally();
  const history = createHistory();
  const intents = createIntents();
  const lines: string[] = [];
  const ran = new Set<string>();
  let violation: Violation | undefined;
  /** The last commit that was more than heartbeats. */
  let lastNews: { readonly atMs: number; readonly commit: Commit } | undefined;
  /** Tasks that have ever had room, by the key of their claim. A long queue of them is served one by one, also when all is calm. */
  const served = new Set<string>();
  let lastServedMs = 0;
  let weather = scenario.weather.calm;
  if (scenario.clocks.some(({ rate }) => rate !== 1)) tally.hit('clock-rate');
  if (scenario.staysDead.controlPlane) tally.hit('stays-dead-server');
  if (scenario.staysDead.host) tally.hit('stays-dead-host');
  let storeLatencyMsMean: number | undefined;
  let crawledMs = Number.NEGATIVE_INFINITY;

  const whole = createTraceHash();
  const trace = (line: () => string): void => {
    if (tracing) lines.push(`${(timeline.nowMs / 1000).toFixed(3).padStart(9)} ${line()}`);
  };
  const violate = (invariant: number, message: string): void => {
    if (violation !== undefined) return;
    violation = { invariant, message, atMs: Math.round(timeline.nowMs) };
    trace(() => `VIOLATION of invariant ${invariant}: ${message}`);
  };

  // ── the world ───────────────────────────────────────────────────────────────────────────────────────────────────

  const world = createFakeWorld({ clock: createProcessClock(timeline), latencies: scenario.guest });
  const policy: Policy = {
    ...defaultPolicy,
    cpuAllocationRatio: 1, // so that its small hosts fill up
    heartbeatMs: scenario.heartbeatMs,
    offlineAfterMs: scenario.offlineAfterMs,
    restartDelayMs: scenario.restartDelayMs,
    ...(size === 'fleet' ? {} : soonFull),
    ...scenario.limits,
  };
  const serverLives: ServerLife[] = [];
  const excused = createExcused(history.state);
  const dead = new Set<string>();
  /** Of a server that is alone: when it was paused, or flooded. */
  const deafTimes: {
    readonly fromMs: number;
    toMs: number;
    readonly share: number;
    readonly life: ServerLife | undefined;
  }[] = [];
  /** Each ends with the process that it befell. Of a flood a part counts, as though the rest were a pause. */
  const excusedOf = ({ fromMs, toMs, share, life }: (typeof deafTimes)[number]) => ({
    fromMs,
    toMs: fromMs + share * (Math.min(toMs, life?.endedMs ?? toMs, timeline.nowMs) - fromMs),
  });
  const deafFor = (durationMs: number, share: number): void => {
    deafTimes.push({ fromMs: timeline.nowMs, toMs: timeline.nowMs + durationMs, share, life: serverLives.at(-1) });
  };
  const facts: Facts = {
    state: history.state,
    world,
    volumes: world,
    intents,
    nowMs: () => timeline.nowMs,
    policy,
    serverLives,
    excused,
    dead,
    // While every commit takes seconds, what was decided before and what was heard meanwhile come in any order: nothing can be told.
    deaf: () =>
      timeline.nowMs - crawledMs < 2 * scenario.offlineAfterMs
        ? []
        : [...database.away, ...deafTimes.map(excusedOf), ...closures],
    servers: () => controlPlanes.flatMap(({ name, cache }) => (cache ? [{ name, cache }] : [])),
  };
  const checkers = checkerFactories.map((create) => create(facts));
  /** When a backup is restored, the past is another: then its epilogue judges, and those whom that does not concern. */
  let restoring: 'not' | 'now' | 'done' = 'not';
  const judgesWhile = {
    not: checkers,
    now: checkers.filter(({ overRestore }) => overRestore === 'throughout'),
    done: checkers.filter(({ overRestore }) => overRestore !== undefined),
  };
  const judges = (): readonly Checker[] => judgesWhile[restoring];
  const closures: { readonly fromMs: number; toMs: number }[] = [];
  /** A restore begins with the commit that closes the store, and ends with the one that opens it; broken off, it begins again. */
  const noteClosing = ({ events }: Commit): void => {
    for (const { key, after } of events) {
      if (key !== keys.cluster || after?.kind !== 'cluster') continue;
      if (after.closed) {
        if (restoring !== 'now') closures.push({ fromMs: timeline.nowMs, toMs: Number.POSITIVE_INFINITY });
        restoring = 'now';
      } else if (restoring === 'now') {
        restoring = 'done';
        const closure = closures.at(-1);
        if (closure) closure.toMs = timeline.nowMs;
        for (const checker of judges()) checker.onRestored?.();
      }
    }
  };
  /** What was counted event by event must be what is there. */
  const recount = (): void => {
    for (const checker of judges()) {
      const fault = checker.recount?.();
      if (fault !== undefined) violate(0, `the checker of invariant ${checker.invariant} is at fault: it ${fault}`);
    }
  };
  const memory = createMemoryStore();
  const store: Store = {
    get: (key) => memory.get(key),
    list: (prefix, options) => memory.list(prefix, options),
    watch: (prefix, after, signal) => memory.watch(prefix, after, signal),
    compact: (before) => memory.compact(before),
    close: () => memory.close(),
    async commit(conditions, writes) {
      const result = await memory.commit(conditions, writes);
      const commit = history.record(result, writes);
      if (!result.ok && result.key === keys.leader) tally.hit('stale-leader-refused');
      if (!result.ok) trace(() => `refused: ${result.key} is not as ${writes[0]?.key ?? 'a read'} wanted it`);
      if (commit === undefined) return result;
      excused.note(commit.events);
      noteClosing(commit);
      if (restoring === 'done') epilogue.note(commit.events);
      trace(() => `commit ${commit.revision}: ${commit.events.flatMap(summaryOf).join('; ')}`);
      for (const { after } of commit.events)
        if (after?.kind === 'instance' && after.status.phase === 'Running') ran.add(after.metadata.id);
      for (const { after } of commit.events)
        if (after?.kind === 'instance' && after.status.phase === 'Suspended') tally.hit('guest-suspended');
      for (const { key, after } of commit.events) {
        if (after?.kind !== 'allocation' || after.consumer.kind !== 'task' || served.has(key)) continue;
        served.add(key);
        lastServedMs = timeline.nowMs;
      }
      if (history.state.newsRevision() === commit.revision) lastNews = { atMs: timeline.nowMs, commit };
      for (const { before, after } of commit.events)
        if (before?.kind === 'leader' && after?.kind === 'leader' && before.term !== after.term)
          tally.hit('leader-changed');
      for (const checker of judges()) {
        const fault = checker.onCommit?.(commit);
        if (fault !== undefined) violate(checker.invariant, fault);
      }
      if (commit.revision % recountEvery[size] === 0) recount();
      return result;
    },
  };
  const database = createDatabase({
    base: store,
    timeline,
    prng: prng.split(),
    tally,
    syncMsMax: scenario.faults.some(({ kind }) => kind === 'store-crash') ? 20 : 0,
  });
  const chances = createChances({ tally, prng: seededPrng(seed, 'chances') });
  const buggify = createUnusual({
    rates: scenario.unusual,
    prng: prng.split(),
    chances,
    stormy: () => weather === scenario.weather.stormy,
  });
  const log = createSimLog({ trace, onFault: (message) => violate(0, message) });
  const noteReports = ({ peer, path, bodyText }: SeenRequest): void => {
    whole.addText(peer);
    whole.addText(path);
    whole.add(bodyText?.length ?? -1);
    if (!path.endsWith('/reports') || bodyText === undefined) return;
    const body: unknown = JSON.parse(bodyText);
    if (!matches(Reports, body)) return;
    for (const report of body.reports)
      for (const checker of checkers) checker.onReport?.({ host: peer, epoch: body.epoch, report });
  };
  const network = createNetwork({
    timeline,
    prng: prng.split(),
    weather: () => weather.network,
    tally,
    chances,
    sticky: scenario.stickyClients,
    onRequest: noteReports,
    onInternal: (error, { method, path }) =>
      violate(0, `${method} ${path} was answered 500: ${error instanceof Error ? error.stack : describeError(error)}`),
  });
  const checkWatches = (unchecked: Store): Store =>
    withWatchCheck(unchecked, { commits: history.commits, onFault: (fault) => violate(6, fault) });
  const controlPlanes: ControlPlaneProcess[] = Array.from({ length: scenario.controlPlanes }, (_, index) =>
    createControlPlaneProcess({
      name: `server-${index + 1}`,
      seed,
      base: database.store,
      checkWatches,
      timeline,
      network,
      policy,
      log,
      lives: serverLives,
      tally,
      chances,
      buggify,
      clockFaults: scenario.clocks[index] ?? {},
      weather: () =>
        storeLatencyMsMean === undefined ? weather.store : { ...weather.store, latencyMsMean: storeLatencyMsMean },
      onPause(durationMs) {
        if (scenario.controlPlanes === 1) deafFor(durationMs, 1);
      },
      onFlood(flooded) {
        if (scenario.controlPlanes > 1) return;
        const last = deafTimes.findLast(({ toMs }) => toMs === Number.POSITIVE_INFINITY);
        if (last) last.toMs = timeline.nowMs;
        if (flooded) deafFor(Number.POSITIVE_INFINITY, floodExcuses);
      },
      onCached(cached) {
        for (const checker of judges()) {
          const fault = checker.onCached?.(cached);
          if (fault !== undefined) violate(checker.invariant, fault);
        }
      },
    }),
  );
  const diskPrngs = drawn.hosts.map(() => prng.split()); // as many as were drawn, so that a smaller fleet changes nothing else
  const hosts = scenario.hosts.map((capacity, index) => {
    const name = `host-${index + 1}`;
    world.onChange(name, (instanceId) => {
      whole.addText(name);
      whole.addText(instanceId);
      for (const checker of judges()) {
        const fault = checker.onGuest?.(name, instanceId);
        if (fault !== undefined) violate(checker.invariant, fault);
      }
    });
    return createHostProcess({
      name,
      seed,
      capacity,
      timeline,
      network,
      world,
      log,
      buggify,
      clockFaults: scenario.clocks[scenario.controlPlanes + index] ?? {},
      disk: createSimDisk({ timeline, prng: diskPrngs[index] ?? prng, weather: () => weather.disk, tally, chances }),
      checkAssignments: () => {
        const check = createAssignmentCheck({ state: history.state, host: name });
        return (event) => {
          const fault = check(event);
          if (fault !== undefined) violate(6, fault);
        };
      },
      onGaveUp: (host, error) => violate(0, `the agent of ${host} gave up: ${error.message}`),
    });
  });
  const workload = createWorkload({
    scenario,
    timeline,
    prng: prng.split(),
    ...(keepsVolumes(seed, size) ? { volumePrng: seededPrng(seed, 'volumes') } : {}),
    network,
    intents,
    commits: history.commits,
    tally,
    onViolation: violate,
    trace,
  });

  const operatorsClock = createProcessClock(timeline);
  const epilogue = createEpilogue({
    store: createSimStore({
      base: database.store,
      clock: operatorsClock,
      timeline,
      prng: prng.split(),
      weather: () => weather.store,
      tally,
      chances,
    }),
    state: history.state,
    world,
    prng: prng.split(),
    tally,
    clock: operatorsClock,
    stormy: scenario.restoredInStorm,
    servers: facts.servers,
    trusted: (host) => !excused.host(host),
    honest: (host) => !dead.has(host) && !excused.host(host),
  });

  /** Of someone who comes from elsewhere than the tenants. */
  const rogueOf = (name: string, identity: Peer['identity']) => ({
    send: network.fetchFor({ name, identity, clock: createProcessClock(timeline), answerTimeoutMs: 9000 }),
    state: history.state,
    prng: prng.split(),
    tally,
    onViolation: violate,
  });
  const hostNames = hosts.map(({ name }) => name);
  const [firstHost = ''] = hostNames;

  const rogueClient = createRogueClient(rogueOf('rogue', { role: 'operator', name: 'rogue' }));
  const rogueAgent = createRogueAgent({
    ...rogueOf(firstHost, { role: 'host', host: firstHost }),
    host: firstHost,
    hosts: hostNames,
  });
  const beginFaults = (part: Pick<Scenario, 'faults' | 'stormMs'>, counts: Tally) =>
    new Storm({
      scenario: { ...part, staysDead: scenario.staysDead },
      prng: prng.split(),
      trace,
      world: {
        clock: createProcessClock(timeline),
        tally: counts,
        controlPlanes,
        hosts,
        network,
        world,
        store,
        database,
        offlineAfterMs: scenario.offlineAfterMs,
        crawl(latencyMsMean) {
          storeLatencyMsMean = latencyMsMean;
          crawledMs = latencyMsMean === undefined ? timeline.nowMs : Number.POSITIVE_INFINITY;
        },
        burst: workload.burst,
        rogueClient,
        rogueAgent,
        distrust: excused.distrust,
        revision: () => history.commits.length,
        operator: workload,
      },
    });

  // ── running it ──────────────────────────────────────────────────────────────────────────────────────────────────

  const turn = system.turns();
  /** Event by event, each until no promise has anything left to do, to the given time or the first violation. */
  const runFor = async (durationMs: number, done: () => boolean = () => false): Promise<void> => {
    const untilMs = timeline.nowMs + durationMs;
    await turn();
    while (violation === undefined && !done() && timeline.step(untilMs)) {
      whole.add(Math.round(timeline.nowMs * 1000)); // to the microsecond: what is sent in order lies so close
      await turn();
    }
  };
  /** Until `work` is done; it may not take longer than `limitMs`. */
  const runUntil = async (work: Promise<void>, limitMs: number, what: string): Promise<void> => {
    let finished = false;
    void work.then(
      () => {
        finished = true;
      },
      (error: unknown) => violate(0, `${what}: ${describeError(error)}`),
    );
    await runFor(limitMs, () => finished);
    if (!finished) violate(3, `${what} did not end within ${limitMs / 1000} s`);
  };
  /** The first complaint, if there is one; every checker is asked. */
  const unrest = (): { invariant: number; message: string } | undefined => {
    const found: { invariant: number; message: string }[] = [];
    if (restoring !== 'not') {
      const fault = epilogue.fault();
      if (fault) violate(fault.invariant, fault.message);
      const waits = epilogue.unrest();
      if (waits) found.push(waits);
    }
    for (const checker of judges()) {
      const { invariant } = checker;
      for (const message of checker.unrest?.() ?? []) found.push({ invariant, message });
      const overdue = checker.overdue?.();
      if (overdue !== undefined) violate(invariant, overdue);
    }
    for (const { name, cache } of scenario.staysDead.controlPlane ? controlPlanes.slice(1) : controlPlanes) {
      if (cache === undefined) found.push({ invariant: 9, message: `${name} does not come up` });
    }
    return found[0];
  };

  const run = async (): Promise<void> => {
    for (const plane of controlPlanes) plane.start();
    await runUntil(workload.prepare(), prepareMs, 'preparing');
    for (const host of hosts) host.start();
    await runFor(3000 + prng.below(5000)); // until every control plane has heard of the images

    weather = scenario.weather.stormy;
    workload.start();
    const faults = beginFaults(scenario, tally);
    let backedUp: Promise<void> | undefined;
    const backupAfterMs = scenario.restored ? scenario.stormMs * 0.6 : scenario.stormMs;
    await runFor(backupAfterMs);
    if (scenario.restored) {
      backedUp = epilogue.backUp();
      backedUp.catch((error: unknown) => violate(0, `backing up: ${describeError(error)}`));
      await runFor(scenario.stormMs - backupAfterMs);
    }

    weather = scenario.weather.calm;
    trace(() => 'calm');
    if (scenario.staysDead.host) for (const name of hostNames.slice(-1)) dead.add(name);
    await runUntil(
      Promise.all([faults.end(), workload.end(), backedUp]).then(() => {}),
      calmMsMax,
      'mending',
    );
    await rest();
    if (violation !== undefined || !epilogue.restore) return;
    trace(() => 'a backup is restored');
    const stormy = scenario.restoredInStorm;
    if (stormy) weather = scenario.weather.stormy;
    if (stormy) tally.hit('restored-in-storm');
    const kinds = scenario.faults.filter(({ kind }) => stormy && whileRestoring.has(kind));
    const more = beginFaults({ faults: kinds, stormMs: restoredStormMs }, partOf(tally, 'restored'));
    served.clear(); // in the restored store they may be in line again
    await runUntil(epilogue.restore(), calmMsMax, 'restoring');
    await runFor(restoredStormMs);
    weather = scenario.weather.calm;
    await runUntil(more.end(), calmMsMax, 'mending after a restore');
    await rest();
  };

  /** Until all is as it must be and nothing but heartbeats was written for a while. */
  const rest = async (): Promise<void> => {
    const calmSinceMs = timeline.nowMs;
    let restingSinceMs: number | undefined;
    for (let waits = unrest(); violation === undefined; waits = unrest()) {
      if (waits === undefined) restingSinceMs ??= timeline.nowMs;
      else restingSinceMs = undefined;
      const quietSinceMs = Math.max(restingSinceMs ?? timeline.nowMs, lastNews?.atMs ?? 0);
      if (restingSinceMs !== undefined && timeline.nowMs - quietSinceMs >= restedMs) return recount();
      if (timeline.nowMs >= Math.max(calmSinceMs, lastServedMs) + calmMsMax) {
        const busy = `nothing is amiss, yet it goes on writing: ${lastNews?.commit.events.flatMap(summaryOf).join('; ')}`;
        return violate(waits?.invariant ?? 8, waits?.message ?? busy);
      }
      await runFor(lookEveryMs);
    }
  };

  const stopListening = system.onUncaught((error) =>
    violate(0, `uncaught: ${error instanceof Error ? (error.stack ?? error.message) : describeError(error)}`),
  );
  try {
    await run();
  } catch (error) {
    violate(0, `thrown: ${error instanceof Error ? (error.stack ?? error.message) : describeError(error)}`);
  } finally {
    await system.turn();
    stopListening();
  }
  chances.end(chancesOf(scenario));
  return {
    seed,
    commitHash: history.hash(),
    traceHash: whole.text(),
    commits: history.commits.length,
    events: timeline.fired,
    virtualMs: Math.round(timeline.nowMs),
    instancesRun: ran.size,
    faults: Object.fromEntries([...tally.counts].sort(([a], [b]) => (a < b ? -1 : 1))),
    drawn: misfortunesOf(scenario),
    ...(violation === undefined ? {} : { violation }),
    trace: lines,
  };
}

/** What a run of this seed draws before it begins. */
export function drawnBy(seed: number, size: NonNullable<SimOptions['size']>): Scenario {
  return draw(size, prngOf(seed).split());
}

/** Somebody keeps volumes in one seed of four, whatever else it draws. */
function keepsVolumes(seed: number, size: NonNullable<SimOptions['size']>): boolean {
  return size === 'small' && seededPrng(seed, 'keeps volumes').chance(1, 4);
}

function prngOf(seed: number): Prng {
  return seededPrng(seed, 'berth');
}

function draw(size: NonNullable<SimOptions['size']>, prng: Prng): Scenario {
  return size === 'fleet' ? drawFleet(prng) : drawScenario(prng);
}

function summaryOf({ key, before, after }: RecordEvent): string | [] {
  if (key.startsWith('events/')) return [];
  const what = before === null ? 'new' : after === null ? 'gone' : 'changed';
  if (after?.kind !== 'instance') return `${what} ${key}`;
  const { phase, host, incarnation, observedGeneration } = after.status;
  const why = after.status.conditions.map(({ type, reason }) => `${type}:${reason}`).join(' ');
  return `${what} ${key} ${after.metadata.id} ${phase} on ${host ?? '-'} inc ${incarnation} gen ${observedGeneration}/${after.metadata.generation} want ${after.spec.powerState} [${why}]`;
}
