// The host agent: registers its host, watches what it should run, brings the guests to that, and reports. It carries on without
// the control plane, and its guests run on without it. It acts on the machine only through the parts it is given.
//
//   start ─► drivers find their guests, ledger is read ─► guests are brought to the ledger ─┐ goes on all the time
//                                                                                          │
//   ┌─► register ─► session: heartbeats + assignments + reports ─► over (StaleEpoch) ───┐  │
//   └──────────────────────── after a pause ◄───────────────────────────────────────────┘  ▼ stop

import type { RunPiece } from '../api/client/client.ts';
import { ApiError } from '../api/errors.ts';
import { neverBuggify } from '../base/buggify.ts';
import type { Timer } from '../base/clock.ts';
import { describeError } from '../base/log.ts';
import type { AgentOptions } from './session/agent-options.ts';
import type { Driver } from './drivers/driver.ts';
import { GuestReconciler } from './guests/guest-reconciler.ts';
import type { MoveSource, Outgoing } from './migration/move.ts';
import { Moves } from './migration/moves.ts';
import { openLedger } from './ledger/ledger.ts';
import { type NameOf, withNames } from './host/named.ts';
import { createReporter } from './session/reports.ts';
import type { AgentParts } from './session/agent-parts.ts';
import { Lease } from './session/lease.ts';
import { DriverRecovery } from './session/driver-recovery.ts';
import { holdSessions } from './session/sessions.ts';
import { createVolumeClaims } from './volumes/volume-claims.ts';
import { Runs } from './runner/runs.ts';
import { callTimeoutMs } from './session/agent-parts.ts';
import { awaitWithin } from './host/await-within.ts';
import { VolumeReconciler } from './volumes/volume-reconciler.ts';

export interface Agent {
  /** Resolves when the drivers know their guests again and the agent is at work, whether or not the control plane answers. */
  start(): Promise<void>;
  /** Resolves when everything is closed. Guests run on. The agent's drivers are closed with it. */
  stop(): Promise<void>;
  /** Resolves when the agent cannot go on: its host's name belongs to another machine, or to another data directory. Its guests run on; it is to be stopped. */
  readonly failed: Promise<Error>;
  /** Of an instance or a volume that is assigned to this host. */
  readonly nameOf: NameOf;
  /** Files of guests that leave this host, for the hosts that they move to. */
  readonly outgoing: Outgoing;
}

/** A server that is away must not delay a stop. */
const farewellTimeoutMs = 2_000;

/** The ledger may be old; the control plane is given this long to say what is wanted now before the ledger is acted upon. */
const ledgerPatienceMs = 10_000;

export function createAgent(options: AgentOptions): Agent {
  return new HostAgent(options);
}

class HostAgent implements Agent {
  readonly failed: Promise<Error>;
  readonly #options: AgentOptions;
  readonly #api: AgentParts['api'];
  readonly #stopping = new AbortController();
  readonly #failure = Promise.withResolvers<Error>();
  readonly #background: Promise<void>[] = [];
  readonly #recovery: DriverRecovery;
  #acting = false;
  /** Of the last session; undefined before the first. */
  #epoch: number | undefined;
  #patience: Timer | undefined;
  #parts: AgentParts | undefined;
  #moves: Moves | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: AgentOptions) {
    const { clock, prng, log } = options;
    this.#options = options;
    this.#api = options.client.agent(options.hostName);
    this.failed = this.#failure.promise;
    this.#recovery = new DriverRecovery({
      ...{ clock, prng, log },
      stopping: this.#stopping.signal,
      background: (run) => this.#background.push(this.#alive(run)),
      onRecovered: (driver) => this.#driverRecovered(driver),
    });
  }

  /** A field, so that it may be handed on without its agent. */
  readonly nameOf: NameOf = (id) => {
    const ledger = this.#parts?.ledger;
    return ledger?.newestOf(id)?.assignment.name ?? ledger?.volumeOf(id)?.name;
  };

  readonly outgoing: Outgoing = {
    manifest: async (move) => this.#known().manifest(move),
    read: async (move, piece) => this.#known().read(move, piece),
    machine: async (move) => this.#known().machine(move),
    sent: async (move) => this.#known().sent(move),
    send: async (move, call, signal) => this.#known().send(move, call, signal),
  };

  #known(): Moves {
    if (this.#moves === undefined) throw new ApiError('Unavailable', 'this host has not found its guests yet');
    return this.#moves;
  }

  async start(): Promise<void> {
    const { clock, drivers } = this.#options;
    const parts = await this.#assemble();
    this.#parts = parts;
    await Promise.all(drivers.map((driver) => this.#recovery.recover(driver)));
    if (this.#stopping.signal.aborted) return;
    this.#patience = clock.setTimer(ledgerPatienceMs, () => this.#beginActing());
    this.#background.push(this.#alive(() => holdSessions(parts)));
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    const { drivers, log } = this.#options;
    this.#stopping.abort();
    const farewell = this.#sayFarewell();
    this.#patience?.cancel();
    // Drivers first, so that a creation under way is left as it is, to be finished after the next start.
    const closing = drivers.map((driver) =>
      driver.close().catch((error: unknown) => {
        log.warn('cannot close a driver', { driver: driver.name, error: describeError(error) });
      }),
    );
    const guests = this.#parts?.guests.close();
    const left = this.#parts?.guests.needLease() ?? true;
    this.#options.watchdog?.watch(() => left); // drivers that are closed see no guests
    if (this.#options.runs !== undefined) await this.#parts?.runs.close(); // a guest may wait for its program
    await guests;
    await this.#parts?.volumes.close();
    await this.#options.directMoves?.close();
    await Promise.all([...closing, ...this.#background, farewell]);
    await this.#parts?.ledger.close();
  }

  /** Closes the host for placement at once. Without an answer its silence does that later. */
  async #sayFarewell(): Promise<void> {
    const { clock, log } = this.#options;
    if (this.#epoch === undefined) return;
    const notReady = { stopping: true, message: 'its agent has been stopped; its guests run on' };
    const heartbeat = { epoch: this.#epoch, notReady };
    const { signal: never } = new AbortController();
    const limits = { clock, timeoutMs: farewellTimeoutMs, signal: never, what: 'the last heartbeat' };
    await awaitWithin(limits, (signal) => this.#api.heartbeat(heartbeat, signal)).catch((error: unknown) =>
      log.info('the control plane does not know that this agent stops', { error: describeError(error) }),
    );
  }

  async #assemble(): Promise<AgentParts> {
    const options = this.#options;
    const { clock, prng, log, drivers, buggify = neverBuggify } = options;
    const agentId = await options.identity();
    const measurement = await options.measure();
    const owner = { host: options.hostName, machineId: measurement.machineId };
    const ledger = await openLedger({ file: options.ledgerFile, owner, clock, log, buggify });
    const ready = (driver: Driver): boolean => this.#recovery.isReady(driver);
    const lease = new Lease({
      clock,
      bootMs: options.bootMs ?? (() => clock.monotonicMs()),
      onEnd: () => {
        log.warn('the lease of this host has ended; guests that asked for it are stopped');
        guests.leaseChanged();
      },
      onRenewed: (untilMs) => options.watchdog?.renewed(untilMs),
    });
    this.#stopping.signal.addEventListener('abort', () => lease.close(), { once: true });
    const shared = { drivers, ready, mayAct: () => this.#acting, ledger, clock, prng, log };
    const claims = createVolumeClaims((volumeId) => volumes.look(volumeId));
    const runs = new Runs({
      parts: options.runs,
      send: (piece, signal) => this.#sendRunPart(piece, signal),
      onChange: (instanceId) => reporter.mark(instanceId),
      ...{ clock, prng, log },
    });
    if (options.runs !== undefined) await runs.open();
    const moves = new Moves({
      drivers,
      ledger,
      volumeFiles: options.volumeFiles,
      files: options.incomingFiles,
      direct: options.directMoves,
    });
    await moves.open();
    this.#moves = moves;
    const guests = new GuestReconciler({
      ...shared,
      ...{ moves, moveSource: options.moveSource ?? this.#moveSource, volumeFiles: options.volumeFiles },
      runs,
      leaseHeld: () => lease.held,
      buggify,
      onChange: (instanceId) => reporter.mark(instanceId),
      volumes: {
        claims,
        gateOf: (volumeId, instanceId) => volumes.gateOf(volumeId, instanceId),
        onTrouble: (volumeIds) => volumeIds.forEach(reporter.mark),
      },
    });
    const volumes = new VolumeReconciler({
      ...shared,
      files: options.volumeFiles,
      receivedOf: (volumeId) => moves.volumeOf(volumeId),
      claims,
      guestTrouble: (instanceId) => guests.volumeTroubleOf(instanceId),
      onChange: (volumeId) => {
        reporter.mark(volumeId);
        guests.volumeChanged(volumeId);
      },
    });
    options.watchdog?.watch(() => guests.needLease());
    const named = <T extends object>(seen: T | undefined): T | undefined => seen && withNames(seen, this.nameOf);
    const reporter = createReporter({
      ...{ ledger, clock, prng, log, buggify },
      statusOf: (entry) => named(guests.statusOf(entry)),
      volumeSeenOf: (volumeId) => named(volumes.seenOf(volumeId)),
    });
    return {
      ...{ options, api: this.#api, agentId, measurement, ledger, guests, volumes, runs, reporter },
      recovery: this.#recovery,
      lease,
      stopping: this.#stopping.signal,
      onSession: ({ epoch }) => (this.#epoch = epoch),
      beginActing: () => this.#beginActing(),
    };
  }

  /** Through the control plane, over the connection that the other host holds to it. */
  readonly #moveSource: MoveSource = {
    manifest: (move, signal) => this.#api.moveManifest({ ...move, epoch: this.#epochNow() }, signal),
    read: (move, piece, signal) => this.#api.readMove({ ...move, ...piece, epoch: this.#epochNow() }, signal),
  };

  #epochNow(): number {
    if (this.#epoch === undefined) throw new ApiError('Unavailable', 'this host is not registered yet');
    return this.#epoch;
  }

  async #sendRunPart(piece: RunPiece, signal: AbortSignal): Promise<number> {
    if (this.#epoch === undefined) throw new ApiError('Unavailable', 'this host is not registered yet');
    const limits = { clock: this.#options.clock, timeoutMs: callTimeoutMs, signal, what: 'sending of a run' };
    const epoch = this.#epoch;
    return awaitWithin(limits, (cut) => this.#api.sendRunPart({ ...piece, epoch }, cut));
  }

  #driverRecovered(driver: Driver): void {
    if (this.#parts === undefined) return; // no driver recovers before `start` has its parts
    const { guests, volumes } = this.#parts;
    driver.watch((instanceId) => {
      volumes.guestChanged(instanceId);
      guests.look(instanceId);
    }, this.#stopping.signal);
    for (const { instanceId } of driver.guests()) volumes.guestChanged(instanceId);
    volumes.lookAtAll();
    guests.lookAtAll();
  }

  #beginActing(): void {
    this.#patience?.cancel();
    if (this.#acting) return;
    this.#acting = true;
    this.#sweepRuns();
    this.#parts?.volumes.lookAtAll();
    this.#parts?.guests.lookAtAll();
  }

  /** What is left of runs that the control plane speaks of no more. */
  #sweepRuns(): void {
    const { ledger, runs, guests } = this.#parts ?? {};
    if (ledger?.confirmed !== true || runs === undefined || guests === undefined) return;
    const unknown = new Set(guests.unknownGuests().map(({ instanceId }) => instanceId));
    const left = runs.instanceIds().filter((id) => ledger.newestOf(id) === undefined && !unknown.has(id));
    if (left.length > 0)
      this.#background.push(this.#alive(async () => void (await Promise.all(left.map((id) => runs.forget(id))))));
  }

  /** Nothing that runs by itself may end in an unhandled rejection. */
  async #alive(run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const reason = error instanceof Error ? error : new Error(describeError(error));
    this.#options.log.error('the agent cannot go on', { error: reason.message });
    this.#stopping.abort();
    this.#failure.resolve(reason);
  }
}
