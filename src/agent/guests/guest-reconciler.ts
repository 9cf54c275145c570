// Brings the guests of this host to what the ledger says, one instance at a time. Level-triggered: each step compares only what is
// wanted now with what is here now. It never talks to the control plane.

import type { UnknownGuest } from '../../api/resources/host.ts';
import { type Buggify, neverBuggify } from '../../base/buggify.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { KeyedReconciler, type Step } from '../../base/concurrency/keyed-reconciler.ts';
import type { Ledger, LedgerEntry } from '../ledger/ledger.ts';
import { create } from './actions/create.ts';
import { receive } from './actions/receive.ts';
import { receiveLive } from './actions/receive-live.ts';
import { takeBack } from './actions/take-back.ts';
import { resize } from './actions/resize.ts';
import { remove } from './actions/remove.ts';
import { save } from './actions/save.ts';
import { setSuspended } from './actions/set-suspended.ts';
import { setVolumes } from './actions/set-volumes.ts';
import { start } from './actions/start.ts';
import { stop } from './actions/stop.ts';
import type { MoveSource } from '../migration/move.ts';
import type { Moves } from '../migration/moves.ts';
import type { VolumeFiles } from '../volumes/files/volume-files.ts';
import type { Runs } from '../runner/runs.ts';
import { GuestChecks } from './checks/guest-checks.ts';
import { GuestNotes } from './guest-notes.ts';
import { interrupt } from './interrupt.ts';
import { allInSight, type Drivers, observed, oldestGuest, type Seen, seenGuests } from './observe.ts';
import type { GuestParts, VolumesOfHost } from './parts.ts';
import { type Action, planFor } from './plan.ts';
import { discardReceived } from './received-volumes.ts';
import { wantedNow } from './self-stop.ts';
import { canTell, settleOlder } from './settle.ts';
import { type ReportedStatus, statusOf } from './status.ts';

export interface GuestReconcilerOptions extends Drivers {
  /** False: the ledger may be out of date, and nothing is done yet. Once true, it stays so. */
  readonly mayAct: () => boolean;
  /** Guests that asked for self-stop may run. */
  readonly leaseHeld?: () => boolean;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly buggify?: Buggify;
  /** The status to report of an instance may have changed. */
  readonly onChange: (instanceId: string) => void;
  readonly volumes: VolumesOfHost;
  readonly runs: Runs;
  readonly moves: Moves;
  readonly moveSource: MoveSource;
  readonly volumeFiles: VolumeFiles | undefined;
}

/** A pull may last hours and a stop its whole grace, and no instance waits for another's: this bounds memory, and no host has as many guests. */
const workersMax = 4096;
const stepsMax = 8; // remove, create, report: three are enough, unless the world changes faster than it is looked at
const lookLateMsMax = 2000;

export class GuestReconciler {
  readonly #options: GuestReconcilerOptions;
  readonly #parts: GuestParts;
  readonly #notes: GuestNotes;
  readonly #instances: KeyedReconciler<string>;
  readonly #buggify: Buggify;

  constructor(options: GuestReconcilerOptions) {
    const { drivers, ready, leaseHeld = () => false, ledger, log, volumes, runs, onChange } = options;
    const { moves, moveSource, volumeFiles, clock } = options;
    this.#options = options;
    this.#buggify = options.buggify ?? neverBuggify;
    this.#notes = new GuestNotes({ onChange, onTrouble: (volumeIds) => volumes.onTrouble(volumeIds) });
    const closing = (): boolean => this.#instances.closed;
    const checks = new GuestChecks({ ...options, onChange: (instanceId) => this.look(instanceId) });
    this.#parts = {
      drivers,
      ready,
      leaseHeld,
      ledger,
      log,
      volumes,
      runs,
      checks,
      notes: this.#notes,
      closing,
      ...{ moves, moveSource, volumeFiles, clock },
    };
    this.#instances = new KeyedReconciler<string>({
      clock: options.clock,
      prng: options.prng,
      workersMax,
      stepsMax,
      stuck: 'its driver does not do what it says',
      step: (instanceId) => this.#step(instanceId),
      rested: (instanceId) => {
        if (this.#buggify('look-again')) this.#instances.add(instanceId);
      },
      retrying: (instanceId, error, delayMs) =>
        log.warn('cannot bring an instance to what is wanted; trying again', {
          instance: instanceId,
          error: describeError(error),
          delayMs,
        }),
    });
  }

  /** The entries or the guest of an instance have changed, or may have. Cheap, and never harmful. */
  look(instanceId: string): void {
    const { ledger, prng, onChange } = this.#options;
    this.#notes.unsettle(instanceId);
    const newest = ledger.newestOf(instanceId);
    this.#parts.moves.look(instanceId, newest);
    if (newest === undefined) {
      this.#notes.forgetInstance(instanceId);
      this.#parts.checks.forget(instanceId);
    } else {
      const seen = oldestGuest(this.#parts, instanceId, newest.assignment.driver);
      this.#lookAtRun(newest, seen);
      this.#parts.checks.look(newest, seen);
    }
    interrupt(this.#parts, instanceId);
    if (this.#buggify('look-late')) this.#instances.addAfter(instanceId, prng.below(lookLateMsMax));
    else this.#instances.add(instanceId);
    onChange(instanceId);
  }

  /** Also before anything may be done to guests: a program goes on while the agent waits for the control plane. */
  #lookAtRun({ assignment }: LedgerEntry, seen: Seen | undefined): void {
    if (assignment.run === undefined || seen === undefined) return;
    if (assignment.want === 'absent') this.#parts.runs.abandon(assignment.instanceId);
    this.#parts.runs.look(assignment, seen.guest, seen.driver);
  }

  /** Whether a guest may run that needs the lease of this host. */
  needLease(): boolean {
    const { ledger } = this.#options;
    return ledger.instanceIds().some((instanceId) => {
      const entries = ledger.entriesOf(instanceId);
      if (!entries.some(({ assignment }) => assignment.selfStop === true)) return false;
      if (!allInSight(this.#parts, entries)) return true;
      return entries.some(({ assignment }) => {
        const state = oldestGuest(this.#parts, instanceId, assignment.driver)?.guest.state;
        return state === 'running' || state === 'suspended' || state === 'preparing';
      });
    });
  }

  /** The lease of this host has ended, or has begun. */
  leaseChanged(): void {
    const { ledger } = this.#options;
    for (const instanceId of ledger.instanceIds())
      if (ledger.newestOf(instanceId)?.assignment.selfStop === true) this.look(instanceId);
  }

  lookAtAll(): void {
    for (const instanceId of this.#options.ledger.instanceIds()) this.look(instanceId);
  }

  /** What is known now of one incarnation; undefined: nothing worth a report yet. */
  statusOf(entry: LedgerEntry): ReportedStatus | undefined {
    return statusOf(this.#parts, entry);
  }

  /** Who may have a volume has changed, or may have: each instance that is to have the volume is looked at. */
  volumeChanged(volumeId: string): void {
    const { ledger } = this.#options;
    for (const instanceId of ledger.instanceIds()) {
      const volumes = ledger.newestOf(instanceId)?.assignment.volumes;
      if (volumes?.some((each) => each.volumeId === volumeId)) this.#instances.add(instanceId);
    }
  }

  /** Why a guest could not be given the volumes that it is to have, or does not let go of others. */
  volumeTroubleOf(instanceId: string): string | undefined {
    return this.#notes.volumeTroubleOf(instanceId);
  }

  /** Guests that no entry of the ledger explains. */
  unknownGuests(): UnknownGuest[] {
    const { ledger } = this.#options;
    return [...seenGuests(this.#parts)].flatMap(({ driver, guest }) => {
      const { instanceId, incarnation, state } = guest;
      const known = ledger.entriesOf(instanceId).some(({ assignment }) => assignment.incarnation >= incarnation);
      return known ? [] : [{ instanceId, incarnation, driver: driver.name, state }];
    });
  }

  /** Gives up what is under way; guests run on. The drivers should be closing already. */
  async close(): Promise<void> {
    this.#instances.stop();
    this.#parts.checks.close();
    for (const operation of this.#notes.operations.values()) if ('abort' in operation) operation.abort.abort();
    await this.#instances.close();
  }

  async #step(instanceId: string): Promise<Step> {
    const known = this.#options.ledger.newestOf(instanceId);
    const entry = known && { ...known, assignment: wantedNow(known.assignment, this.#parts.leaseHeld) };
    if (entry === undefined) return 'rest'; // a guest without an entry is reported by the heartbeat, and not touched
    await discardReceived(this.#parts, entry);
    const next = this.#decide(entry);
    if (next === undefined) return 'rest';
    const step = await this.#take(next.action, entry, next.seen);
    if (step === 'go-on') this.#options.onChange(instanceId);
    return step;
  }

  /** Undefined: nothing can be decided yet. Whatever prevents it, all instances are looked at again when it ends. */
  #decide(entry: LedgerEntry): { readonly action: Action; readonly seen: Seen | undefined } | undefined {
    const { mayAct, ledger } = this.#options;
    const { assignment } = entry;
    const { instanceId } = assignment;
    if (!mayAct() || !allInSight(this.#parts, ledger.entriesOf(instanceId))) return undefined;
    const seen = oldestGuest(this.#parts, instanceId, assignment.driver);
    const action = planFor(assignment, observed(entry, seen, this.#notes.givenTo(instanceId)));
    this.#notes.wait(instanceId, undefined);
    settleOlder(this.#parts, entry, seen);
    return { action, seen };
  }

  async #take(action: Action, entry: LedgerEntry, seen: Seen | undefined): Promise<Step> {
    const parts = this.#parts;
    const { ledger } = parts;
    switch (action) {
      case 'none':
      case 'report-unknown':
        return 'rest';
      case 'report-stopped':
        this.#notes.settle(entry.assignment, 'stopped');
        return 'rest';
      case 'report-absent':
        if (seen !== undefined || canTell(parts, entry)) this.#notes.settle(entry.assignment, 'absent');
        return 'rest';
      case 'create':
        // With no trace of it here, it may have been removed, and its room given away, before the ledger was written.
        if (seen === undefined && !ledger.confirmed) return 'rest';
        return create(parts, entry);
      case 'receive':
        if (!ledger.confirmed) return 'rest';
        return entry.assignment.migration?.live === true ? receiveLive(parts, entry) : receive(parts, entry);
      case 'take-back':
        return seen === undefined || !ledger.confirmed ? 'rest' : takeBack(parts, entry, seen);
      case 'start':
        // A stopped guest holds no room: an old ledger does not say whether the room is its own again.
        if (!ledger.confirmed) return 'rest';
        return seen === undefined ? 'go-on' : start(parts, entry, seen);
      case 'set-volumes':
        return seen === undefined || !ledger.confirmed ? 'rest' : setVolumes(parts, entry, seen);
      case 'resize':
        return seen === undefined || !ledger.confirmed ? 'rest' : resize(parts, entry, seen);
      case 'suspend':
      case 'resume':
        // An old ledger may not contain the latest request.
        return seen === undefined || !ledger.confirmed ? 'rest' : setSuspended(parts, entry, seen, action);
      case 'save':
        return seen === undefined || !ledger.confirmed ? 'rest' : save(parts, entry, seen);
      case 'stop':
        if (seen !== undefined) await stop(parts, entry, seen);
        return 'go-on';
      case 'remove':
        await remove(parts, entry, seen);
        return 'go-on';
    }
  }
}
