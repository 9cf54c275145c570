// The end of some runs: a backup made in the storm is restored when the cluster is at rest, under control planes and agents that go on.
// Other promises hold then than before, so they are checked here: no guest is touched because the backup does not know it, nothing
// exclusive runs twice, and the cluster comes to rest again.

import { type Clock, sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { FakeGuest, FakeWorld } from '../../agent/drivers/fake/world.ts';
import { restoredRecord } from '../../core/operations/restored-record.ts';
import type { Cache } from '../../core/state/cache.ts';
import { conditionOf } from '../../core/state/conditions.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { type Backup, readBackup, writeBackup } from '../../server/storage/backup.ts';
import { refill } from '../../server/storage/refill.ts';
import { type Store, StoreError } from '../../store/store.ts';
import type { Tally } from '../batch/tally.ts';
import type { CommittedState, RecordEvent } from '../history.ts';
import { verifyUnrest, RestoredLedger, restoredUnrest, snapshotOf } from './restored-state.ts';

export interface EpilogueParts {
  /** As a client outside of all control planes reaches it. */
  readonly store: Store;
  readonly state: CommittedState;
  readonly world: Pick<FakeWorld, 'guests' | 'doubleStarts' | 'volumeDisk'>;
  readonly prng: Prng;
  readonly tally: Tally;
  readonly clock: Clock;
  /** Control planes that are up, with their caches. */
  readonly servers: () => readonly { readonly name: string; readonly cache: Cache }[];
  /** Faults happen during the restore. */
  readonly stormy: boolean;
  /** Hosts whose agents do not lie. */
  readonly trusted: (host: string) => boolean;
  /** Those of them that are up. */
  readonly honest: (host: string) => boolean;
}

interface Complaint {
  readonly invariant: number;
  readonly message: string;
}

type GuestBefore = Pick<FakeGuest, 'host' | 'instanceId' | 'incarnation' | 'running' | 'startedAtMs'>;

/** Between two attempts of an operator. */
const againMs = 1000;
const restoreTriesMax = 100;

export class Epilogue {
  readonly #parts: EpilogueParts;
  readonly #ledger: RestoredLedger;
  #backup: Backup | undefined;
  /** The guests when the restore began. */
  #before: readonly GuestBefore[] = [];
  #doubleStartsBefore = 0;
  /** By host, then id: the snapshots of every volume when the restore began. */
  readonly #disks = new Map<string, ReadonlyMap<string, readonly string[]>>();
  /** Ids of volumes that the backup has as being deleted. */
  readonly #going = new Set<string>();
  /** Reasons that end a guest after a restore, too. */
  readonly #ends: ReadonlySet<string>;
  /** Instances of the backup, by id. */
  readonly #known = new Map<string, Instance>();
  /** Incarnations that were preempted since, or whose host could not be reached. */
  readonly #endedSince = new Set<string>();

  constructor(parts: EpilogueParts) {
    this.#parts = parts;
    this.#ends = new Set(parts.stormy ? ['Preempted', 'HostLost'] : ['Preempted']);
    this.#ledger = new RestoredLedger(parts);
  }

  /** Makes a backup while others write; tries until the store answers. */
  async backUp(): Promise<void> {
    const { store, clock, tally } = this.#parts;
    for (;;) {
      try {
        this.#backup = await readBackup(writeBackup(store, { version: 'sim', nowMs: clock.nowMs() }));
        return tally.hit('backed-up');
      } catch (error) {
        if (!(error instanceof StoreError) && !(error instanceof Error && error.name === 'Compacted')) throw error;
        await sleep(clock, againMs);
      }
    }
  }

  /** Undefined: there is no backup. */
  get restore(): (() => Promise<void>) | undefined {
    const from = this.#backup;
    return from && (() => this.#restore(from));
  }

  /** Takes in what was committed since the restore. */
  note(events: readonly RecordEvent[]): void {
    const told = new Set<string>();
    for (const { after } of events)
      if (after?.kind === 'event' && this.#ends.has(after.spec.reason)) told.add(after.spec.subject.id);
    for (const { before, after } of events) {
      if (after?.kind !== 'instance') continue;
      const { id } = after.metadata;
      if (this.#ends.has(conditionOf(after.status.conditions, 'Running')?.reason ?? ''))
        this.#endedSince.add(`${id}.${after.status.incarnation}`);
      // Ended and placed again within one commit.
      if (before?.kind === 'instance' && told.has(id)) this.#endedSince.add(`${id}.${before.status.incarnation}`);
    }
  }

  /** What must never be. */
  fault(): Complaint | undefined {
    const [double] = this.#parts.world.doubleStarts
      .slice(this.#doubleStartsBefore)
      .filter(({ instanceId }) => this.#known.get(instanceId)?.spec.exclusive);
    return (
      double && { invariant: 2, message: `after a restore ${double.instanceId} ran on ${double.hosts.join(' and ')}` }
    );
  }

  /** What must not be at rest. */
  unrest(): Complaint | undefined {
    for (const was of this.#before) {
      const message = this.#faultOf(was);
      if (message !== undefined) return { invariant: 8, message: `after a restore ${message}` };
    }
    const lost = this.#faultOfVolumes();
    if (lost !== undefined) return { invariant: 8, message: `after a restore ${lost}` };
    const unrest = restoredUnrest(this.#parts);
    if (unrest !== undefined) return unrest;
    const snapshot = snapshotOf(this.#parts.state.entries());
    return verifyUnrest(snapshot, this.#parts) ?? this.#ledger.unrest(snapshot);
  }

  async #restore(from: Backup): Promise<void> {
    this.#noteBefore(from);
    const { store, clock, prng, tally } = this.#parts;
    for (let tries = 0; ; tries++) {
      try {
        await refill(store, {
          entries: from.entries,
          convert: (record, { newestSession }) => restoredRecord(record, { nowMs: clock.nowMs(), newestSession }),
          newEpoch: `epoch-${prng.below(2 ** 31)}`,
          nowMs: clock.nowMs(),
          by: 'restore',
          why: 'a restore is under way',
          restored: { atMs: clock.nowMs(), backupRevision: from.revision },
        });
        tally.hit('restored');
        return;
      } catch (error) {
        if (!(error instanceof StoreError) || tries > restoreTriesMax) throw error;
        tally.hit('restore-broken-off'); // and begun again, as an operator would
        await sleep(clock, againMs);
      }
    }
  }

  /** Keeps what the restore must not change. */
  #noteBefore(from: Backup): void {
    const { world, state } = this.#parts;
    this.#before = world.guests().map(({ host, instanceId, incarnation, running, startedAtMs }) => ({
      host,
      instanceId,
      incarnation,
      running,
      startedAtMs,
    }));
    this.#doubleStartsBefore = world.doubleStarts.length;
    for (const { metadata } of state.list('host')) {
      const volumes = [...world.volumeDisk(metadata.name)];
      const snapshotsOf = volumes.map(([id, { snapshots }]) => [id, snapshots.map(({ name }) => name)] as const);
      this.#disks.set(metadata.name, new Map(snapshotsOf));
    }
    const entries = [...from.entries].map(([key, value]) => ({ key, value: decodeRecord(key, value), revision: 1 }));
    for (const { value: record } of entries) {
      if (record.kind === 'volume' && record.metadata.deletionRequestedAtMs !== undefined)
        this.#going.add(record.metadata.id);
      if (record.kind === 'instance') this.#known.set(record.metadata.id, record);
    }
    this.#ledger.noteBackup(snapshotOf(entries));
  }

  /** A guest may not be touched on the word of the backup alone. */
  #faultOf(was: GuestBefore): string | undefined {
    const { honest, world } = this.#parts;
    if (!honest(was.host)) return undefined;
    const name = `the guest of ${was.instanceId}, incarnation ${was.incarnation}, on ${was.host}`;
    const instance = this.#known.get(was.instanceId);
    const is = world.guests(was.host).find((guest) => guest.instanceId === was.instanceId);
    // A later incarnation replaced the earlier one where the backup has the instance.
    if (is && is.incarnation > was.incarnation && instance?.status.host === was.host) return undefined;
    // An instance of a higher priority may take its room, as at any time, and in a storm its host may be unreachable.
    if (this.#endedSince.has(`${was.instanceId}.${was.incarnation}`)) return undefined;
    if (instance?.status.host !== was.host || instance.status.incarnation !== was.incarnation)
      return is?.incarnation === was.incarnation ? undefined : `${name} is gone, though no backup knows it`;
    if (!isToRun(instance) || !was.running) return undefined;
    if (!is?.running) return `${name} ran and was wanted, and does not run`;
    return is.startedAtMs === was.startedAtMs ? undefined : `${name} was started again`;
  }

  /** No volume goes because a backup does not know it. */
  #faultOfVolumes(): string | undefined {
    const { honest, world } = this.#parts;
    for (const [host, volumes] of this.#disks) {
      if (!honest(host)) continue;
      for (const [id, snapshots] of volumes) {
        if (this.#going.has(id)) continue;
        const now = world.volumeDisk(host).get(id);
        if (now === undefined) return `volume ${id} on ${host} is gone`;
        const gone = snapshots.find((name) => !now.snapshots.some((each) => each.name === name));
        if (gone !== undefined) return `snapshot ${gone} of volume ${id} on ${host} is gone`;
      }
    }
    return undefined;
  }
}

/** An instance that was off holds no room to run in, as far as the backup knows. */
function isToRun({ metadata, spec, status }: Instance): boolean {
  const wanted = metadata.deletionRequestedAtMs === undefined && spec.powerState !== 'stopped';
  return wanted && ['Scheduled', 'Starting', 'Running', 'Suspended'].includes(status.phase);
}
