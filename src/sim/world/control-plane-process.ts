// A control plane as a process that starts, dies, stops and starts again: the real one, over false store, clock and network.

import type { Buggify } from '../../base/buggify.ts';
import type { Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { ApiError } from '../../api/errors.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Policy } from '../../core/state/context.ts';
import { type Server, startControlPlane } from '../../server/server.ts';
import type { Store } from '../../store/store.ts';
import type { Cached, ServerLife } from '../checkers/checker.ts';
import type { Network } from './network.ts';
import type { Endpoint } from './peer.ts';
import { type ClockFaults, createProcessClock, type ProcessClock } from './process-clock.ts';
import { createSimStore, type SimStoreOptions } from './sim-store.ts';

export interface ControlPlaneProcess {
  readonly name: string;
  /** It lives; it may still be starting. */
  readonly up: boolean;
  /** What it believes; undefined until it has started. */
  readonly cache: Cache | undefined;
  start(): void;
  /** At once, wherever it stands. */
  crash(): void;
  /** As asked to, letting go of everything first. */
  stop(): Promise<void>;
  pause(durationMs: number): void;
  /** Begins or ends a time in which more comes than it keeps up with. */
  flood(flooded: boolean): void;
  jumpWallTime(byMs: number): void;
  /** Cuts the way to the store, or opens it again. */
  partFromStore(parted: boolean): void;
}

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
  /** Holds whatever its store's watches deliver to the history. */
  readonly checkWatches: (store: Store) => Store;
  readonly onPause: (durationMs: number) => void;
  readonly onFlood: (flooded: boolean) => void;
  /** It has just heard of a key. */
  readonly onCached: (cached: Cached) => void;
}

interface Life {
  readonly noted: ServerLife;
  readonly clock: ProcessClock;
  server?: Server;
}

const leaderLeaseMs = 6_000;
/** As a supervisor restarts it. */
const restartDelayMs = 1000;

export function createControlPlaneProcess(options: ControlPlaneOptions): ControlPlaneProcess {
  const { name, seed, network, timeline } = options;
  const endpoint: Endpoint = network.endpoint(name);
  let starts = 0;
  let parted = false;
  let life: Life | undefined;
  let restart: Timer | undefined;

  const start = (): void => {
    if (life) return;
    starts += 1;
    const prng = seededPrng(seed, `${name}#${starts}`);
    const clock = createProcessClock(timeline, options.clockFaults);
    const mine: Life = { clock, noted: { startedMs: timeline.nowMs } };
    options.lives.push(mine.noted);
    life = mine;
    const run = async (): Promise<void> => {
      try {
        mine.server = await startControlPlane({
          store: options.checkWatches(createSimStore({ ...options, clock, prng: prng.split(), parted: () => parted })),
          clock,
          idleMs: () => clock.idleMs(),
          prng,
          log: options.log.with({ process: `${name}#${starts}` }),
          policy: options.policy,
          buggify: options.buggify,
          links: {
            get: noLine,
            open: noLine,
          },
          version: 'sim',
          name,
          leaseMs: leaderLeaseMs,
          secrets: { tokenSecret: 'x'.repeat(43), operatorToken: 'operator' },
        });
        const { cache } = mine.server.decider;
        cache.onCommitted((key) => options.onCached({ server: name, cache, key }));
        network.listen(endpoint, clock, mine.server.routes);
      } catch (error) {
        options.log.warn('control plane did not start', { process: name, error: describeError(error) });
        crash();
        restart = timeline.schedule(restartDelayMs, start);
      }
    };
    void run();
  };

  const crash = (): void => {
    restart?.cancel();
    life?.clock.kill();
    if (life) life.noted.endedMs = timeline.nowMs;
    life = undefined;
    network.hangUp(endpoint);
  };

  return {
    name,
    get up() {
      return life !== undefined;
    },
    get cache() {
      return life?.server?.decider.cache;
    },
    start,
    crash,
    async stop() {
      const stopping = life;
      if (stopping?.server === undefined) return crash();
      network.hangUp(endpoint);
      await stopping.server.stop();
      if (life === stopping) crash();
    },
    pause(durationMs) {
      life?.clock.pause(durationMs);
      options.onPause(durationMs);
    },
    flood(flooded) {
      life?.clock.flood(flooded);
      options.onFlood(flooded);
    },
    jumpWallTime: (byMs) => life?.clock.jump(byMs),
    partFromStore(cut) {
      parted = cut;
    },
  };
}

const noLine = (host: string): Promise<never> =>
  Promise.reject(new ApiError('HostUnreachable', `no line to ${host} in the simulator`));
