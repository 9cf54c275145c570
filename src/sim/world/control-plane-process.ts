// A control plane as a process that starts, dies, stops and starts again: the real one, over a false store, clock and network.

import type { Buggify } from '../../base/buggify.ts';
import { sleep, type Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { type Prng, seededPrng } from '../../base/prng.ts';
import { Amqp } from '../../server/intake/amqp/amqp.ts';
import { TaskQueue } from '../../server/intake/amqp/task-queue.ts';
import { minting } from '../../server/http/identity/mint-token.ts';
import { ApiError } from '../../api/errors.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Policy } from '../../core/state/context.ts';
import { defaultRunLimits, RunFiles } from '../../server/runs/run-files.ts';
import type { RunStorage } from '../../server/runs/run-storage.ts';
import { type Server, type ServerParts, startControlPlane } from '../../server/server.ts';
import type { HostLinks } from '../../server/http/agent-link/host-links.ts';
import { PlacementApp } from '../../server/placement/app.ts';
import type { Store } from '../../store/store.ts';
import type { Cached, ServerLife } from '../checkers/checker.ts';
import type { FalseLink } from './broker/false-link.ts';
import type { SimBroker } from './broker/sim-broker.ts';
import type { FalseMachines } from './false-machines.ts';
import type { FalseNodes } from './false-nodes.ts';
import type { FalseReceivers } from './false-receivers.ts';
import type { Network } from './network.ts';
import type { Endpoint } from './peer.ts';
import { placementDoor } from './placement-door.ts';
import { type ClockFaults, createProcessClock, type ProcessClock } from './process-clock.ts';
import { SimStore, type SimStoreOptions } from './sim-store.ts';

export interface ControlPlaneOptions extends Omit<SimStoreOptions, 'clock' | 'prng' | 'parted'> {
  readonly name: string;
  readonly seed: number;
  readonly network: Network;
  readonly policy: Policy;
  readonly log: Logger;
  /** Every life is noted here. */
  readonly lives: ServerLife[];
  readonly buggify: Buggify;
  /** The clock of its machine. */
  readonly clockFaults: ClockFaults;
  /** Compares everything that its store's watches deliver with the history. */
  readonly checkWatches: (store: Store) => Store;
  /** Shared by all control planes. */
  readonly runStorage: RunStorage;
  /** Absent: none is configured. */
  readonly broker: SimBroker | undefined;
  /** Of the task queue. Absent: none is configured. */
  readonly taskBroker: SimBroker | undefined;
  /** Of webhooks. Absent: nothing is sent. */
  readonly receivers: FalseReceivers | undefined;
  /** Of another system. Absent: no inventory is polled. */
  readonly nodes: FalseNodes | undefined;
  /** Of spares. Absent: none can be made. */
  readonly machines: FalseMachines | undefined;
  /** Of requests to /schedule. */
  readonly schedule: Required<Pick<ServerParts, 'scheduleTtlMs' | 'scheduleWhenFull'>>;
  /** Asks an agent for something, as over the connection that it holds. Absent: there are no such connections. */
  readonly askHost?: (host: string, path: string) => Promise<Uint8Array>;
  readonly onPause: (durationMs: number) => void;
  readonly onFlood: (flooded: boolean) => void;
  /** Called when its cache has a new value of a key. */
  readonly onCached: (cached: Cached) => void;
}

interface Life {
  readonly id: string;
  readonly noted: ServerLife;
  readonly clock: ProcessClock;
  server?: Server;
  /** The ends of its connections to brokers. */
  readonly forgets: (() => void)[];
  amqp?: Amqp;
  tasks?: TaskQueue;
}

const leaderLeaseMs = 6_000;
/** As a supervisor restarts it. */
const restartDelayMs = 1000;

export class ControlPlaneProcess {
  readonly name: string;
  readonly #options: ControlPlaneOptions;
  readonly #endpoint: Endpoint;
  #starts = 0;
  #parted = false;
  #life: Life | undefined;
  #restart: Timer | undefined;

  constructor(options: ControlPlaneOptions) {
    this.name = options.name;
    this.#options = options;
    this.#endpoint = options.network.endpoint(options.name);
  }

  /** It lives; it may still be starting. */
  get up(): boolean {
    return this.#life !== undefined;
  }

  /** Undefined until it has started. */
  get cache(): Cache | undefined {
    return this.#life?.server?.decider.cache;
  }

  /** What its clock says. */
  readonly wallMs = (): number => this.#life?.clock.nowMs() ?? 0;

  start(): void {
    if (this.#life) return;
    const { timeline, clockFaults, lives } = this.#options;
    this.#starts += 1;
    this.#life = {
      id: `${this.name}#${this.#starts}`,
      clock: createProcessClock(timeline, clockFaults),
      noted: { startedMs: timeline.nowMs },
      forgets: [],
    };
    lives.push(this.#life.noted);
    void this.#run(this.#life);
  }

  /** Dies at once, whatever it is doing. */
  crash(): void {
    this.#restart?.cancel();
    this.#life?.clock.kill();
    for (const forget of this.#life?.forgets ?? []) forget();
    if (this.#life) this.#life.noted.endedMs = this.#options.timeline.nowMs;
    this.#life = undefined;
    this.#options.network.hangUp(this.#endpoint);
  }

  /** Ends in order, as on SIGTERM. */
  async stop(): Promise<void> {
    const stopping = this.#life;
    if (stopping?.server === undefined) return this.crash();
    this.#options.network.hangUp(this.#endpoint);
    await stopping.amqp?.stop();
    await stopping.tasks?.stop();
    await stopping.server.stop();
    if (this.#life === stopping) this.crash();
  }

  pause(durationMs: number): void {
    this.#life?.clock.pause(durationMs);
    this.#options.onPause(durationMs);
  }

  /** Begins or ends a time in which it gets more work than it can do. */
  flood(flooded: boolean): void {
    this.#life?.clock.flood(flooded);
    this.#options.onFlood(flooded);
  }

  jumpWallTime(byMs: number): void {
    this.#life?.clock.jump(byMs);
  }

  /** Puts a partition between it and the store, or removes it. */
  partFromStore(parted: boolean): void {
    this.#parted = parted;
  }

  async #run(life: Life): Promise<void> {
    const { name } = this;
    const { network, log, onCached } = this.#options;
    try {
      life.server = await this.#startServer(life);
      const { cache } = life.server.decider;
      cache.onCommitted((key) => onCached({ server: name, cache, key }));
      network.listen(this.#endpoint, life.clock, {
        routes: [...life.server.routes, placementDoor(new PlacementApp({ decider: life.server.decider, log }))],
        snapshot: life.server.decider.cache,
      });
      await this.#startIntake(life, life.server);
    } catch (error) {
      log.warn('control plane did not start', { process: name, error: describeError(error) });
      this.crash();
      this.#restart = this.#options.timeline.schedule(restartDelayMs, () => this.start());
    }
  }

  /** As server/run.ts starts it. */
  async #startIntake(life: Life, { decider, leads }: Server): Promise<void> {
    const { broker, taskBroker, schedule } = this.#options;
    const log = this.#options.log.with({ process: life.id });
    if (broker) {
      const { settings } = broker;
      life.amqp = await Amqp.start({ settings, decider, leads, open: () => connect(life, broker), log });
    }
    if (taskBroker) {
      const { settings } = taskBroker;
      const ttlMs = schedule.scheduleTtlMs;
      life.tasks = await TaskQueue.start({ settings, decider, open: () => connect(life, taskBroker), log, ttlMs });
    }
  }

  #startServer({ id, clock }: Life): Promise<Server> {
    const { seed, log, policy, buggify, checkWatches, receivers, nodes, machines, schedule, askHost } = this.#options;
    const prng = seededPrng(seed, id);
    const tokens = seededPrng(seed, `tokens of ${id}`);
    const store = new SimStore({ ...this.#options, clock, prng: prng.split(), parted: () => this.#parted });
    return startControlPlane({
      store: checkWatches(store),
      clock,
      idleMs: () => clock.idleMs(),
      prng,
      log: log.with({ process: id }),
      policy,
      buggify,
      links: { get: askHost === undefined ? noLine : lineOf(clock, askHost), open: noLine },
      ...(receivers === undefined ? {} : { post: receivers.postFor(clock) }),
      ...(machines === undefined ? {} : { spares: machines.meansFor(clock) }),
      ...(nodes === undefined ? {} : { fetch: nodes.fetchFor(clock) }),
      ...schedule,
      mint: minting((length) => drawBytes(tokens, length)),
      runFiles: new RunFiles({ storage: this.#options.runStorage, limits: defaultRunLimits, clock }),
      version: 'sim',
      name: this.name,
      leaseMs: leaderLeaseMs,
      secrets: { tokenSecret: 'x'.repeat(43), operatorToken: 'operator' },
    });
  }
}

function connect(life: Life, broker: SimBroker): FalseLink {
  const link = broker.link(life.clock);
  life.forgets.push(() => broker.forget(link));
  return link;
}

function drawBytes(prng: Prng, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => prng.below(256));
}

/** Milliseconds, one way. */
const lineMs = 5;

function lineOf(clock: ProcessClock, ask: NonNullable<ControlPlaneOptions['askHost']>): HostLinks['get'] {
  return async (host, path) => {
    await sleep(clock, lineMs);
    const bytes = await ask(host, path);
    await sleep(clock, lineMs);
    return { headers: {}, body: onePiece(bytes) };
  };
}

async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

const noLine = (host: string): Promise<never> =>
  Promise.reject(new ApiError('HostUnreachable', `no line to ${host} in the simulator`));
