// Brings the volumes of this host to what the ledger says, one at a time, again and again until there is nothing left to do, as
// guests/ does with guests. A volume that no assignment speaks of is never touched, and none is changed that a guest may have open,
// except by that guest's driver.

import type { VolumeAssignment, VolumeReport } from '../../api/agent-protocol.ts';
import { volumeSnapshotsMax } from '../../api/resources/volume.ts';
import type { Clock } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { Driver, GuestVolumes } from '../drivers/driver.ts';
import { DriverError } from '../host/driver-error.ts';
import { KeyedReconciler } from '../keyed-reconciler.ts';
import type { Ledger } from '../ledger.ts';
import type { VolumeClaims } from './volume-claims.ts';
import type { VolumeGate } from './volume-gate.ts';
import { VolumeError, type VolumeFiles, type VolumeLook } from './volume-files.ts';
import { type ObservedVolume, planVolume, type VolumeAction } from './volume-plan.ts';

export interface VolumeReconcilerOptions {
  /** Absent: this host has none, and says so of those that it is to have. */
  readonly files: VolumeFiles | undefined;
  readonly claims: VolumeClaims;
  readonly drivers: readonly Driver[];
  /** As for guests: before that, a driver's guests cannot be seen, and may have any volume. */
  readonly ready: (driver: Driver) => boolean;
  readonly mayAct: () => boolean;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Why a guest could not be given the volumes that it is to have, or does not let go of others; undefined: it could. */
  readonly guestTrouble: (instanceId: string) => string | undefined;
  /** What is to be said of a volume, or who may have it, has changed. */
  readonly onChange: (volumeId: string) => void;
}

export interface VolumeReconciler {
  /** What is wanted of a volume, or what there is of it, has changed, or may have. Cheap, and never harmful. */
  look(volumeId: string): void;
  lookAtAll(): void;
  /** A guest has changed, and with it perhaps which volumes it has. */
  guestChanged(instanceId: string): void;
  /** Ids of volumes that the ledger does not speak of. They are left alone. Throws when the disk cannot be read. */
  unknown(): Promise<readonly string[]>;
  /** What is known now; undefined: nothing worth a report yet. */
  seenOf(volumeId: string): VolumeReport['volume'] | undefined;
  /** Whether a guest of this instance may have it now. */
  gateOf(volumeId: string, instanceId: string): VolumeGate;
  close(): Promise<void>;
}

interface Trouble {
  readonly code: string;
  readonly message: string;
}

interface Holder {
  readonly instanceId: string;
  readonly volumes: GuestVolumes | undefined;
  /** Its hypervisor runs, or may begin to at any moment. */
  readonly running: boolean;
}

const workersMax = 4; // making and copying is all disk
const stepsMax = 4;
const lookAgainMs = 10 * 60_000; // how much room it takes, and whether it is still there
const messageCharactersMax = 4096;
const gibibyte = 1024 ** 3;

export function createVolumeReconciler(options: VolumeReconcilerOptions): VolumeReconciler {
  const { files, claims, drivers, ledger, log } = options;
  const looks = new Map<string, VolumeLook>();
  const troubles = new Map<string, Trouble>();
  const making = new Map<string, AbortController>();
  /** How many copies are being made of snapshots of a volume. */
  const copies = new Map<string, number>();
  const told = new Map<string, string>();
  /** Which volumes a guest had when it last changed, and whether it ran. */
  const holdings = new Map<string, { readonly volumes: readonly string[]; readonly text: string }>();

  const workers = new KeyedReconciler<string>({
    clock: options.clock,
    prng: options.prng,
    workersMax,
    stepsMax,
    step: async (volumeId) => (files === undefined || !options.mayAct() ? 'rest' : takeStep(volumeId, files)),
    rested: (volumeId) => {
      if (looks.has(volumeId)) workers.addAfter(volumeId, lookAgainMs);
    },
    retrying: (volumeId, error, delayMs) => {
      log.warn('cannot bring a volume to what is wanted; trying again', {
        volume: volumeId,
        error: describeError(error),
        delayMs,
      });
      tell(volumeId);
    },
  });

  // ── one volume ──────────────────────────────────────────────────────────────────────────────────────────────────

  const takeStep = async (volumeId: string, on: VolumeFiles): Promise<'rest' | 'go-on'> => {
    if (ledger.volumeOf(volumeId) === undefined) return forget(volumeId);
    try {
      looks.set(volumeId, await on.look(volumeId));
    } catch (error) {
      troubles.set(volumeId, { code: 'Internal', message: `cannot look at its file: ${describeError(error)}` });
      throw error;
    }
    const assignment = ledger.volumeOf(volumeId);
    const look = looks.get(volumeId);
    if (workers.closed) return 'rest';
    if (assignment === undefined || look === undefined) return forget(volumeId);
    if (look.found === 'volume') ledger.noteVolumeMade(volumeId);
    const { actions } = planVolume(assignment, observed(volumeId, look));
    if (actions.length === 0) troubles.delete(volumeId);
    tell(volumeId);
    // An old ledger may speak of a snapshot that was made again since, or of a size from before it grew.
    if (actions.length === 0 || !ledger.confirmed) return 'rest';
    return takeAll(assignment, actions, on);
  };

  const forget = (volumeId: string): 'rest' => {
    for (const known of [looks, troubles, told]) known.delete(volumeId);
    return 'rest';
  };

  /** Each on its own; the first that failed is thrown when all were tried. */
  const takeAll = async (
    assignment: VolumeAssignment,
    actions: readonly VolumeAction[],
    on: VolumeFiles,
  ): Promise<'rest' | 'go-on'> => {
    const { volumeId } = assignment;
    let failed: { readonly error: unknown; readonly trouble: Trouble } | undefined;
    for (const action of actions) {
      try {
        if ((await take(assignment, action, on)) === 'rest') return 'rest';
      } catch (error) {
        if (workers.closed) return 'rest';
        if (error instanceof VolumeError && error.code === 'Aborted') return 'go-on'; // given up by ourselves
        failed ??= { error, trouble: troubleOf(action, error) };
      }
    }
    if (failed === undefined) return 'go-on';
    troubles.set(volumeId, failed.trouble);
    looks.set(volumeId, await on.look(volumeId));
    throw failed.error;
  };

  /** `rest`: somebody is about to use it; it is looked at again afterwards. */
  const take = async (
    assignment: VolumeAssignment,
    action: VolumeAction,
    on: VolumeFiles,
  ): Promise<'rest' | 'go-on'> => {
    const { volumeId, sizeGiB } = assignment;
    const sizeBytes = sizeGiB * gibibyte;
    switch (action.do) {
      case 'make':
        await make(assignment, on);
        return 'go-on';
      case 'grow':
        return change(volumeId, {
          by: (guest, instanceId) => guest.grow(instanceId, volumeId, sizeBytes),
          onFile: () => on.grow(volumeId, sizeBytes),
        });
      case 'make-snapshot':
      case 'remove-snapshot': {
        const { name } = action;
        const act = action.do === 'make-snapshot' ? 'make' : 'remove';
        return change(volumeId, {
          by: (guest, instanceId) => guest.snapshot(instanceId, volumeId, act, name),
          onFile: () => on.snapshot(volumeId, act, name),
        });
      }
      case 'remove':
        return change(volumeId, { onFile: () => on.remove(volumeId) });
    }
  };

  const make = async (assignment: VolumeAssignment, on: VolumeFiles): Promise<void> => {
    const { volumeId, sizeGiB, source } = assignment;
    const abort = new AbortController();
    making.set(volumeId, abort);
    if (source !== undefined) copies.set(source.volumeId, (copies.get(source.volumeId) ?? 0) + 1);
    log.info('making a volume', { volume: volumeId, name: assignment.name, sizeGiB });
    try {
      await on.make({ volumeId, sizeBytes: sizeGiB * gibibyte, ...(source ? { source } : {}) }, abort.signal);
    } finally {
      making.delete(volumeId);
      if (source !== undefined) {
        copies.set(source.volumeId, (copies.get(source.volumeId) ?? 1) - 1);
        if (looks.has(source.volumeId)) workers.add(source.volumeId); // what waited for the copy
      }
    }
  };

  /** By the guest that has it open, else on its file, which nobody gets meanwhile. */
  const change = async (
    volumeId: string,
    how: {
      readonly by?: (guest: GuestVolumes, instanceId: string) => Promise<void>;
      readonly onFile: () => Promise<void>;
    },
  ): Promise<'rest' | 'go-on'> => {
    const owner = `the change of volume ${volumeId}`;
    const { holders, blind } = holdersOf(volumeId);
    const user = holders.find(({ running }) => running);
    if (claims.take([volumeId], owner) !== undefined) return 'rest';
    try {
      if (blind !== undefined) return 'rest'; // looked at again when that driver sees its guests
      if (user === undefined) {
        if (how.by === undefined && holders.length > 0) return 'rest';
        await how.onFile();
      } else {
        if (how.by === undefined) return 'rest';
        if (user.volumes === undefined) {
          const message = `guest ${user.instanceId} may have it open, and nobody can tell: what is known of it is damaged`;
          throw new DriverError('NotPossible', message);
        }
        await how.by(user.volumes, user.instanceId);
      }
      log.info('changed a volume', { volume: volumeId });
    } finally {
      claims.release(owner);
    }
    return 'go-on';
  };

  const observed = (volumeId: string, seen: VolumeLook): ObservedVolume => {
    const { holders, blind } = holdersOf(volumeId);
    const first = holders.find(({ running }) => running) ?? holders[0];
    return {
      look: seen,
      holder: first ?? (blind === undefined ? 'none' : 'unknown'),
      copied: (copies.get(volumeId) ?? 0) > 0,
    };
  };

  /** All guests that have it, and a driver that may have another, if there is one. */
  const holdersOf = (volumeId: string): { readonly holders: readonly Holder[]; readonly blind: string | undefined } => {
    const holders: Holder[] = [];
    let blind: string | undefined;
    for (const driver of drivers) {
      if (!options.ready(driver)) {
        if (driver.volumes !== undefined) blind ??= driver.name;
        continue;
      }
      for (const guest of driver.guests()) {
        const { instanceId, state, damaged } = guest;
        // Of a damaged guest nobody knows what it has, nor whether it runs: it may have all that its instance ever was given.
        const has = damaged ? assignedTo(instanceId).includes(volumeId) : guest.volumes?.includes(volumeId);
        if (has !== true) continue;
        const running = state === 'running' || state === 'suspended' || state === 'preparing' || damaged === true;
        holders.push({ instanceId, volumes: damaged ? undefined : driver.volumes, running });
      }
    }
    return { holders, blind };
  };

  const assignedTo = (instanceId: string): string[] =>
    ledger
      .entriesOf(instanceId)
      .flatMap(({ assignment }) => (assignment.volumes ?? []).map(({ volumeId }) => volumeId));

  // ── what is said ────────────────────────────────────────────────────────────────────────────────────────────────

  const seenOf = (volumeId: string): VolumeReport['volume'] | undefined => {
    const assignment = ledger.volumeOf(volumeId);
    if (assignment === undefined) return undefined;
    if (files === undefined) return assignment.want === 'present' ? noVolumes : { state: 'absent' };
    const found = looks.get(volumeId);
    const trouble = troubles.get(volumeId);
    if (found === undefined) return trouble && { state: 'failed', ...said(trouble), sizeGiB: 0, snapshots: [] };
    const seen = observed(volumeId, found);
    const { verdict } = planVolume(assignment, seen);
    if (verdict === 'absent') return { state: 'absent' };
    const { state, reason, message } = verdict;
    const holder = typeof seen.holder === 'object' ? seen.holder.instanceId : undefined;
    const inTheWay = trouble ?? (state === 'ready' ? guestTrouble(assignment, holder) : undefined);
    const file = found.found === 'volume' ? found : undefined;
    return {
      state: trouble !== undefined && state === 'preparing' ? 'failed' : state,
      ...(inTheWay !== undefined
        ? said(inTheWay)
        : reason === undefined || message === undefined
          ? {}
          : said({ code: reason, message })),
      sizeGiB: file === undefined ? 0 : Math.floor(file.sizeBytes / gibibyte),
      ...(file === undefined ? {} : { usedBytes: file.usedBytes }),
      snapshots: file === undefined ? [] : file.snapshots.slice(0, volumeSnapshotsMax).map((each) => ({ ...each })),
      ...(holder === undefined ? {} : { instanceId: holder }),
    };
  };

  /** A guest that does not let go of it, or does not get it. */
  const guestTrouble = ({ volumeId }: VolumeAssignment, holder: string | undefined): Trouble | undefined => {
    const wants = (instanceId: string): boolean => {
      const assignment = ledger.newestOf(instanceId)?.assignment;
      return assignment?.volumes?.some((each) => each.volumeId === volumeId) === true;
    };
    if (holder !== undefined) {
      const message = wants(holder) ? undefined : options.guestTrouble(holder);
      return message === undefined ? undefined : { code: 'DetachWaits', message };
    }
    for (const instanceId of ledger.instanceIds()) {
      const message = wants(instanceId) ? options.guestTrouble(instanceId) : undefined;
      if (message !== undefined) return { code: 'AttachWaits', message };
    }
    return undefined;
  };

  const tell = (volumeId: string): void => {
    const text = JSON.stringify([seenOf(volumeId), holdersOf(volumeId).holders.map(({ instanceId }) => instanceId)]);
    if (told.get(volumeId) === text) return;
    told.set(volumeId, text);
    options.onChange(volumeId);
    // Those that are to begin as a copy of it.
    for (const other of ledger.volumeIds())
      if (ledger.volumeOf(other)?.source?.volumeId === volumeId && looks.get(other)?.found !== 'volume')
        workers.add(other);
  };

  const look = (volumeId: string): void => {
    const assignment = ledger.volumeOf(volumeId);
    if (assignment?.want !== 'present') making.get(volumeId)?.abort();
    if (assignment === undefined && !looks.has(volumeId)) return;
    workers.add(volumeId);
    options.onChange(volumeId);
  };

  return {
    look,
    seenOf,
    lookAtAll() {
      for (const volumeId of ledger.volumeIds()) look(volumeId);
    },
    guestChanged(instanceId) {
      const guests = drivers.flatMap((driver) =>
        options.ready(driver) ? driver.guests().filter((guest) => guest.instanceId === instanceId) : [],
      );
      const volumes = guests.flatMap((guest) => (guest.damaged ? assignedTo(instanceId) : (guest.volumes ?? [])));
      const before = holdings.get(instanceId);
      if (volumes.length === 0 && before === undefined) return;
      const text = JSON.stringify([volumes, guests.map(({ state }) => state)]);
      if (before?.text === text) return;
      if (volumes.length === 0) holdings.delete(instanceId);
      else holdings.set(instanceId, { volumes, text });
      for (const volumeId of new Set([...(before?.volumes ?? []), ...volumes])) look(volumeId);
    },
    async unknown() {
      return (await files?.list())?.filter((volumeId) => ledger.volumeOf(volumeId) === undefined) ?? [];
    },
    gateOf(volumeId, instanceId) {
      const shut = (why: string): VolumeGate => ({ open: false, why, path: files?.pathOf(volumeId) });
      const assignment = ledger.volumeOf(volumeId);
      if (files === undefined) return shut(noVolumes.message);
      if (assignment === undefined) return shut('this host was not told of it yet');
      if (assignment.want === 'absent') return shut('it is being deleted');
      const found = looks.get(volumeId);
      if (found?.found !== 'volume') {
        const seen = found && seenOf(volumeId);
        return shut((seen && 'message' in seen ? seen.message : undefined) ?? 'it is being made');
      }
      const { holders, blind } = holdersOf(volumeId);
      const other = holders.find((holder) => holder.instanceId !== instanceId);
      if (other !== undefined) return shut(`guest ${other.instanceId} has it`);
      if (blind !== undefined)
        return shut(`driver "${blind}" does not see its guests yet, and one of them may have it`);
      return { open: true, path: files.pathOf(volumeId) };
    },
    async close() {
      workers.stop();
      for (const abort of making.values()) abort.abort();
      await workers.close();
    },
  };
}

const noVolumes = {
  state: 'failed',
  reason: 'NotPossible',
  message: 'this host keeps no volumes',
  sizeGiB: 0,
  snapshots: [],
} satisfies VolumeReport['volume'];

const said = ({ code, message }: Trouble): { readonly reason: string; readonly message: string } => ({
  reason: code,
  message: message.slice(0, messageCharactersMax),
});

/** What cannot be done now, because of a guest, waits; what fails says why. */
function troubleOf(action: VolumeAction, error: unknown): Trouble {
  const message = describeError(error);
  const byGuest = error instanceof DriverError && error.code !== 'DiskFull';
  if (byGuest || (error instanceof VolumeError && error.code === 'InUse'))
    return { code: waitsFor[action.do], message };
  const code = error instanceof VolumeError || error instanceof DriverError ? error.code : 'Internal';
  return { code, message };
}

const waitsFor: Readonly<Record<VolumeAction['do'], string>> = {
  make: 'Internal',
  grow: 'GrowWaits',
  'make-snapshot': 'SnapshotWaits',
  'remove-snapshot': 'SnapshotWaits',
  remove: 'RemovalWaits',
};
