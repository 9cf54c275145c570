// The end of some runs: a backup that was made in the storm is restored when all is at rest, under control planes and agents that go
// on. What is promised then is of another kind than before, so it is judged here: no guest is touched for what the backup does not know,
// nothing exclusive runs twice, and all comes to rest again.

import { type Clock, sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { FakeGuest, FakeWorld } from '../../agent/drivers/fake/world.ts';
import { audit } from '../../core/audit/audit.ts';
import { type OverUse, overUse } from '../../core/ledger/ledger.ts';
import { restoredRecord } from '../../core/operations/restored-record.ts';
import { Cache, type StoredEvent } from '../../core/state/cache.ts';
import { conditionOf } from '../../core/state/conditions.ts';
import { restored } from '../../core/state/guest-phase.ts';
import { keys } from '../../core/state/keys.ts';
import { decodeRecord } from '../../core/state/codec.ts';
import type { FindingCode } from '../../api/audit.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { type Backup, readBackup, writeBackup } from '../../server/storage/backup.ts';
import { refill } from '../../server/storage/refill.ts';
import { type Store, StoreError } from '../../store/store.ts';
import { cacheFaults } from '../checkers/cache-faults.ts';
import type { CommittedState, RecordEvent } from '../history.ts';
import type { Tally } from '../batch/tally.ts';

export interface EpilogueParts {
  /** As someone outside of all control planes reaches it. */
  readonly store: Store;
  readonly state: CommittedState;
  readonly world: Pick<FakeWorld, 'guests' | 'doubleStarts' | 'volumeDisk'>;
  readonly prng: Prng;
  readonly tally: Tally;
  readonly clock: Clock;
  /** Those that are up, with what they believe. */
  readonly servers: () => readonly { readonly name: string; readonly cache: Cache }[];
  /** More goes wrong meanwhile. */
  readonly stormy: boolean;
  /** Hosts whose agents do not lie. */
  readonly trusted: (host: string) => boolean;
  /** Those of them that are up. */
  readonly honest: (host: string) => boolean;
}

export interface Epilogue {
  /** Made while others write; again and again until the store answers. */
  backUp(): Promise<void>;
  /** Undefined: there is no backup. */
  readonly restore: (() => Promise<void>) | undefined;
  /** What was committed since the restore. */
  note(events: readonly RecordEvent[]): void;
  /** What is not as it must be; undefined: all is. */
  fault(): { readonly invariant: number; readonly message: string } | undefined;
  /** What is not yet as it must be. */
  unrest(): { readonly invariant: number; readonly message: string } | undefined;
}

/** Of an operator who tries once more. */
const againMs = 1000;
/** What the audit may find for good: what only the hosts know, and what an operator had made too small. */
const ofTheHosts: ReadonlySet<FindingCode> = new Set(['UnknownGuest', 'UnknownVolume', 'SecondGuest', 'OverUse']);

export function createEpilogue({
  store,
  state,
  world,
  prng,
  tally,
  clock,
  servers,
  stormy,
  trusted,
  honest,
}: EpilogueParts): Epilogue {
  let backup: Backup | undefined;
  let before: readonly Pick<FakeGuest, 'host' | 'instanceId' | 'incarnation' | 'running' | 'startedAtMs'>[] = [];
  let doubleStarts = 0;
  /** By host, then id: the snapshots of every volume there was. */
  const disks = new Map<string, ReadonlyMap<string, readonly string[]>>();
  /** Of the backup: they were to go already. */
  const going = new Set<string>();
  const ends = new Set(stormy ? ['Preempted', 'HostLost'] : ['Preempted']);
  /** By id: what the backup says, as it was put back. */
  const known = new Map<string, Instance>();
  /** Lives that had to make room since, or whose host could not be heard. */
  const endedSince = new Set<string>();
  /** What the backup has too much of. */
  const excess = new Map<string, number>();

  const restore = async (from: Backup): Promise<void> => {
    before = world.guests().map(({ host, instanceId, incarnation, running, startedAtMs }) => ({
      host,
      instanceId,
      incarnation,
      running,
      startedAtMs,
    }));
    doubleStarts = world.doubleStarts.length;
    for (const { metadata } of state.list('host'))
      disks.set(
        metadata.name,
        new Map(
          [...world.volumeDisk(metadata.name)].map(([id, { snapshots }]) => [id, snapshots.map(({ name }) => name)]),
        ),
      );
    for (const [key, value] of from.entries) {
      const record = decodeRecord(key, value);
      if (record.kind === 'volume' && record.metadata.deletionRequestedAtMs !== undefined)
        going.add(record.metadata.id);
      if (record.kind === 'instance') known.set(record.metadata.id, record);
    }
    const entries = [...from.entries].map(([key, value]) => ({ key, value: decodeRecord(key, value), revision: 1 }));
    for (const over of overUse(snapshotOf(entries))) excess.set(overName(over), over.used - over.capacity);
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
        if (!(error instanceof StoreError) || tries > 100) throw error;
        tally.hit('restore-broken-off'); // and begun again, as an operator would
        await sleep(clock, againMs);
      }
    }
  };

  /** Nobody who was asked by the backup alone may have touched a guest. */
  const faultOf = (was: (typeof before)[number]): string | undefined => {
    if (!honest(was.host)) return undefined;
    const name = `the guest of ${was.instanceId}, incarnation ${was.incarnation}, on ${was.host}`;
    const instance = known.get(was.instanceId);
    const is = world.guests(was.host).find((guest) => guest.instanceId === was.instanceId);
    const same = instance?.status.host === was.host && instance.status.incarnation === was.incarnation;
    // Where the backup had it, too, a later life took the place of the earlier.
    if (is && is.incarnation > was.incarnation && instance?.status.host === was.host) return undefined;
    // One of a higher priority may take its room, as at any time, and in a storm its host may not be heard.
    if (endedSince.has(`${was.instanceId}.${was.incarnation}`)) return undefined;
    if (!same) return is?.incarnation === was.incarnation ? undefined : `${name} is gone, though no backup knows it`;
    const wanted = instance.metadata.deletionRequestedAtMs === undefined && instance.spec.powerState !== 'stopped';
    // One that was off holds no room to run in, so far as the backup knows.
    const held = ['Scheduled', 'Starting', 'Running', 'Suspended'].includes(instance.status.phase);
    if (!wanted || !held || !was.running) return undefined;
    if (!is?.running) return `${name} ran and was wanted, and does not run`;
    return is.startedAtMs === was.startedAtMs ? undefined : `${name} was started again`;
  };

  /** Nothing of a volume goes because a backup does not know it. */
  const faultOfVolumes = (): string | undefined => {
    for (const [host, volumes] of disks) {
      if (!honest(host)) continue;
      for (const [id, snapshots] of volumes) {
        if (going.has(id)) continue;
        const now = world.volumeDisk(host).get(id);
        if (now === undefined) return `volume ${id} on ${host} is gone`;
        const gone = snapshots.find((name) => !now.snapshots.some((each) => each.name === name));
        if (gone !== undefined) return `snapshot ${gone} of volume ${id} on ${host} is gone`;
      }
    }
    return undefined;
  };

  return {
    note(events) {
      for (const { after } of events)
        if (after?.kind === 'instance' && ends.has(conditionOf(after.status.conditions, 'Running')?.reason ?? ''))
          endedSince.add(`${after.metadata.id}.${after.status.incarnation}`);
    },
    async backUp() {
      for (;;) {
        try {
          backup = await readBackup(writeBackup(store, { version: 'sim', nowMs: clock.nowMs() }));
          return tally.hit('backed-up');
        } catch (error) {
          if (!(error instanceof StoreError) && !(error instanceof Error && error.name === 'Compacted')) throw error;
          await sleep(clock, againMs);
        }
      }
    },
    get restore() {
      const from = backup;
      return from && (() => restore(from));
    },
    fault() {
      const [double] = world.doubleStarts
        .slice(doubleStarts)
        .filter(({ instanceId }) => known.get(instanceId)?.spec.exclusive);
      if (double)
        return { invariant: 2, message: `after a restore ${double.instanceId} ran on ${double.hosts.join(' and ')}` };
      return undefined;
    },
    unrest() {
      for (const was of before) {
        const message = faultOf(was);
        if (message !== undefined) return { invariant: 8, message: `after a restore ${message}` };
      }
      const lost = faultOfVolumes();
      if (lost !== undefined) return { invariant: 8, message: `after a restore ${lost}` };
      if (state.get('cluster', keys.cluster)?.closed) return { invariant: 3, message: 'the store stays closed' };
      for (const { metadata, status } of state.list('instance')) {
        const running = conditionOf(status.conditions, 'Running');
        const waits = running?.reason === restored && status.host !== undefined && honest(status.host);
        if (waits && status.phase !== 'Failed')
          return { invariant: 3, message: `${metadata.name} is not told of by ${status.host} after the restore` };
      }
      for (const { metadata, status } of state.list('instance'))
        if (status.phase === 'Scheduled' && status.host !== undefined && honest(status.host))
          return { invariant: 8, message: `${metadata.name} does not come to run on ${status.host} after the restore` };
      for (const { name, cache } of servers()) {
        const [message] = cacheFaults(state, cache, name);
        if (message !== undefined) return { invariant: 6, message };
      }
      const snapshot = snapshotOf(state.entries());
      for (const found of audit(snapshot)) {
        if (!found || ofTheHosts.has(found.code) || (found.host !== undefined && !honest(found.host))) continue;
        return { invariant: 5, message: `after a restore, ${found.subject}: ${found.message}` };
      }
      // What an operator had made too small by then is that, still; but it never grows again. A liar's room is no room.
      const overs = new Map(
        overUse(snapshot)
          .filter(({ providerId }) => trusted(state.get('provider', keys.provider(providerId))?.host ?? ''))
          .map((over) => [overName(over), over]),
      );
      const over = [...overs].find(([name, { used, capacity }]) => used - capacity > (excess.get(name) ?? 0))?.[1];
      for (const name of excess.keys()) {
        const { used, capacity } = overs.get(name) ?? { used: 0, capacity: 0 };
        excess.set(name, used - capacity);
      }
      if (over)
        return {
          invariant: 1,
          message: `after a restore ${over.used} of ${over.capacity} ${over.resourceClass} are held`,
        };
      return undefined;
    },
  };
}

function snapshotOf(entries: Iterable<StoredEvent>): Cache {
  const cache = new Cache(() => 0);
  cache.reset([...entries], 1);
  return cache;
}

function overName({ providerId, resourceClass }: OverUse): string {
  return `${providerId} ${resourceClass}`;
}
