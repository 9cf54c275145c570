// Crafted histories for tests of checkers: commits and guests are said, not simulated.

import type { Cache } from '../core/state/cache.ts';
import { defaultPolicy, type Policy } from '../core/state/context.ts';
import { keyOf } from '../core/state/keys.ts';
import { encodeRecord } from '../core/state/codec.ts';
import type { AnyRecord } from '../core/state/records.ts';
import type { FakeGuest } from '../agent/drivers/fake/world.ts';
import type { VolumeDisk } from '../agent/volumes/files/memory-volume-files.ts';
import type { Checker, Facts, SentReport } from './checkers/checker.ts';
import { createHistory } from './history.ts';
import { createIntents } from './intents.ts';

export function testHistory(create: (facts: Facts) => Checker, policy: Partial<Policy> = {}) {
  const history = createHistory();
  const guests: FakeGuest[] = [];
  const doubleStarts: Facts['world']['doubleStarts'][number][] = [];
  const intents = createIntents();
  const volumes = new Map<string, VolumeDisk>();
  const find = (host: string, instanceId: string): FakeGuest | undefined =>
    guests.find((guest) => guest.host === host && guest.instanceId === instanceId);
  const world: Facts['world'] = {
    doubleStarts,
    guest: find,
    guests: (host) => guests.filter((guest) => host === undefined || guest.host === host),
  };
  let nowMs = 0;
  const deaf: { fromMs: number; toMs: number }[] = [];
  const excused = { hosts: new Set<string>(), instances: new Set<string>() };
  const dead = new Set<string>();
  const servers: { readonly name: string; readonly cache: Cache }[] = [];
  const checker = create({
    state: history.state,
    world,
    volumes: { volumeDisk: (host) => volumes.get(host) ?? new Map(), volumeFaults: [] },
    intents,
    nowMs: () => nowMs,
    policy: { ...defaultPolicy, ...policy },
    excused: { host: (name) => excused.hosts.has(name), instance: (id) => excused.instances.has(id) },
    dead,
    deaf: () => deaf,
    servers: () => servers,
  });
  let revision = 0;
  const write = (writes: { key: string; value: Uint8Array | null }[], at: number): string | undefined => {
    const commit = history.record({ ok: true, revision: at }, writes);
    return commit && checker.onCommit?.(commit);
  };
  return {
    intents,
    doubleStarts,
    excused,
    dead,
    servers,
    state: history.state,
    cached: (server: string, cache: Cache, key: string) => checker.onCached?.({ server, cache, key }),
    recount: () => checker.recount?.(),
    deaf,
    /** What the checker says to a commit of these; a string deletes that key. */
    commit: (...records: readonly (AnyRecord | string)[]): string | undefined =>
      write(
        records.map((record) =>
          typeof record === 'string'
            ? { key: record, value: null }
            : { key: keyOf(record), value: encodeRecord(record) },
        ),
        ++revision,
      ),
    commitAt: (at: number, record: AnyRecord): string | undefined =>
      write([{ key: keyOf(record), value: encodeRecord(record) }], at),
    /** What the checker says to a guest that appears or changes. */
    guest(host: string, instanceId: string, changes: Partial<FakeGuest> = {}): string | undefined {
      const before = find(host, instanceId);
      if (before) guests.splice(guests.indexOf(before), 1);
      guests.push({ ...newGuest(host, instanceId), ...before, ...changes });
      return checker.onGuest?.(host, instanceId);
    },
    /** What the checker says of a guest as it is, or is no more. */
    look: (host: string, instanceId: string): string | undefined => checker.onGuest?.(host, instanceId),
    volumes,
    restored: (): void => checker.onRestored?.(),
    removeGuest(host: string, instanceId: string): void {
      const before = find(host, instanceId);
      if (before) guests.splice(guests.indexOf(before), 1);
    },
    /** The same, of one that is no more. */
    takeAway(host: string, instanceId: string): string | undefined {
      const before = find(host, instanceId);
      if (before) guests.splice(guests.indexOf(before), 1);
      return checker.onGuest?.(host, instanceId);
    },
    report: (sent: SentReport): void => checker.onReport?.(sent),
    unrest: (): string[] => [...(checker.unrest?.() ?? [])],
    pass(ms: number): void {
      nowMs += ms;
    },
    overdue: (): string | undefined => checker.overdue?.(),
  };
}

function newGuest(host: string, instanceId: string): FakeGuest {
  return {
    host,
    instanceId,
    incarnation: 1,
    imageName: 'tiny',
    faults: [],
    state: 'running',
    running: true,
    created: true,
    stopRequested: false,
    ready: true,
    boots: 1,
    ports: [],
    phases: [],
    console: '',
    pending: new Set(),
  };
}
