// The host agent: registers its host, watches what it should run, brings the guests to that, and reports. It carries on without
// the control plane, and its guests run on without it. It acts on the machine only through the parts it is given.
//
//   start ─► drivers find their guests, ledger is read ─► guests are brought to the ledger ─┐ goes on all the time
//                                                                                          │
//   ┌─► register ─► session: heartbeats + assignments + reports ─► over (StaleEpoch) ───┐  │
//   └──────────────────────── after a pause ◄───────────────────────────────────────────┘  ▼ stop

import {
  type AssignmentEvent,
  type Heartbeat,
  type Registration,
  type Session,
  unknownGuestsMax,
} from '../api/agent-protocol.ts';
import type { Client } from '../api/client.ts';
import { ApiError } from '../api/errors.ts';
import type { HostDriver, HostImage } from '../api/resources/host.ts';
import type { Labels } from '../api/resources/metadata.ts';
import { backoffMs } from '../base/backoff.ts';
import { type Buggify, neverBuggify } from '../base/buggify.ts';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { newId } from '../base/ids.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import { awaitWithin, settleWithin } from './host/await-within.ts';
import type { Driver } from './drivers/driver.ts';
import { type LedgerFile, openLedger } from './ledger.ts';
import { type NameOf, withNames } from './named.ts';
import { GuestReconciler } from './guests/guest-reconciler.ts';
import { createReporter } from './reports.ts';
import { VolumeReconciler } from './volumes/volume-reconciler.ts';
import { createVolumeClaims } from './volumes/volume-claims.ts';
import type { VolumeFiles } from './volumes/volume-files.ts';

/** What is measured of the machine. */
export type Measurement = Pick<
  Registration,
  'machineId' | 'bootId' | 'architecture' | 'capacity' | 'reserved' | 'traits' | 'providers'
>;

export interface AgentOptions {
  readonly client: Pick<Client, 'agent'>;
  readonly hostName: string;
  readonly labels?: Labels;
  readonly agentVersion: string;
  /** Who this agent is: `agentIdentity` of its data directory. */
  readonly identity: () => Promise<string>;
  readonly drivers: readonly Driver[];
  readonly ledgerFile: LedgerFile;
  /** The volumes of this host. Absent: it keeps none, and says so of those that it is to have. */
  readonly volumeFiles?: VolumeFiles;
  readonly measure: () => Promise<Measurement>;
  /** What the image cache holds. Default: nothing. */
  readonly listImages?: () => Promise<readonly HostImage[]>;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where the simulator has the unusual done. Default: nowhere. */
  readonly buggify?: Buggify;
  /** Called with every session that begins; `signal` aborts when it is over. Must not throw. */
  readonly onSession?: (session: Session, signal: AbortSignal) => void;
}

export interface Agent {
  /** Resolves when the drivers know their guests again and the agent is at work, whether or not the control plane answers. */
  start(): Promise<void>;
  /** Resolves when all is let go. Guests run on. The agent's drivers are closed with it. */
  stop(): Promise<void>;
  /** Resolves when the agent cannot go on: its host's name belongs to another machine, or to another data directory. Its guests run on; it is to be stopped. */
  readonly failed: Promise<Error>;
  /** Of an instance or a volume that is assigned to this host. */
  readonly nameOf: NameOf;
}

/** The ledger may be old; the control plane is given this long to say what is wanted now before the ledger is acted upon. */
const ledgerPatienceMs = 10_000;
const callTimeoutMs = 30_000;
const registerRetry = { delayMsMin: 500, delayMsMax: 30_000 };
const sessionRetry = { delayMsMin: 1000, delayMsMax: 60_000 }; // two agents of one host take turns no faster than this
const watchRetry = { delayMsMin: 200, delayMsMax: 5000 }; // a server that restarts finds its hosts again within seconds
const recoverRetry = { delayMsMin: 1000, delayMsMax: 60_000 };
const settledAfterMs = 60_000; // a session that lasted so long was a good one
const watchSettledAfterMs = 1000;
const silenceMsMin = 30_000; // the line carries pings; this much silence means it is dead
const lookTimeoutMs = 1000;
const fingerprintMs = 10 * 60_000; // a hypervisor that was installed or removed meanwhile

export function createAgent(options: AgentOptions): Agent {
  const { clock, prng, log, drivers, buggify = neverBuggify } = options;
  const api = options.client.agent(options.hostName);
  const stopping = new AbortController();
  const failure = Promise.withResolvers<Error>();
  const ready = new Set<Driver>();
  const blind = new Map<Driver, string>(); // why a driver cannot find its guests again
  const background: Promise<void>[] = [];
  let acting = false;
  let patience: Timer | undefined;
  let running: Running | undefined;
  let stopped: Promise<void> | undefined;

  interface Running {
    readonly agentId: string;
    readonly measurement: Measurement;
    readonly ledger: Awaited<ReturnType<typeof openLedger>>;
    readonly reconciler: GuestReconciler;
    readonly volumes: VolumeReconciler;
    readonly reporter: ReturnType<typeof createReporter>;
  }

  const nameOf: NameOf = (id) => running?.ledger.newestOf(id)?.assignment.name ?? running?.ledger.volumeOf(id)?.name;

  const start = async (): Promise<void> => {
    const agentId = await options.identity();
    const measurement = await options.measure();
    const owner = { host: options.hostName, machineId: measurement.machineId };
    const ledger = await openLedger({ file: options.ledgerFile, owner, clock, log, buggify });
    const shared = {
      drivers,
      ready: (driver: Driver) => ready.has(driver),
      mayAct: () => acting,
      ledger,
      clock,
      prng,
      log,
    };
    const volumeChanged = (volumeId: string): void => {
      reporter.mark(volumeId);
      reconciler.volumeChanged(volumeId);
    };
    const claims = createVolumeClaims((volumeId) => volumes.look(volumeId));
    const reconciler = new GuestReconciler({
      ...shared,
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
      claims,
      guestTrouble: (instanceId) => reconciler.volumeTroubleOf(instanceId),
      onChange: volumeChanged,
    });
    const statusOf: GuestReconciler['statusOf'] = (entry) => {
      const status = reconciler.statusOf(entry);
      return status && withNames(status, nameOf);
    };
    const volumeSeenOf: VolumeReconciler['seenOf'] = (volumeId) => {
      const seen = volumes.seenOf(volumeId);
      return seen && withNames(seen, nameOf);
    };
    const reporter = createReporter({ ledger, statusOf, volumeSeenOf, clock, prng, log, buggify });
    const parts: Running = { agentId, measurement, ledger, reconciler, volumes, reporter };
    running = parts;
    await Promise.all(drivers.map((driver) => recover(driver, parts)));
    if (stopping.signal.aborted) return;
    patience = clock.setTimer(ledgerPatienceMs, () => beginActing(parts));
    background.push(alive(() => holdSessions(parts)));
  };

  /** From now on guests are brought to what the ledger says. */
  const beginActing = ({ reconciler, volumes }: Pick<Running, 'reconciler' | 'volumes'>): void => {
    patience?.cancel();
    if (acting) return;
    acting = true;
    volumes.lookAtAll();
    reconciler.lookAtAll();
  };

  /** Nothing that runs by itself may end in an unhandled rejection. */
  const alive = async (run: () => Promise<void>): Promise<void> => {
    try {
      await run();
    } catch (error) {
      if (!stopping.signal.aborted) fail(error);
    }
  };

  const fail = (error: unknown): void => {
    const told = error instanceof Error ? error : new Error(describeError(error));
    log.error('the agent cannot go on', { error: told.message });
    stopping.abort();
    failure.resolve(told);
  };

  // ── drivers ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The first try is waited for, those after it are made in the background. */
  const recover = async (driver: Driver, { reconciler, volumes }: Running): Promise<void> => {
    const once = async (): Promise<boolean> => {
      try {
        await driver.recover();
      } catch (error) {
        blind.set(driver, describeError(error));
        log.error('a driver cannot find its guests again; trying again', {
          driver: driver.name,
          error: describeError(error),
        });
        return false;
      }
      if (stopping.signal.aborted) return true;
      ready.add(driver);
      driver.watch((instanceId) => {
        volumes.guestChanged(instanceId);
        reconciler.look(instanceId);
      }, stopping.signal);
      for (const { instanceId } of driver.guests()) volumes.guestChanged(instanceId);
      volumes.lookAtAll();
      reconciler.lookAtAll();
      return true;
    };
    if (await once()) return;
    const again = async (): Promise<void> => {
      for (let attempt = 0; !stopping.signal.aborted; attempt++) {
        await sleep(clock, backoffMs(attempt, recoverRetry, prng), stopping.signal);
        if (!stopping.signal.aborted && (await once())) return;
      }
    };
    background.push(alive(again));
  };

  const fingerprintOf = async (driver: Driver): Promise<HostDriver> => {
    const { name } = driver;
    if (!ready.has(driver)) {
      const reason = `it cannot find its guests again: ${blind.get(driver) ?? 'it is still looking'}`;
      return { name, available: false, reason: reason.slice(0, 1024) };
    }
    try {
      const { reason, version, ...seen } = await awaitWithin(
        { clock, timeoutMs: callTimeoutMs, signal: stopping.signal, what: `looking at driver "${name}"` },
        () => driver.fingerprint(),
      );
      return {
        name,
        ...seen,
        ...(driver.suspension === undefined ? {} : { suspends: true }),
        ...(reason === undefined ? {} : { reason: reason.slice(0, 1024) }),
        ...(version === undefined ? {} : { version: version.slice(0, 128) }),
      };
    } catch (error) {
      return { name, available: false, reason: describeError(error).slice(0, 1024) };
    }
  };

  const fingerprints = (): Promise<HostDriver[]> => Promise.all(drivers.map(fingerprintOf));

  /** Whoever has not heard what is wanted cannot tell. */
  const unknownVolumes = async (volumes: Running['volumes'], synced: boolean): Promise<string[]> => {
    if (!synced) return [];
    try {
      return [...(await volumes.unknown())].sort().slice(0, unknownGuestsMax);
    } catch (error) {
      log.warn('cannot list the volumes of this host', { error: describeError(error) });
      return [];
    }
  };

  const images = async (): Promise<HostImage[]> => {
    try {
      return [...((await options.listImages?.()) ?? [])].slice(0, 1024);
    } catch (error) {
      log.warn('cannot list the images of this host', { error: describeError(error) });
      return [];
    }
  };

  // ── sessions ────────────────────────────────────────────────────────────────────────────────────────────────────

  const holdSessions = async (parts: Running): Promise<void> => {
    for (let attempt = 0; !stopping.signal.aborted; ) {
      const registration = await registrationOf(parts);
      const session = await register(registration);
      if (session === undefined) return; // stopped
      const beganMs = clock.monotonicMs();
      log.info('registered', { host: options.hostName, epoch: session.epoch });
      const reason = await holdSession(parts, session, registration);
      if (stopping.signal.aborted) return;
      if (clock.monotonicMs() - beganMs >= settledAfterMs) attempt = 0;
      const delayMs = backoffMs(attempt++, sessionRetry, prng);
      log.warn('the session is over; registering again', {
        epoch: session.epoch,
        reason: describeError(reason),
        delayMs,
      });
      await sleep(clock, delayMs, stopping.signal);
    }
  };

  const registrationOf = async ({ agentId, measurement }: Running): Promise<Registration> => ({
    session: newId('sess', clock.nowMs(), prng),
    agentId,
    ...measurement,
    labels: { ...options.labels },
    drivers: await fingerprints(),
    images: await images(),
    agentVersion: options.agentVersion,
  });

  /** Tries until it is answered. Repeating one registration is harmless: it names its session. */
  const register = async (registration: Registration): Promise<Session | undefined> => {
    for (let attempt = 0; !stopping.signal.aborted; attempt++) {
      try {
        return await call('registering', (signal) => api.register(registration, signal));
      } catch (error) {
        if (stopping.signal.aborted) return undefined;
        if (error instanceof ApiError && error.code === 'Conflict') {
          throw new Error(`cannot register host "${options.hostName}": ${error.message}`, { cause: error });
        }
        const delayMs = backoffMs(attempt, registerRetry, prng);
        const away = error instanceof ApiError && error.code === 'Unavailable';
        const fields = { host: options.hostName, error: describeError(error), ...adviceOf(error), delayMs };
        if (away) log.warn('cannot register; carrying on with what was last wanted', fields);
        else log.error('cannot register; carrying on with what was last wanted', fields);
        await sleep(clock, delayMs, stopping.signal);
      }
    }
    return undefined;
  };

  /** The answer names no host: whose token it is, only who made it can know. */
  const adviceOf = (error: unknown): { readonly advice?: string } =>
    error instanceof ApiError && (error.code === 'Unauthenticated' || error.code === 'Forbidden')
      ? {
          advice: `its token is not that of host "${options.hostName}": give it what "berth host token ${options.hostName}" prints, or the name that its token was made for`,
        }
      : {};

  /** Resolves with the reason when the session is over. */
  const holdSession = async (parts: Running, session: Session, registration: Registration): Promise<unknown> => {
    const over = new AbortController();
    const end = (): void => over.abort();
    stopping.signal.addEventListener('abort', end, { once: true });
    if (stopping.signal.aborted) end();
    let reason: unknown;
    const part = async (run: () => Promise<void>): Promise<void> => {
      try {
        await run();
      } catch (error) {
        reason ??= error;
      } finally {
        over.abort();
      }
    };
    const state: SessionState = { session, revision: 0, synced: false };
    options.onSession?.(session, over.signal);
    await Promise.all([
      part(() => sendHeartbeats(parts, state, registration, over.signal)),
      part(() => watchAssignments(parts, state, over.signal)),
      part(() =>
        parts.reporter.run({ epoch: session.epoch, send: api.report, endsSession: isSessionOver }, over.signal),
      ),
    ]);
    stopping.signal.removeEventListener('abort', end);
    return reason;
  };

  interface SessionState {
    readonly session: Session;
    /** The newest that the control plane has shown us in this session. */
    revision: number;
    /** Whether the ledger is that of the control plane; before, "unknown guest" means nothing. */
    synced: boolean;
  }

  const call = <Result>(what: string, make: (signal: AbortSignal) => Promise<Result>, signal = stopping.signal) =>
    awaitWithin({ clock, timeoutMs: callTimeoutMs, signal, what }, make);

  // ── heartbeats ──────────────────────────────────────────────────────────────────────────────────────────────────

  const sendHeartbeats = async (
    { reconciler, reporter, volumes }: Running,
    state: SessionState,
    registration: Registration,
    signal: AbortSignal,
  ): Promise<void> => {
    const { epoch, heartbeatMs } = state.session;
    let told: Omit<Required<Heartbeat>, 'epoch'> = {
      drivers: registration.drivers,
      images: registration.images,
      unknownGuests: [],
      unknownVolumes: [],
      guestsTold: false,
    };
    let now = told;
    const changes = (): number => drivers.reduce((sum, driver) => sum + (driver.changes?.() ?? 0), ready.size);
    let changesSeen = changes();
    let lookedMs = clock.monotonicMs();
    let looking: Promise<void> | undefined;
    const lookAround = async (): Promise<void> => {
      const due = clock.monotonicMs() - lookedMs >= fingerprintMs || changes() !== changesSeen;
      if (due) {
        changesSeen = changes();
        lookedMs = clock.monotonicMs();
      }
      const found = {
        images: await images(),
        unknownVolumes: await unknownVolumes(volumes, state.synced),
        ...(due ? { drivers: await fingerprints() } : {}),
      };
      if (found.unknownVolumes.length > 0 && !same(found.unknownVolumes, now.unknownVolumes))
        log.warn('there are volumes on this host that the control plane does not speak of; they are left alone', {
          volumes: found.unknownVolumes,
        });
      now = { ...now, ...found };
      looking = undefined;
    };
    // Hosts that registered together need not be heard together.
    await sleep(clock, prng.below(Math.max(1, heartbeatMs)), signal);
    for (let attempt = 0; !signal.aborted; ) {
      // A driver or disk that hangs must not make the host look dead: what is not found in time is told later.
      const around = (looking ??= lookAround());
      await settleWithin({ clock, timeoutMs: lookTimeoutMs, signal, what: 'looking around' }, () => around).catch(
        () => {},
      );
      if (signal.aborted) return;
      const unknown = state.synced ? reconciler.unknownGuests() : [];
      now = {
        ...now,
        unknownGuests: unknown.slice(0, unknownGuestsMax),
        guestsTold: state.synced && ready.size === drivers.length && unknown.length <= unknownGuestsMax,
      };
      const heartbeat: Heartbeat = {
        epoch,
        ...(same(now.drivers, told.drivers) ? {} : { drivers: now.drivers }),
        ...(same(now.images, told.images) ? {} : { images: now.images }),
        ...(same(now.unknownGuests, told.unknownGuests) ? {} : { unknownGuests: now.unknownGuests }),
        ...(same(now.unknownVolumes, told.unknownVolumes) ? {} : { unknownVolumes: now.unknownVolumes }),
        ...(now.guestsTold === told.guestsTold ? {} : { guestsTold: now.guestsTold }),
      };
      const sent = now;
      let delayMs = heartbeatMs;
      try {
        await awaitWithin({ clock, timeoutMs: Math.max(heartbeatMs, 5000), signal, what: 'a heartbeat' }, (limit) =>
          api.heartbeat(heartbeat, limit),
        );
        told = sent;
        attempt = 0;
        reporter.repeatStale();
        if (buggify('heartbeat-late')) delayMs += heartbeatMs / 4;
      } catch (error) {
        if (signal.aborted) return;
        if (isSessionOver(error)) throw error;
        log.warn('a heartbeat was not answered', { error: describeError(error) });
        delayMs = backoffMs(attempt++, { delayMsMin: 500, delayMsMax: heartbeatMs }, prng);
      }
      await sleep(clock, delayMs, signal);
      if (buggify('session-anew')) throw new SessionOver('the simulator wants another');
    }
  };

  // ── assignments ─────────────────────────────────────────────────────────────────────────────────────────────────

  const watchAssignments = async (parts: Running, state: SessionState, signal: AbortSignal): Promise<void> => {
    for (let attempt = 0; !signal.aborted; ) {
      const beganMs = clock.monotonicMs();
      try {
        await watchOnce(parts, state, signal);
        if (!signal.aborted) log.debug('the line of assignments was closed');
      } catch (error) {
        if (signal.aborted) return;
        if (isSessionOver(error)) throw error;
        log.warn('the line of assignments broke; opening it again', { error: describeError(error) });
      }
      if (clock.monotonicMs() - beganMs >= watchSettledAfterMs) attempt = 0;
      await sleep(clock, backoffMs(attempt++, watchRetry, prng), signal);
    }
  };

  const watchOnce = async (parts: Running, state: SessionState, signal: AbortSignal): Promise<void> => {
    const line = new AbortController();
    const timeoutMs = Math.max(silenceMsMin, 3 * state.session.heartbeatMs);
    const events = api.assignments(state.session.epoch, line.signal)[Symbol.asyncIterator]();
    try {
      for (let first = true; !signal.aborted; first = false) {
        const next = await settleWithin({ clock, timeoutMs, signal, what: 'assignments' }, () => events.next());
        if (next.done === true || signal.aborted) return;
        if (first && next.value.type !== 'sync')
          throw new ApiError('Internal', 'the line of assignments began without a sync');
        takeIn(parts, state, next.value);
        if (buggify('assignments-left')) return;
      }
    } finally {
      line.abort();
      // Not awaited: a line that hangs does not heed it.
      events.return?.(undefined)?.catch(() => {});
    }
  };

  const takeIn = (parts: Running, state: SessionState, event: AssignmentEvent): void => {
    const { ledger, reconciler, volumes, reporter } = parts;
    if (event.type === 'sync' && event.revision < state.revision) {
      // A control plane that lags behind what we have seen would bring guests back that are gone. One that knows our next
      // session knows all that was before it.
      throw new SessionOver(`the control plane went back from revision ${state.revision} to ${event.revision}`);
    }
    state.revision = Math.max(state.revision, event.revision);
    if (event.type === 'ping') return;
    const changed = ledger.apply(event);
    for (const volumeId of changed.volumes) volumes.look(volumeId);
    for (const instanceId of changed.instances) reconciler.look(instanceId);
    if (event.type !== 'sync') return;
    state.synced = true;
    reporter.hurry();
    beginActing(parts);
  };

  return {
    failed: failure.promise,
    nameOf,
    start,
    stop() {
      stopped ??= (async () => {
        stopping.abort();
        patience?.cancel();
        // Drivers first, so that a creation under way is left as it is, to be finished after the next start.
        const closing = drivers.map((driver) =>
          driver.close().catch((error: unknown) => {
            log.warn('cannot close a driver', { driver: driver.name, error: describeError(error) });
          }),
        );
        await running?.reconciler.close();
        await running?.volumes.close();
        await Promise.all([...closing, ...background]);
        await running?.ledger.close();
      })();
      return stopped;
    },
  };
}

class SessionOver extends Error {
  override name = 'SessionOver';
}

/** The host registered again, or was removed from the fleet: only a new session helps. */
function isSessionOver(error: unknown): boolean {
  return (
    error instanceof SessionOver ||
    (error instanceof ApiError && (error.code === 'StaleEpoch' || error.code === 'NotFound'))
  );
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
