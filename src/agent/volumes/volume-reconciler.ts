// Brings the volumes of this host to what the ledger says, one at a time, as guests/ does with guests. A volume without an assignment is
// never touched, and a volume that a guest may have open is changed only by that guest's driver.

import type { VolumeAssignment, VolumeReport } from '../../api/agent-protocol.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { KeyedReconciler, type Step } from '../../base/concurrency/keyed-reconciler.ts';
import { takeVolumeAction, troubleOf } from './actions/take-volume-action.ts';
import type { VolumeClaims } from './volume-claims.ts';
import type { ReceivedFile } from '../migration/moved-files.ts';
import { VolumeError, type VolumeFiles, type VolumeLook } from './files/volume-files.ts';
import type { VolumeGate } from './volume-gate.ts';
import { type HolderSources, holdersOf, holdingsOf } from './volume-holders.ts';
import { observeVolume, type Trouble, type VolumeParts } from './volume-parts.ts';
import { planVolume, type VolumeAction } from './volume-plan.ts';
import { volumeGate, volumeStatus } from './volume-status.ts';

export interface VolumeReconcilerOptions extends HolderSources {
  /** Absent: this host keeps no volumes, and reports so for those that it is to have. */
  readonly files: VolumeFiles | undefined;
  readonly claims: VolumeClaims;
  readonly mayAct: () => boolean;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Why a guest could not be given the volumes that it is to have, or does not let go of others; undefined: it could. */
  readonly guestTrouble: (instanceId: string) => string | undefined;
  /** The file of a volume that moved to this host. */
  readonly receivedOf?: (volumeId: string) => ReceivedFile | undefined;
  /** What is to be reported of a volume, or who may have it, has changed. */
  readonly onChange: (volumeId: string) => void;
}

const workersMax = 4; // making and copying is all disk
const stepsMax = 4;
const lookAgainMs = 10 * 60_000; // how much room it takes, and whether it is still there

export class VolumeReconciler {
  readonly #options: VolumeReconcilerOptions;
  readonly #parts: VolumeParts;
  readonly #volumes: KeyedReconciler<string>;
  /** The last status of each volume that was passed to `onChange`, as text. */
  readonly #announced = new Map<string, string>();
  /** Which volumes a guest had when it last changed, and whether it ran. */
  readonly #holdings = new Map<string, { readonly volumes: readonly string[]; readonly text: string }>();

  constructor(options: VolumeReconcilerOptions) {
    const { drivers, ready, ledger, files, claims, log, guestTrouble } = options;
    this.#options = options;
    this.#parts = {
      ...{ drivers, ready, ledger, files, claims, log, guestTrouble },
      looks: new Map(),
      troubles: new Map(),
      making: new Map(),
      copies: new Map(),
      again: (volumeId) => this.#volumes.add(volumeId),
    };
    this.#volumes = new KeyedReconciler<string>({
      clock: options.clock,
      prng: options.prng,
      workersMax,
      stepsMax,
      step: async (volumeId) => (files === undefined || !options.mayAct() ? 'rest' : this.#step(volumeId, files)),
      rested: (volumeId) => {
        if (this.#parts.looks.has(volumeId)) this.#volumes.addAfter(volumeId, lookAgainMs);
      },
      retrying: (volumeId, error, delayMs) => {
        log.warn('cannot bring a volume to what is wanted; trying again', {
          volume: volumeId,
          error: describeError(error),
          delayMs,
        });
        this.#announce(volumeId);
      },
    });
  }

  /** What is wanted of a volume, or what there is of it, has changed, or may have. Cheap, and never harmful. */
  look(volumeId: string): void {
    const { ledger, onChange } = this.#options;
    const { making, looks } = this.#parts;
    const assignment = ledger.volumeOf(volumeId);
    if (assignment?.want !== 'present') making.get(volumeId)?.abort();
    if (assignment === undefined && !looks.has(volumeId)) return;
    this.#volumes.add(volumeId);
    onChange(volumeId);
  }

  lookAtAll(): void {
    for (const volumeId of this.#options.ledger.volumeIds()) this.look(volumeId);
  }

  /** A guest has changed, and with it perhaps which volumes it has. */
  guestChanged(instanceId: string): void {
    const { guests, volumes } = holdingsOf(this.#parts, instanceId);
    const before = this.#holdings.get(instanceId);
    if (volumes.length === 0 && before === undefined) return;
    const text = JSON.stringify([volumes, guests.map(({ state }) => state)]);
    if (before?.text === text) return;
    if (volumes.length === 0) this.#holdings.delete(instanceId);
    else this.#holdings.set(instanceId, { volumes, text });
    for (const volumeId of new Set([...(before?.volumes ?? []), ...volumes])) this.look(volumeId);
  }

  /** Ids of volumes without an assignment. They are left alone. Throws when the disk cannot be read. */
  async unknown(): Promise<readonly string[]> {
    const { files, ledger } = this.#options;
    return (await files?.list())?.filter((volumeId) => ledger.volumeOf(volumeId) === undefined) ?? [];
  }

  /** What is known now; undefined: nothing worth a report yet. */
  seenOf(volumeId: string): VolumeReport['volume'] | undefined {
    return volumeStatus(this.#parts, volumeId);
  }

  /** Whether a guest of this instance may have the volume now. */
  gateOf(volumeId: string, instanceId: string): VolumeGate {
    return volumeGate(this.#parts, volumeId, instanceId);
  }

  async close(): Promise<void> {
    this.#volumes.stop();
    for (const abort of this.#parts.making.values()) abort.abort();
    await this.#volumes.close();
  }

  async #step(volumeId: string, files: VolumeFiles): Promise<Step> {
    const { ledger, looks, troubles } = this.#parts;
    if (ledger.volumeOf(volumeId) === undefined) return this.#forget(volumeId);
    try {
      looks.set(volumeId, await this.#lookOrAdopt(volumeId, files));
    } catch (error) {
      troubles.set(volumeId, { code: 'Internal', message: `cannot look at its file: ${describeError(error)}` });
      throw error;
    }
    const assignment = ledger.volumeOf(volumeId);
    const look = looks.get(volumeId);
    if (this.#volumes.closed) return 'rest';
    if (assignment === undefined || look === undefined) return this.#forget(volumeId);
    if (look.found === 'volume') ledger.noteVolumeMade(volumeId);
    const { actions } = planVolume(assignment, observeVolume(this.#parts, volumeId, look));
    if (actions.length === 0) troubles.delete(volumeId);
    this.#announce(volumeId);
    // An old ledger may contain a snapshot that was made again since, or a size from before the volume grew.
    if (actions.length === 0 || !ledger.confirmed) return 'rest';
    return this.#takeAll(assignment, actions, files);
  }

  /** What was received for it is the volume; that it is not here yet does not mean that it was lost. */
  async #lookOrAdopt(volumeId: string, files: VolumeFiles): Promise<VolumeLook> {
    const look = await files.look(volumeId);
    if (look.found !== 'nothing' && look.found !== 'unfinished') return look;
    const { ledger, receivedOf } = this.#options;
    const wanted = ledger.confirmed && ledger.volumeOf(volumeId)?.want === 'present';
    const received = wanted ? receivedOf?.(volumeId) : undefined;
    if (received === undefined) return look;
    await files.adopt(volumeId, received);
    return files.look(volumeId);
  }

  #forget(volumeId: string): 'rest' {
    for (const known of [this.#parts.looks, this.#parts.troubles, this.#announced]) known.delete(volumeId);
    return 'rest';
  }

  /** Each action on its own; the first error is thrown when all were tried. */
  async #takeAll(assignment: VolumeAssignment, actions: readonly VolumeAction[], files: VolumeFiles): Promise<Step> {
    const { volumeId } = assignment;
    let failed: { readonly error: unknown; readonly trouble: Trouble } | undefined;
    for (const action of actions) {
      try {
        if ((await takeVolumeAction(this.#parts, assignment, { action, files })) === 'rest') return 'rest';
      } catch (error) {
        if (this.#volumes.closed) return 'rest';
        if (error instanceof VolumeError && error.code === 'Aborted') return 'go-on'; // `look` gave it up
        failed ??= { error, trouble: troubleOf(action, error) };
      }
    }
    if (failed === undefined) return 'go-on';
    this.#parts.troubles.set(volumeId, failed.trouble);
    this.#parts.looks.set(volumeId, await files.look(volumeId));
    throw failed.error;
  }

  /** Calls `onChange` when the status of the volume, or who has it, is not what it was at the last call. */
  #announce(volumeId: string): void {
    const { ledger, onChange } = this.#options;
    const holders = holdersOf(this.#parts, volumeId).holders.map(({ instanceId }) => instanceId);
    const text = JSON.stringify([this.seenOf(volumeId), holders]);
    if (this.#announced.get(volumeId) === text) return;
    this.#announced.set(volumeId, text);
    onChange(volumeId);
    // The volumes that are to begin as a copy of this one.
    for (const other of ledger.volumeIds()) {
      const unmade = this.#parts.looks.get(other)?.found !== 'volume';
      if (ledger.volumeOf(other)?.source?.volumeId === volumeId && unmade) this.#volumes.add(other);
    }
  }
}
