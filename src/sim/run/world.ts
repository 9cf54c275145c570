// The world of a run: everything its phases use, made from one scenario. The parts are made in a fixed order, as each takes its random
// numbers from the same source.

import { ApiError } from '../../api/errors.ts';
import type { Buggify } from '../../base/buggify.ts';
import type { Logger } from '../../base/log.ts';
import { type Prng, seededPrng } from '../../base/prng.ts';
import { createFakeWorld, type FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { encodeRecord } from '../../core/state/codec.ts';
import type { Policy } from '../../core/state/context.ts';
import { keys } from '../../core/state/keys.ts';
import { MemoryRunStorage } from '../../server/runs/memory-run-storage.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { createTally, type Tally } from '../batch/tally.ts';
import { createAssignmentCheck } from '../checkers/assignment-watch.ts';
import type { ServerLife } from '../checkers/checker.ts';
import { withWatchCheck } from '../checkers/store-watch.ts';
import { createExcused } from '../excused.ts';
import type { FaultWorld } from '../faults/fault.ts';
import { type Commit, createHistory } from '../history.ts';
import { createIntents } from '../intents.ts';
import { JobRequests } from '../job-requests.ts';
import type { Scenario } from '../scenario.ts';
import { createUnusual } from '../unusual.ts';
import { Workload } from '../workload/workload.ts';
import { jobsUse, SimBroker } from '../world/broker/sim-broker.ts';
import { createChances } from '../world/chances.ts';
import { ControlPlaneProcess } from '../world/control-plane-process.ts';
import { HostProcess } from '../world/host-process.ts';
import type { SimOffers } from '../world/sim-direct.ts';
import { Network } from '../world/network.ts';
import { createProcessClock } from '../world/process-clock.ts';
import { Epilogue } from '../world/restore-epilogue.ts';
import { Database } from '../world/sim-database.ts';
import { SimDisk } from '../world/sim-disk.ts';
import { createSimLog } from '../world/sim-log.ts';
import { SimStore } from '../world/sim-store.ts';
import { Timeline } from '../world/timeline.ts';
import { CurrentWeather } from './current-weather.ts';
import { DeafTimes } from './deaf-times.ts';
import { Edges } from './edges.ts';
import { policyOf } from './policy.ts';
import { recordedStore } from './recorded-store.ts';
import { createRogues } from './rogues.ts';
import { stackOf } from './stack-of.ts';
import { Trace } from './trace.ts';
import { Verdict } from './verdict.ts';

export type Size = 'small' | 'fleet';

export interface WorldOptions {
  readonly seed: number;
  readonly size: Size;
  readonly scenario: Scenario;
  /** How many hosts the seed drew, before the scenario was narrowed. */
  readonly hostsDrawn: number;
  readonly prng: Prng;
  /** Keeps the lines of the trace. */
  readonly tracing: boolean;
}

/** Commits; a count of thousands of hosts takes its time. */
const recountEvery = { small: 200, fleet: 1000 };
/** Events: more than a run makes, so that none goes before it is sent. */
const keptForReceivers = 100_000;

export class World {
  readonly seed: number;
  readonly size: Size;
  readonly scenario: Scenario;
  readonly prng: Prng;
  readonly timeline: Timeline;
  readonly trace: Trace;
  readonly weather: CurrentWeather;
  readonly tally = createTally();
  readonly history = createHistory();
  readonly intents = createIntents();
  readonly chances: ReturnType<typeof createChances>;
  readonly verdict: Verdict;
  readonly controlPlanes: readonly ControlPlaneProcess[];
  readonly hosts: readonly HostProcess[];
  readonly workload: Workload;
  readonly epilogue: Epilogue;
  /** Hosts that lost their power for good. */
  readonly dead = new Set<string>();
  readonly #excused = createExcused(this.history.state);
  readonly #serverLives: ServerLife[] = [];
  readonly #guests: FakeWorld;
  readonly #offers: SimOffers = new Map();
  readonly #store: Store;
  readonly #database: Database;
  readonly #runStorage = new MemoryRunStorage();
  readonly #requests = new JobRequests();
  /** In some runs. */
  readonly #broker: SimBroker | undefined;
  readonly #edges: Edges;
  readonly #deafTimes: DeafTimes;
  readonly #network: Network;
  readonly #log: Logger;
  readonly #buggify: Buggify;
  readonly #rogues: ReturnType<typeof createRogues>;

  constructor({ seed, size, scenario, hostsDrawn, prng, tracing }: WorldOptions) {
    this.seed = seed;
    this.size = size;
    this.scenario = scenario;
    this.prng = prng;
    this.timeline = new Timeline(prng.split());
    this.trace = new Trace({ timeline: this.timeline, keepsLines: tracing });
    this.weather = new CurrentWeather(scenario.weather);
    this.chances = createChances({ tally: this.tally, prng: seededPrng(seed, 'chances') });
    this.#guests = createFakeWorld({ clock: createProcessClock(this.timeline), latencies: scenario.guest });
    const storeAway = () => this.#database.away;
    this.#deafTimes = new DeafTimes({ timeline: this.timeline, scenario, serverLives: this.#serverLives, storeAway });
    this.#broker = this.#makeBroker();
    this.#edges = this.#makeEdges();
    this.verdict = this.#makeVerdict();
    this.#log = createSimLog({ trace: this.trace.line, onFault: (message) => this.verdict.violate(0, message) });
    const { history, tally, trace, chances, weather } = this;
    const onCommit = (commit: Commit): void => {
      this.verdict.onCommit(commit);
      this.#edges.nodes?.note(commit);
    };
    this.#store = recordedStore({ base: createMemoryStore(), history, tally, trace, onCommit });
    this.#database = this.#makeDatabase();
    const stormy = (): boolean => weather.stormy;
    this.#buggify = createUnusual({ rates: scenario.unusual, prng: prng.split(), chances, stormy });
    this.#network = this.#makeNetwork();
    this.controlPlanes = Array.from({ length: scenario.controlPlanes }, (_, index) => this.#makeControlPlane(index));
    // As many as were drawn, so that a smaller fleet changes nothing else.
    const diskPrngs = Array.from({ length: hostsDrawn }, () => prng.split());
    this.hosts = scenario.hosts.map((capacity, index) => this.#makeHost(index, capacity, diskPrngs[index] ?? prng));
    this.workload = this.#makeWorkload();
    this.epilogue = this.#makeEpilogue();
    this.#rogues = this.#makeRogues();
    if (scenario.clocks.some(({ rate }) => rate !== 1)) this.tally.hit('clock-rate');
    if (scenario.staysDead.controlPlane) this.tally.hit('stays-dead-server');
    if (scenario.staysDead.host) this.tally.hit('stays-dead-host');
  }

  /** Before the first control plane starts. */
  async prepare(): Promise<void> {
    if (this.#edges.receivers === undefined) return;
    // Servers take secrets only into an encrypted store. The encryption itself is random, and has no part in a run.
    const dataKey = {
      kind: 'dataKey',
      id: '0'.repeat(16),
      masterKey: '0'.repeat(16),
      wrapped: '',
      createdAtMs: 0,
    } as const;
    const key = keys.dataKey(dataKey.id);
    await this.#store.commit([{ key, ifRevision: 0 }], [{ key, value: encodeRecord(dataKey) }]);
  }

  /** Those that must be up when the storm is over. */
  get survivingControlPlanes(): readonly ControlPlaneProcess[] {
    return this.scenario.staysDead.controlPlane ? this.controlPlanes.slice(1) : this.controlPlanes;
  }

  /** What faults reach; `tally` counts them. */
  forFaults(tally: Tally): FaultWorld {
    return {
      clock: createProcessClock(this.timeline),
      tally,
      controlPlanes: this.controlPlanes,
      hosts: this.hosts,
      network: this.#network,
      world: this.#guests,
      store: this.#store,
      database: this.#database,
      offlineAfterMs: this.scenario.offlineAfterMs,
      crawl: (latencyMsMean) => {
        this.weather.crawl(latencyMsMean);
        this.#deafTimes.noteCrawl(latencyMsMean !== undefined);
      },
      revision: () => this.history.commits.length,
      operator: this.workload.operator,
      rogueClient: this.#rogues.client,
      rogueAgent: this.#rogues.agent,
      distrust: this.#excused.distrust,
      burst: (count) => this.workload.burst(count),
    };
  }

  /** One seed of six has one. It has its own source of random numbers, so that all other runs are as they were. */
  #makeBroker(): SimBroker | undefined {
    if (this.size !== 'small' || !seededPrng(this.seed, 'has a broker').chance(1, 6)) return undefined;
    return new SimBroker({
      use: jobsUse,
      timeline: this.timeline,
      prng: seededPrng(this.seed, 'broker'),
      stormy: () => this.weather.stormy,
      tally: this.tally,
      trace: this.trace.line,
      onMessage: (event) => this.verdict.onMessage(event),
    });
  }

  #makeEdges(): Edges {
    return new Edges({
      seed: this.seed,
      some: this.size === 'small',
      scenario: this.scenario,
      timeline: this.timeline,
      stormy: () => this.weather.stormy,
      tally: this.tally,
      trace: this.trace.line,
      onDelivery: (delivery) => this.verdict.onDelivery(delivery),
      onTaskMessage: (event) => this.verdict.onTaskMessage(event),
      onMadeTwice: (message) => this.verdict.violate(4, message),
    });
  }

  /** The same for all control planes. */
  #policy(): Policy {
    const policy = policyOf(this.scenario, this.size);
    return this.#edges.receivers === undefined ? policy : { ...policy, eventsMax: keptForReceivers };
  }

  #makeVerdict(): Verdict {
    return new Verdict({
      nowMs: () => this.timeline.nowMs,
      trace: this.trace,
      tally: this.tally,
      history: this.history,
      intents: this.intents,
      policy: this.#policy(),
      guests: this.#guests,
      excused: this.#excused,
      dead: this.dead,
      deafTimes: this.#deafTimes,
      serverLives: this.#serverLives,
      servers: () => this.controlPlanes,
      epilogue: () => this.epilogue,
      calmUpdates: this.scenario.updates === 'calm',
      runLog: (instanceId) => this.#runStorage.textOf({ instanceId, part: 'log' }),
      messages: this.#broker && { broker: this.#broker, requests: this.#requests },
      receivers: this.#edges.receivers,
      nodes: this.#edges.nodeFacts,
      machines: this.#edges.machines,
      taskMessages: this.#edges.taskMessages,
      recountEvery: recountEvery[this.size],
    });
  }

  #makeDatabase(): Database {
    return new Database({
      base: this.#store,
      timeline: this.timeline,
      prng: this.prng.split(),
      tally: this.tally,
      syncMsMax: this.scenario.faults.some(({ kind }) => kind === 'store-crash') ? 20 : 0,
    });
  }

  #makeNetwork(): Network {
    return new Network({
      timeline: this.timeline,
      prng: this.prng.split(),
      weather: () => this.weather.now.network,
      tally: this.tally,
      chances: this.chances,
      sticky: this.scenario.stickyClients,
      onRequest: (request) => this.verdict.onRequest(request),
      onInternal: (error, { method, path }) =>
        this.verdict.violate(0, `${method} ${path} was answered 500: ${stackOf(error)}`),
    });
  }

  #makeControlPlane(index: number): ControlPlaneProcess {
    const { commits } = this.history;
    return new ControlPlaneProcess({
      name: `server-${index + 1}`,
      seed: this.seed,
      base: this.#database.store,
      checkWatches: (store) => withWatchCheck(store, { commits, onFault: (fault) => this.verdict.violate(6, fault) }),
      timeline: this.timeline,
      network: this.#network,
      policy: this.#policy(),
      log: this.#log,
      lives: this.#serverLives,
      tally: this.tally,
      chances: this.chances,
      buggify: this.#buggify,
      clockFaults: this.scenario.clocks[index] ?? {},
      weather: () => this.weather.serverStore,
      runStorage: this.#runStorage,
      broker: this.#broker,
      receivers: this.#edges.receivers,
      nodes: this.#edges.nodes,
      machines: this.#edges.machines,
      taskBroker: this.#edges.taskBroker,
      schedule: this.#edges.schedule,
      ...(this.scenario.moves ? { askHost: (host, path) => this.#askHost(host, path) } : {}),
      onPause: (durationMs) => this.#deafTimes.notePause(durationMs),
      onFlood: (flooded) => this.#deafTimes.noteFlood(flooded),
      onCached: (cached) => this.verdict.onCached(cached),
    });
  }

  #makeHost(index: number, capacity: Amounts, diskPrng: Prng): HostProcess {
    const name = `host-${index + 1}`;
    const { timeline, tally, chances, verdict } = this;
    this.#guests.onChange(name, (instanceId) => verdict.onGuest(name, instanceId));
    return new HostProcess({
      name,
      seed: this.seed,
      capacity,
      isDead: () => this.dead.has(name),
      ...(this.scenario.moves ? { moves: this.#offers } : {}),
      needsLease: this.scenario.losesHosts && ((id) => this.#needsLease(id)),
      timeline,
      network: this.#network,
      world: this.#guests,
      log: this.#log,
      buggify: this.#buggify,
      clockFaults: this.scenario.clocks[this.scenario.controlPlanes + index] ?? {},
      disk: new SimDisk({ timeline, prng: diskPrng, weather: () => this.weather.now.disk, tally, chances }),
      checkAssignments: () => {
        const check = createAssignmentCheck({ state: this.history.state, host: name });
        return (event) => {
          const fault = check(event);
          if (fault !== undefined) verdict.violate(6, fault);
        };
      },
      onGaveUp: (host, error) => verdict.violate(0, `the agent of ${host} gave up: ${error.message}`),
    });
  }

  /** Over the connection that its agent holds; it has none while it is down or cut off. */
  #askHost(name: string, path: string): Promise<Uint8Array> {
    const host = this.hosts.find((each) => each.name === name);
    if (host?.up !== true) return Promise.reject(new ApiError('HostUnreachable', `${name} is not connected`));
    return host.answer(path);
  }

  #needsLease(instanceId: string): boolean {
    for (const { metadata, spec } of this.history.state.list('instance'))
      if (metadata.id === instanceId) return spec.selfStop === true;
    return false;
  }

  #makeWorkload(): Workload {
    // One seed of four has a tenant that keeps volumes, whatever else it draws.
    const keepsVolumes =
      this.scenario.moves === true || (this.size === 'small' && seededPrng(this.seed, 'keeps volumes').chance(1, 4));
    // And one of four a tenant that runs jobs.
    const hasWorkloads =
      this.scenario.drainsHosts === true ||
      (this.size === 'small' && seededPrng(this.seed, 'has workloads').chance(1, 4));
    const runsJobs = this.size === 'small' && seededPrng(this.seed, 'runs jobs').chance(1, 4);
    // And one of four a tenant whose token is of one project.
    const isWalled = this.size === 'small' && seededPrng(this.seed, 'is walled').chance(1, 4);
    const resizes =
      this.scenario.resizes === true || (this.size === 'small' && seededPrng(this.seed, 'resizes').chance(1, 4));
    const keepsWarm =
      this.scenario.keepsWarm === true || (this.size === 'small' && seededPrng(this.seed, 'keeps warm').chance(1, 5));
    const hasLifetimes = this.size === 'small' && seededPrng(this.seed, 'has lifetimes').chance(1, 4);
    return new Workload({
      scenario: this.scenario,
      timeline: this.timeline,
      prng: this.prng.split(),
      ...(keepsVolumes ? { volumePrng: seededPrng(this.seed, 'volumes') } : {}),
      ...(this.scenario.moves ? { moverPrng: seededPrng(this.seed, 'moves') } : {}),
      ...(this.scenario.drainsHosts
        ? { drains: { prng: seededPrng(this.seed, 'drains'), hosts: this.hosts.map(({ name }) => name) } }
        : {}),
      ...(this.scenario.drainsHosts
        ? {
            rebalancerPrng: seededPrng(this.seed, 'rebalances'),
            rebalanceKeeperPrng: seededPrng(this.seed, 'schedules of rebalances'),
          }
        : {}),
      ...(resizes ? { resizerPrng: seededPrng(this.seed, 'sizes') } : {}),
      ...(hasLifetimes ? { lifePrng: seededPrng(this.seed, 'lifetimes') } : {}),
      ...(keepsWarm ? { warmPrng: seededPrng(this.seed, 'warm pools') } : {}),
      ...(hasWorkloads ? { replicaPrng: seededPrng(this.seed, 'replicas') } : {}),
      ...(this.scenario.updates === undefined ? {} : { updatesPrng: seededPrng(this.seed, 'updates') }),
      ...(runsJobs ? { jobPrng: seededPrng(this.seed, 'jobs') } : {}),
      ...(isWalled ? { walledPrng: seededPrng(this.seed, 'walled') } : {}),
      ...(this.#broker
        ? { messages: { prng: seededPrng(this.seed, 'requests'), broker: this.#broker, requests: this.#requests } }
        : {}),
      ...this.#edges.tenants(),
      network: this.#network,
      intents: this.intents,
      commits: this.history.commits,
      tally: this.tally,
      onViolation: this.verdict.violate,
      trace: this.trace.line,
    });
  }

  #makeEpilogue(): Epilogue {
    const { timeline, tally, chances, scenario, controlPlanes } = this;
    const clock = createProcessClock(timeline);
    const store = new SimStore({
      base: this.#database.store,
      clock,
      timeline,
      prng: this.prng.split(),
      weather: () => this.weather.now.store,
      tally,
      chances,
    });
    return new Epilogue({
      store,
      state: this.history.state,
      world: this.#guests,
      prng: this.prng.split(),
      tally,
      clock,
      stormy: scenario.restoredInStorm,
      servers: () => controlPlanes.flatMap(({ name, cache }) => (cache ? [{ name, cache }] : [])),
      trusted: (host) => !this.#excused.host(host),
      honest: (host) => !this.dead.has(host) && !this.#excused.host(host),
    });
  }

  #makeRogues() {
    return createRogues({
      timeline: this.timeline,
      network: this.#network,
      state: this.history.state,
      prng: this.prng,
      tally: this.tally,
      hosts: this.hosts.map(({ name }) => name),
      onViolation: this.verdict.violate,
    });
  }
}
