// Brings the guests of this host to what the ledger says, one instance at a time, again and again until there is nothing left
// to do. Level-triggered: it only ever compares what is wanted now with what is here now. It never talks to the control plane.

import type { AssignedVolume, Assignment, GuestStatus } from '../api/agent-protocol.ts';
import { isToStartAgain } from '../api/resources/instance.ts';
import type { UnknownGuest } from '../api/resources/host.ts';
import { type Buggify, neverBuggify } from '../base/buggify.ts';
import type { Clock } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import type { Driver, Guest, GuestSpec, GuestVolume } from './drivers/driver.ts';
import { DriverError } from './host/driver-error.ts';
import { KeyedReconciler } from './keyed-reconciler.ts';
import type { GuestFailure, Ledger, LedgerEntry } from './ledger.ts';
import { type Observed, planFor } from './plan.ts';
import type { VolumeGate } from './volumes/reconcile-volumes.ts';
import type { VolumeClaims } from './volumes/volume-claims.ts';

export interface ReconcilerOptions {
  /** All that this host is configured with. A driver counts only once it is `ready`: before, its guests cannot be seen. */
  readonly drivers: readonly Driver[];
  readonly ready: (driver: Driver) => boolean;
  /** False: the ledger may be out of date, and nothing is done yet. Once true, it stays so. */
  readonly mayAct: () => boolean;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly buggify?: Buggify;
  /** What is to be reported of an instance may have changed. */
  readonly onChange: (instanceId: string) => void;
  /** Of this host. */
  readonly volumes: {
    readonly claims: VolumeClaims;
    /** Whether a guest of this instance may have it now. */
    gateOf(volumeId: string, instanceId: string): VolumeGate;
    /** What `volumeTroubleOf` says of an instance has changed. */
    onTrouble(volumeIds: readonly string[]): void;
  };
}

export interface Reconciler {
  /** The entries or the guest of an instance have changed, or may have. Cheap, and never harmful. */
  look(instanceId: string): void;
  lookAtAll(): void;
  /** What is known now of one incarnation; undefined: nothing worth a report yet. */
  statusOf(entry: LedgerEntry): GuestStatus | { readonly state: 'absent' } | undefined;
  /** Who may have a volume has changed, or may have: whoever waits for it is looked at. */
  volumeChanged(volumeId: string): void;
  /** Why a guest could not be given the volumes that it is to have, or does not let go of others. */
  volumeTroubleOf(instanceId: string): string | undefined;
  /** Guests that the ledger does not speak of. */
  unknownGuests(): UnknownGuest[];
  /** Gives up what is under way; guests run on. The drivers should be closing already. */
  close(): Promise<void>;
}

/** A pull may last hours and a stop its whole grace, and nobody waits for another's: this bounds memory, and no host has as many guests. */
const workersMax = 4096;
const stepsMax = 8; // remove, create, report: three are enough, unless the world changes faster than it is looked at
const lookLateMsMax = 2000;

/** What is being done to an instance at this moment, if it can be cut short. */
type Operation =
  | { readonly kind: 'create'; readonly incarnation: number; readonly abort: AbortController }
  | { readonly kind: 'start' }
  | { readonly kind: 'set-volumes'; readonly wanted: string; readonly abort: AbortController }
  | { readonly kind: 'stop'; readonly driver: Driver; readonly graceMs: number };

interface Seen {
  readonly driver: Driver;
  readonly guest: Guest;
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { drivers, ledger, log, buggify = neverBuggify } = options;
  const operations = new Map<string, Operation>();
  /** Established by a look at the host: nothing of this incarnation is here. Holds until the entries change. */
  const settled = new Map<string, Map<number, 'absent' | 'stopped'>>();
  /** For which volumes an instance waits, in words. */
  const waiting = new Map<string, string>();
  /** The volumes that a guest was given in this life of the agent, as text: its driver tells only which, not how. */
  const given = new Map<string, string>();
  const volumeTroubles = new Map<string, string>();

  const workers = new KeyedReconciler<string>({
    clock: options.clock,
    prng: options.prng,
    workersMax,
    stepsMax,
    stuck: 'its driver does not do what it says',
    step: async (instanceId) => {
      const entry = ledger.newestOf(instanceId);
      if (entry === undefined) return 'rest'; // a guest without an entry is reported by the heartbeat, and not touched
      const step = await takeStep(instanceId, entry);
      if (step === 'go-on') options.onChange(instanceId);
      return step;
    },
    rested: (instanceId) => {
      if (buggify('look-again')) workers.add(instanceId);
    },
    retrying: (instanceId, error, delayMs) =>
      log.warn('cannot bring an instance to what is wanted; trying again', {
        instance: instanceId,
        error: describeError(error),
        delayMs,
      }),
  });

  // ── one instance ────────────────────────────────────────────────────────────────────────────────────────────────

  const takeStep = async (instanceId: string, entry: LedgerEntry): Promise<'rest' | 'go-on'> => {
    const { assignment } = entry;
    // Either way all instances are looked at again when that changes.
    if (!options.mayAct() || !allInSight(instanceId)) return 'rest';
    const seen = look(instanceId, assignment.driver);
    const action = planFor(assignment, observed(entry, seen, given.get(instanceId)));
    wait(instanceId, undefined);
    settleOlder(instanceId, entry, seen);
    switch (action) {
      case 'none':
      case 'report-unknown':
        return 'rest';
      case 'report-stopped':
        settle(entry, 'stopped');
        return 'rest';
      case 'report-absent':
        if (seen === undefined && !canTell(entry)) return 'rest';
        settle(entry, 'absent');
        return 'rest';
      case 'create':
        // With no trace of it here, it may have been removed, and its room given away, before the ledger was written.
        if (seen === undefined && !ledger.confirmed) return 'rest';
        return create(entry);
      case 'start':
        // A stopped guest holds no room: whether it has it again is not in an old ledger.
        if (!ledger.confirmed) return 'rest';
        return seen === undefined ? 'go-on' : start(entry, seen);
      case 'set-volumes':
        return seen === undefined || !ledger.confirmed ? 'rest' : setVolumes(entry, seen);
      case 'suspend':
      case 'resume':
        // An old ledger may not know what was asked for last.
        return seen === undefined || !ledger.confirmed ? 'rest' : setSuspended(entry, seen, action);
      case 'stop':
        if (seen !== undefined) await stop(entry, seen);
        return 'go-on';
      case 'remove':
        await remove(entry, seen);
        return 'go-on';
    }
  };

  /** The oldest guest of this instance, or a damaged one: it goes first. Of one incarnation under two drivers, the one under the assigned. */
  const look = (instanceId: string, assignedDriver: string): Seen | undefined => {
    let oldest: Seen | undefined;
    for (const { driver, guest } of seenGuests()) {
      if (guest.instanceId !== instanceId) continue;
      const older = oldest === undefined || guest.incarnation < oldest.guest.incarnation;
      const better = guest.incarnation === oldest?.guest.incarnation && driver.name === assignedDriver;
      if (older || better) oldest = { driver, guest };
    }
    return oldest;
  };

  const seenGuests = function* (): Iterable<Seen> {
    for (const driver of drivers) {
      if (!options.ready(driver)) continue;
      for (const guest of driver.guests()) yield { driver, guest };
    }
  };

  /** An older incarnation whose guest is gone, or has made way for a newer one, has left no trace. */
  const settleOlder = (instanceId: string, newest: LedgerEntry, seen: Seen | undefined): void => {
    for (const entry of ledger.entriesOf(instanceId)) {
      const { assignment } = entry;
      if (assignment.incarnation === newest.assignment.incarnation || assignment.want !== 'absent') continue;
      if (seen !== undefined && seen.guest.incarnation <= assignment.incarnation) continue;
      if (canTell(entry)) settle(entry, 'absent');
    }
  };

  /** False while a driver that may hold a guest of this instance has not found its guests again. */
  const allInSight = (instanceId: string): boolean =>
    ledger.entriesOf(instanceId).every(({ assignment }) => {
      const driver = drivers.find(({ name }) => name === assignment.driver);
      return driver === undefined || options.ready(driver);
    });

  /** Whether "nothing is here" can be told from "nothing can be seen". */
  const canTell = ({ assignment, failure }: LedgerEntry): boolean => {
    if (drivers.some(({ name }) => name === assignment.driver)) return true;
    if (failure?.code === driverMissing) return true; // nothing was ever made
    log.warn('cannot tell what is left of an instance: its driver is not configured here any more', {
      instance: assignment.instanceId,
      driver: assignment.driver,
    });
    return false;
  };

  const settle = ({ assignment }: LedgerEntry, as: 'absent' | 'stopped'): void => {
    const incarnations = settled.get(assignment.instanceId) ?? new Map<number, 'absent' | 'stopped'>();
    incarnations.set(assignment.incarnation, as);
    settled.set(assignment.instanceId, incarnations);
    options.onChange(assignment.instanceId);
  };

  // ── actions ─────────────────────────────────────────────────────────────────────────────────────────────────────

  const create = async (entry: LedgerEntry): Promise<'rest' | 'go-on'> => {
    const { assignment } = entry;
    const { instanceId, incarnation } = assignment;
    const driver = drivers.find(({ name }) => name === assignment.driver);
    if (driver === undefined) {
      fail(entry, { code: driverMissing, message: `this host has no driver "${assignment.driver}"` });
      return 'go-on';
    }
    if (assignment.image === undefined) {
      const message = `image "${assignment.imageName}" does not exist any more`;
      fail(entry, { code: 'ImageUnavailable', message });
      return 'go-on';
    }
    if (assignment.volumes !== undefined && driver.volumes === undefined) {
      const message = `guests of driver "${driver.name}" cannot have volumes; leave them away, or choose another driver`;
      fail(entry, { code: 'NotPossible', message });
      return 'go-on';
    }
    const volumes = takeVolumes(assignment);
    if (volumes === undefined) return 'rest';
    const abort = new AbortController();
    operations.set(instanceId, { kind: 'create', incarnation, abort });
    log.info('creating a guest', { instance: instanceId, name: assignment.name, incarnation, driver: driver.name });
    try {
      await driver.create(specOf(assignment, assignment.image, volumes), abort.signal);
      noteGiven(instanceId, volumes);
    } catch (error) {
      if (abort.signal.aborted || workers.closed) return 'go-on'; // given up by ourselves
      if (codeOf(error) === 'Aborted') throw error;
      failUnlessRecorded(entry, driver, error);
    } finally {
      operations.delete(instanceId);
      releaseVolumes(assignment);
    }
    return 'go-on';
  };

  const start = async (entry: LedgerEntry, { driver, guest }: Seen): Promise<'rest' | 'go-on'> => {
    if (takeVolumes(entry.assignment) === undefined) return 'rest';
    log.info('starting a guest', { instance: guest.instanceId, incarnation: guest.incarnation });
    operations.set(guest.instanceId, { kind: 'start' });
    try {
      await driver.start(guest.instanceId);
    } catch (error) {
      if (workers.closed || codeOf(error) === 'NoSuchGuest') return 'go-on'; // the next look sees what there is
      if (codeOf(error) === 'Aborted') throw error;
      const now = look(guest.instanceId, driver.name)?.guest;
      // Recorded or not: without a run of its own it would count as to be started again, for ever.
      if (now && isToStartAgain(now, entry.assignment.startAgain)) fail(entry, failureOf(error));
      else failUnlessRecorded(entry, driver, error);
    } finally {
      operations.delete(guest.instanceId);
      releaseVolumes(entry.assignment);
    }
    return 'go-on';
  };

  /** One that cannot be suspended runs on, and says so: the control plane asks only where it can, but hosts and drivers change. */
  const setSuspended = async (
    { assignment }: LedgerEntry,
    { driver, guest }: Seen,
    verb: 'suspend' | 'resume',
  ): Promise<'rest' | 'go-on'> => {
    const { instanceId } = assignment;
    if (driver.suspension === undefined) {
      wait(instanceId, `cannot ${verb} it: guests of driver "${driver.name}" cannot be suspended`);
      return 'rest';
    }
    log.info(verb === 'suspend' ? 'suspending a guest' : 'resuming a guest', {
      instance: instanceId,
      incarnation: guest.incarnation,
    });
    try {
      await driver.suspension[verb](instanceId);
    } catch (error) {
      if (workers.closed || codeOf(error) === 'NoSuchGuest') return 'go-on'; // the next look sees what there is
      wait(instanceId, describeError(error));
      throw error;
    }
    return 'go-on';
  };

  /** Those that cannot be had yet are waited for, which keeps none of the others from coming and going. */
  const setVolumes = async (entry: LedgerEntry, { driver, guest }: Seen): Promise<'rest' | 'go-on'> => {
    const { assignment } = entry;
    const { instanceId } = assignment;
    const { had, missing } = volumesFor(assignment, guest);
    if (missing !== undefined) wait(instanceId, missing);
    const keeps = (volumeId: string): boolean => guest.volumes?.includes(volumeId) === true;
    const wanted = (assignment.volumes ?? []).filter(({ volumeId }) => keeps(volumeId));
    if (!wanted.every(({ volumeId }) => had.some((each) => each.volumeId === volumeId))) return 'rest'; // nobody knows where it is
    if (!hasOtherVolumes(guest, had, given.get(instanceId))) return 'rest';
    if (driver.volumes === undefined) {
      setVolumeTrouble(assignment, guest, `guests of driver "${driver.name}" cannot have volumes`);
      return 'rest';
    }
    const taken = options.volumes.claims.take(
      had.map(({ volumeId }) => volumeId),
      instanceId,
    );
    if (taken !== undefined) {
      wait(instanceId, nameOfWait(assignment, taken.volumeId, taken.by));
      return 'rest';
    }
    const abort = new AbortController();
    operations.set(instanceId, { kind: 'set-volumes', wanted: textOf(assignment.volumes ?? []), abort });
    log.info('changing the volumes of a guest', { instance: instanceId, volumes: had.map(({ name }) => name) });
    try {
      await driver.volumes.set(instanceId, had, abort.signal);
      noteGiven(instanceId, had);
      setVolumeTrouble(assignment, guest, undefined);
    } catch (error) {
      if (workers.closed || abort.signal.aborted || codeOf(error) === 'NoSuchGuest') return 'go-on'; // the next look sees what there is
      setVolumeTrouble(assignment, guest, describeError(error));
      throw error;
    } finally {
      operations.delete(instanceId);
      options.volumes.claims.release(instanceId);
    }
    return 'go-on';
  };

  /** Of the volumes that it is to have those that it may have, or that `guest` has, whatever became of them; and for which it waits. */
  const volumesFor = (
    assignment: Assignment,
    guest?: Guest,
  ): { readonly had: GuestVolume[]; readonly missing: string | undefined } => {
    const had: GuestVolume[] = [];
    let missing: string | undefined;
    for (const volume of assignment.volumes ?? []) {
      const gate = options.volumes.gateOf(volume.volumeId, assignment.instanceId);
      const stays = guest?.volumes?.includes(volume.volumeId) === true;
      if ((gate.open || stays) && gate.path !== undefined) had.push({ ...volume, path: gate.path });
      else if (!gate.open) missing ??= nameOfWait(assignment, volume.volumeId, gate.why);
    }
    return { had, missing };
  };

  /** All that it is to have, kept for it until they are released; undefined: it waits. */
  const takeVolumes = (assignment: Assignment): readonly GuestVolume[] | undefined => {
    const { had, missing } = volumesFor(assignment);
    const ids = had.map(({ volumeId }) => volumeId);
    const taken = missing === undefined ? options.volumes.claims.take(ids, assignment.instanceId) : undefined;
    const why = taken === undefined ? missing : nameOfWait(assignment, taken.volumeId, taken.by);
    if (why !== undefined) wait(assignment.instanceId, why);
    return why === undefined ? had : undefined;
  };

  const releaseVolumes = ({ instanceId, volumes }: Assignment): void => {
    if (volumes !== undefined) options.volumes.claims.release(instanceId);
  };

  const nameOfWait = ({ volumes }: Assignment, volumeId: string, why: string): string =>
    `waiting for volume ${volumes?.find((each) => each.volumeId === volumeId)?.name ?? volumeId}: ${why}`;

  const wait = (instanceId: string, forWhat: string | undefined): void => {
    if (waiting.get(instanceId) === forWhat) return;
    if (forWhat === undefined) waiting.delete(instanceId);
    else waiting.set(instanceId, forWhat);
    options.onChange(instanceId);
  };

  const noteGiven = (instanceId: string, volumes: readonly GuestVolume[]): void => {
    if (volumes.length === 0) given.delete(instanceId);
    else given.set(instanceId, textOf(volumes));
  };

  const setVolumeTrouble = ({ instanceId, volumes }: Assignment, guest: Guest, message: string | undefined): void => {
    if (volumeTroubles.get(instanceId) === message) return;
    if (message === undefined) volumeTroubles.delete(instanceId);
    else volumeTroubles.set(instanceId, message);
    const wanted = (volumes ?? []).map(({ volumeId }) => volumeId);
    options.volumes.onTrouble([...new Set([...wanted, ...(guest.volumes ?? [])])]);
  };

  const stop = async ({ assignment }: LedgerEntry, { driver, guest }: Seen): Promise<void> => {
    log.info('stopping a guest', { instance: guest.instanceId, incarnation: guest.incarnation });
    operations.set(guest.instanceId, { kind: 'stop', driver, graceMs: assignment.stopGraceMs });
    try {
      await driver.stop(guest.instanceId, assignment.stopGraceMs);
    } finally {
      operations.delete(guest.instanceId);
    }
  };

  const remove = async (entry: LedgerEntry, seen: Seen | undefined): Promise<void> => {
    const { instanceId, incarnation, driver: assigned } = entry.assignment;
    const driver = seen?.driver ?? drivers.find(({ name }) => name === assigned);
    if (driver !== undefined) {
      log.info('removing a guest', { instance: instanceId, incarnation: seen?.guest.incarnation ?? incarnation });
      await driver.remove(instanceId);
      if (look(instanceId, assigned)?.driver === driver) {
        throw new DriverError('Internal', `driver "${driver.name}" says it removed ${instanceId}, and still shows it`);
      }
    }
    if (seen !== undefined && seen.guest.incarnation !== incarnation) return; // its failure is of another life
    if (driver === undefined) settle(entry, 'absent');
    given.delete(instanceId);
    volumeTroubles.delete(instanceId);
    ledger.setFailure(entry, undefined);
  };

  /** A driver that made a record of the failure tells of it itself. */
  const failUnlessRecorded = (entry: LedgerEntry, driver: Driver, error: unknown): void => {
    const { instanceId, incarnation } = entry.assignment;
    const guest = driver.guests().find((each) => each.instanceId === instanceId && each.incarnation === incarnation);
    if (guest?.state === 'failed' && !isUnfinished(guest)) return;
    fail(entry, failureOf(error));
  };

  const fail = (entry: LedgerEntry, failure: GuestFailure): void => {
    log.warn('a guest failed', { instance: entry.assignment.instanceId, ...failure });
    ledger.setFailure(entry, failure);
  };

  /** Cuts short what is under way when it is not what is wanted any more. */
  const interrupt = (instanceId: string): void => {
    const operation = operations.get(instanceId);
    const desired = ledger.newestOf(instanceId)?.assignment;
    switch (operation?.kind) {
      case undefined:
      case 'start': // short, and a stop follows it
        return;
      case 'create': {
        const unfinished: Observed = { incarnation: operation.incarnation, state: 'preparing' };
        if (planFor(desired, unfinished) !== 'create') operation.abort.abort();
        return;
      }
      case 'set-volumes': {
        // A guest that is to end need not let go of anything first.
        const changes = isToBeOn(desired) && textOf(desired?.volumes ?? []) === operation.wanted;
        if (!changes) operation.abort.abort();
        return;
      }
      case 'stop':
        if (desired?.want === 'absent') hurry(instanceId, operation, 0);
        else if (desired?.want === 'stopped') hurry(instanceId, operation, desired.stopGraceMs);
    }
  };

  const hurry = (instanceId: string, stop: Extract<Operation, { kind: 'stop' }>, graceMs: number): void => {
    if (graceMs >= stop.graceMs) return;
    operations.set(instanceId, { ...stop, graceMs });
    stop.driver.stop(instanceId, graceMs).catch((error: unknown) => {
      log.warn('cannot hurry the stop of a guest', { instance: instanceId, error: describeError(error) });
    });
  };

  const lookAt = (instanceId: string): void => {
    settled.delete(instanceId);
    if (ledger.newestOf(instanceId) === undefined)
      for (const known of [waiting, given, volumeTroubles]) known.delete(instanceId);
    interrupt(instanceId);
    if (buggify('look-late')) workers.addAfter(instanceId, options.prng.below(lookLateMsMax));
    else workers.add(instanceId);
    options.onChange(instanceId);
  };

  return {
    look: lookAt,
    lookAtAll: () => {
      for (const instanceId of ledger.instanceIds()) lookAt(instanceId);
    },
    statusOf(entry) {
      const { instanceId, incarnation } = entry.assignment;
      const guests = [...seenGuests()].map((seen) => seen.guest).filter((each) => each.instanceId === instanceId);
      const damaged = guests.find((each) => each.damaged === true);
      if (damaged !== undefined) return statusOfGuest(damaged);
      const guest = guests.find((each) => each.incarnation === incarnation);
      if (entry.failure !== undefined && !isUp(guest)) return failedStatus(guest, entry.failure, entry.assignment);
      const waits = ledger.newestOf(instanceId)?.assignment.incarnation === incarnation && waiting.get(instanceId);
      if (waits) return waitingStatus(guest, entry.assignment.want, waits);
      // Called stopped, its room would be given away, and it runs the next moment.
      // And one that starts again is not as it was, and not yet what it will be.
      if (guest && isOver(guest) && operations.get(instanceId)?.kind === 'start') return undefined;
      if (guest !== undefined) return statusOfGuest(guest);
      const nothing = settled.get(instanceId)?.get(incarnation);
      if (nothing === 'absent') return { state: 'absent' };
      return nothing === 'stopped' ? { state: 'stopped', ready: false, ports: [], phases: [] } : undefined;
    },
    volumeChanged(volumeId) {
      for (const instanceId of ledger.instanceIds()) {
        const volumes = ledger.newestOf(instanceId)?.assignment.volumes;
        if (volumes?.some((each) => each.volumeId === volumeId)) workers.add(instanceId);
      }
    },
    volumeTroubleOf: (instanceId) => volumeTroubles.get(instanceId),
    unknownGuests: () =>
      [...seenGuests()].flatMap(({ driver, guest }) => {
        const { instanceId, incarnation, state } = guest;
        const known = ledger.entriesOf(instanceId).some(({ assignment }) => assignment.incarnation >= incarnation);
        return known ? [] : [{ instanceId, incarnation, driver: driver.name, state }];
      }),
    async close() {
      workers.stop();
      for (const operation of operations.values()) if ('abort' in operation) operation.abort.abort();
      await workers.close();
    },
  };
}

/** Not a driver's code: said when there is no such driver. */
const driverMissing = 'DriverMissing';

function failureOf(error: unknown): GuestFailure {
  return { code: codeOf(error) ?? 'Internal', message: describeError(error) };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof DriverError ? error.code : undefined;
}

/** It has its memory, whether or not its processors run. */
function isUp(guest: Guest | undefined): boolean {
  return guest?.state === 'running' || guest?.state === 'suspended';
}

function isOver({ state }: Guest): boolean {
  return state === 'stopped' || state === 'exited' || state === 'failed';
}

/** A creation that was given up is not a failure of the guest: it may be finished, or cleared away. */
function isUnfinished(guest: Guest): boolean {
  return guest.state === 'failed' && guest.reason?.code === 'Aborted';
}

function observed(entry: LedgerEntry, seen: Seen | undefined, given: string | undefined): Observed | undefined {
  if (seen?.guest.damaged === true) return { incarnation: seen.guest.incarnation, state: 'failed', damaged: true };
  const { incarnation } = entry.assignment;
  const ofEntry = seen === undefined || seen.guest.incarnation === incarnation;
  const otherVolumes = seen !== undefined && hasOtherVolumes(seen.guest, entry.assignment.volumes ?? [], given);
  if (entry.failure !== undefined && ofEntry && !isUp(seen?.guest))
    return { incarnation, state: 'failed', otherVolumes };
  if (seen === undefined) return undefined;
  const again = ofEntry && isToStartAgain(seen.guest, entry.assignment.startAgain);
  const state = again ? 'stopped' : isUnfinished(seen.guest) ? 'preparing' : seen.guest.state;
  return { incarnation: seen.guest.incarnation, state, otherVolumes };
}

/** Also when the agent has not given them to it since its start: then its driver makes sure of it. */
function hasOtherVolumes(guest: Guest, wanted: readonly AssignedVolume[], given: string | undefined): boolean {
  const has = guest.volumes ?? [];
  if (wanted.length === 0) return has.length > 0;
  return (
    has.length !== wanted.length || !wanted.every(({ volumeId }) => has.includes(volumeId)) || given !== textOf(wanted)
  );
}

const textOf = (volumes: readonly AssignedVolume[]): string =>
  JSON.stringify(volumes.map(({ volumeId, readOnly }) => [volumeId, readOnly]));

function specOf(assignment: Assignment, image: GuestSpec['image'], volumes: readonly GuestVolume[]): GuestSpec {
  const { instanceId, incarnation, name, project, hostname, cpus, memoryMiB, diskGiB, imageName } = assignment;
  const { ports, sshKeys, userData, containers } = assignment;
  return {
    instanceId,
    incarnation,
    name,
    project,
    hostname,
    cpus,
    memoryMiB,
    diskGiB,
    imageName,
    image,
    ports,
    sshKeys,
    userData,
    ...(containers === undefined ? {} : { containers }),
    ...(volumes.length === 0 ? {} : { volumes }),
  };
}

/** To have its memory; suspended, its processors only stand still. */
function isToBeOn(desired: Pick<Assignment, 'want'> | undefined): boolean {
  return desired?.want === 'running' || desired?.want === 'suspended';
}

const messageCharactersMax = 4096; // a hypervisor may have said a lot

function statusOfGuest(guest: Guest): GuestStatus {
  const {
    instanceId: _id,
    incarnation: _incarnation,
    damaged: _damaged,
    reason,
    progress,
    ports,
    phases,
    volumes,
    ...seen
  } = guest;
  const unfinished = isUnfinished(guest);
  return {
    ...seen,
    state: unfinished ? 'preparing' : guest.state,
    ports: [...ports],
    phases: [...phases],
    ...(volumes === undefined ? {} : { volumes: [...volumes] }),
    ...(reason && !unfinished ? { reason: reason.code, message: reason.message.slice(0, messageCharactersMax) } : {}),
    ...(progress === undefined ? {} : { progress: progress.slice(0, messageCharactersMax) }),
  };
}

/** Called stopped, its room would be given away, and it runs once it has its volumes. */
function waitingStatus(guest: Guest | undefined, want: Assignment['want'], progress: string): GuestStatus {
  const seen: GuestStatus = guest ? statusOfGuest(guest) : { state: 'preparing', ready: false, ports: [], phases: [] };
  const state = seen.state === 'stopped' && isToBeOn({ want }) ? 'preparing' : seen.state;
  return { ...seen, state, progress: progress.slice(0, messageCharactersMax) };
}

function failedStatus(
  guest: Guest | undefined,
  { code, message }: GuestFailure,
  { startAgain }: Assignment,
): GuestStatus {
  const { startedAtMs, ...seen }: Partial<GuestStatus> = guest ? statusOfGuest(guest) : {};
  return {
    ports: [],
    phases: [],
    ...seen,
    // A start that failed before anything ran is no end of the run before it.
    ...(startedAtMs === undefined || startedAtMs === startAgain?.endedRunAtMs ? {} : { startedAtMs }),
    state: 'failed',
    ready: false,
    reason: code,
    message: message.slice(0, messageCharactersMax),
  };
}
