// Misfortunes of the crucible: real kills, stops, cuts and broken disks, in rounds of one to three at once that are drawn from a seed.
// Every round is healed before the next. A round has one fault of the store at most, so that others can be told apart.

import { join } from 'node:path';
import type { Prng } from '../../src/base/prng.ts';
import { systemClock } from '../../src/base/system.ts';
import { sleep } from '../../src/base/clock.ts';
import type { ControlPlane, Fleet, Host } from './fleet.ts';
import type { Network } from './network.ts';
import { cutPower, type RigStore, type StoreMember } from './stores.ts';

export interface FaultInterval {
  readonly kind: string;
  readonly targets: readonly string[];
  readonly fromMs: number;
  toMs: number;
}

/** That the leader was taken away, and when another's term was seen in the store. */
export interface FailOver {
  readonly how: string;
  readonly leader: string;
  readonly atMs: number;
  readonly term: number;
  tookMs?: number;
}

export interface StormParts {
  readonly fleet: Fleet;
  readonly store: RigStore;
  readonly network: Network;
  readonly prng: Prng;
  readonly folder: string;
  /** Kinds to draw from. */
  readonly kinds: readonly string[];
  readonly durationMs: number;
  readonly signal: AbortSignal;
  readonly leader: () => { readonly listen: string; readonly term: number } | undefined;
  readonly onLeaderTaken: (failOver: FailOver) => void;
  readonly say: (line: string) => void;
}

export interface StormRecord {
  readonly faults: FaultInterval[];
  readonly failOvers: FailOver[];
  /** Of backups that were made: the file. */
  readonly backups: { readonly file: string; readonly revision: number }[];
  readonly failedBackups: string[];
}

interface Fault {
  /** Machines, and `store` or `leader`: no two faults of a round share one. */
  readonly targets: readonly string[];
  readonly holdMs: number;
  begin(): Promise<void>;
  end(): Promise<void>;
}

interface Draw {
  readonly parts: StormParts;
  readonly record: StormRecord;
  readonly prng: Prng;
  readonly plane: ControlPlane;
  readonly host: Host;
  /** Undefined while there is no leader. */
  readonly leader: ControlPlane | undefined;
  /** The store's member that leads, and any. */
  readonly first: StoreMember;
  readonly member: StoreMember;
}

type FaultKind = (draw: Draw) => Fault | undefined;

const between = (prng: Prng, minMs: number, maxMs: number): number => minMs + prng.below(maxMs - minMs);

const kill =
  (which: (draw: Draw) => ControlPlane | Host | undefined, minMs: number, maxMs: number): FaultKind =>
  (draw) => {
    const target = which(draw);
    return (
      target && {
        targets: [target.machine],
        holdMs: between(draw.prng, minMs, maxMs),
        begin: () => target.daemon.kill(),
        end: async () => target.daemon.start(),
      }
    );
  };

const pause =
  (which: (draw: Draw) => ControlPlane | Host | undefined, minMs: number, maxMs: number): FaultKind =>
  (draw) => {
    const target = which(draw);
    return (
      target && {
        targets: [target.machine],
        holdMs: between(draw.prng, minMs, maxMs),
        begin: async () => target.daemon.pause(),
        end: async () => target.daemon.resume(),
      }
    );
  };

type Direction = 'both' | 'out' | 'in';

const cuts =
  (
    which: (draw: Draw) => { from: string; to: readonly string[]; also?: string } | undefined,
    direction: Direction,
    minMs: number,
    maxMs: number,
  ): FaultKind =>
  (draw) => {
    const { network } = draw.parts;
    const line = which(draw);
    if (line === undefined) return undefined;
    const { from, to, also } = line;
    const mend: (() => Promise<void>)[] = [];
    return {
      targets: [from, ...(also === undefined ? [] : [also])],
      holdMs: between(draw.prng, minMs, maxMs),
      async begin() {
        for (const other of to) {
          if (direction !== 'in') mend.push(await network.cutOneWay(from, other));
          if (direction !== 'out') mend.push(await network.cutOneWay(other, from));
        }
      },
      async end() {
        for (const each of mend) await each();
      },
    };
  };

const hostLine = ({ host, parts }: Draw) => ({
  from: host.machine,
  to: parts.fleet.controlPlanes.map(({ machine }) => machine),
});
const storeLine = ({ plane, parts }: Draw) => ({
  from: plane.machine,
  to: parts.store.members.map(({ machine }) => machine),
});

const pauseStore =
  (which: (draw: Draw) => StoreMember): FaultKind =>
  (draw) => {
    const { daemon } = which(draw);
    return {
      targets: ['store'],
      holdMs: between(draw.prng, 1_000, 8_000),
      begin: async () => daemon.pause(),
      end: async () => daemon.resume(),
    };
  };

const faultKinds: Readonly<Record<string, FaultKind>> = {
  'kill-control-plane': kill(({ plane }) => plane, 300, 5_000),
  'kill-leader': kill(({ leader }) => leader, 9_000, 11_000),
  'kill-agent': kill(({ host }) => host, 300, 5_000),
  'kill-store': ({ member: { daemon, start }, prng }) => ({
    targets: ['store'],
    holdMs: between(prng, 500, 3_000),
    async begin() {
      await daemon.kill();
    },
    end: start,
  }),
  'pause-control-plane': pause(({ plane }) => plane, 1_000, 20_000),
  'pause-leader': pause(({ leader }) => leader, 9_000, 15_000),
  'pause-agent': pause(({ host }) => host, 1_000, 20_000),
  'pause-store': pauseStore(({ member }) => member),
  'pause-store-leader': pauseStore(({ first }) => first),
  'move-store-leader': ({ parts: { store }, prng }) => ({
    targets: ['store'],
    holdMs: between(prng, 500, 2_000),
    begin: async () => store.moveLeader?.(),
    end: async () => {},
  }),
  'cut-host': cuts(hostLine, 'both', 1_000, 18_000),
  'cut-host-out': cuts(hostLine, 'out', 1_000, 10_000),
  'cut-host-in': cuts(hostLine, 'in', 1_000, 10_000),
  'cut-store': cuts(storeLine, 'both', 1_000, 10_000),
  'cut-store-out': cuts(storeLine, 'out', 1_000, 10_000),
  'cut-store-in': cuts(storeLine, 'in', 1_000, 10_000),
  'cut-leader-store': cuts((draw) => draw.leader && storeLine({ ...draw, plane: draw.leader }), 'both', 9_000, 13_000),
  'cut-peers': ({ parts: { network, fleet }, prng }) => {
    const names = fleet.controlPlanes.map(({ machine }) => machine);
    const mend: (() => Promise<void>)[] = [];
    return {
      targets: [],
      holdMs: between(prng, 1_000, 10_000),
      async begin() {
        for (const [i, one] of names.entries())
          for (const other of names.slice(i + 1)) mend.push(await network.cut(one, other));
      },
      async end() {
        for (const each of mend) await each();
      },
    };
  },
  'disk-full': ({ member: { disk, start }, prng }) => ({
    targets: ['store'],
    holdMs: between(prng, 3_000, 8_000),
    begin: () => disk.fill(),
    async end() {
      await disk.free();
      await start(); // some programs end when they cannot write
    },
  }),
  'power-cut': ({ member, prng }) => {
    let start = async (): Promise<void> => {};
    return {
      targets: ['store'],
      holdMs: between(prng, 100, 1_500),
      async begin() {
        start = await cutPower(member);
      },
      end: () => start(),
    };
  },
  'power-cut-all': ({ parts: { store }, prng }) => {
    let starts: (() => Promise<void>)[] = [];
    return {
      targets: ['store'],
      holdMs: between(prng, 100, 1_500),
      async begin() {
        starts = await Promise.all(store.members.map(cutPower));
      },
      async end() {
        await Promise.all(starts.map((start) => start()));
      },
    };
  },
  flap: ({ parts: { network }, prng }) => {
    const over = new AbortController();
    let flapping = Promise.resolve();
    return {
      targets: ['everything'],
      holdMs: between(prng, 1_000, 4_000),
      async begin() {
        flapping = (async () => {
          while (!over.signal.aborted) {
            await network.setBridge(false);
            await sleep(systemClock, 200);
            await network.setBridge(true);
            await sleep(systemClock, 200);
          }
        })();
      },
      async end() {
        over.abort();
        await flapping;
      },
    };
  },
  backup: (draw) => {
    let done = Promise.resolve();
    return {
      targets: [],
      holdMs: 0,
      async begin() {
        done = makeBackup(draw);
      },
      end: () => done,
    };
  },
};

/** From any control plane that can; a file that is there is whole, because "berth backup" has read it back. */
async function makeBackup({ parts: { fleet, folder, say }, plane, record }: Draw): Promise<void> {
  const file = join(folder, `backup-${record.backups.length + record.failedBackups.length}.zst`);
  for (const each of [plane, ...fleet.controlPlanes.filter((other) => other !== plane)]) {
    const { exitCode, stdout, stderr } = await fleet.berth(each, 'backup', file, '--json');
    if (exitCode === 0) {
      record.backups.push({ file, revision: JSON.parse(stdout).revision });
      return say(`backup of revision ${record.backups.at(-1)?.revision} by ${each.machine}`);
    }
    record.failedBackups.push(stderr.trim());
    say(`no backup by ${each.machine}: ${stderr.trim().split('\n')[0]}`);
  }
}

const ofEtcd = ['pause-store-leader', 'move-store-leader', 'power-cut-all'];
const ofSqlite = [
  'kill-control-plane',
  'kill-agent',
  'pause-control-plane',
  'pause-agent',
  'cut-host',
  'cut-host-out',
  'cut-host-in',
  'disk-full',
  'power-cut',
  'flap',
  'backup',
];
const takesLeader = new Set(['kill-leader', 'pause-leader', 'cut-leader-store']);

export function kindsFor(store: RigStore['kind']): readonly string[] {
  if (store === 'sqlite') return ofSqlite;
  return Object.keys(faultKinds).filter((kind) => store === 'etcd' || !ofEtcd.includes(kind));
}

/** The faults of a run for which none were named. Over SQLite it is power that is cut, again and again. */
export function usualKinds(store: RigStore['kind']): readonly string[] {
  if (store !== 'sqlite') return kindsFor(store);
  return [...Array.from({ length: 5 }, () => 'power-cut'), 'disk-full', 'kill-control-plane', 'kill-agent', 'backup'];
}

/** Until the time is over and every kind had its turn. All is healed when it resolves. */
export async function storm(parts: StormParts): Promise<StormRecord> {
  const { kinds, prng, durationMs, signal, fleet, store, say } = parts;
  const record: StormRecord = { faults: [], failOvers: [], backups: [], failedBackups: [] };
  const untilMs = systemClock.monotonicMs() + durationMs;
  const happened = new Set<string>();
  let deck: string[] = [];
  const all = (): boolean => kinds.every((kind) => happened.has(kind));

  while (!signal.aborted && (systemClock.monotonicMs() < untilMs || !all())) {
    if (deck.length === 0) deck = shuffled(kinds, prng);
    const size = 1 + prng.below(3);
    const first = await store.leader();
    const leads = parts.leader();
    const taken = new Set<string>();
    const round: { readonly kind: string; readonly fault: Fault; readonly interval: FaultInterval }[] = [];
    for (const kind of [...deck]) {
      if (round.length === size) break;
      const fault = faultKinds[kind]?.({
        parts,
        record,
        prng,
        plane: pick(fleet.controlPlanes, prng),
        host: pick(fleet.hosts, prng),
        leader: fleet.controlPlanes.find(({ url }) => url.endsWith(`/${leads?.listen ?? 'nobody'}`)),
        first,
        member: pick(store.members, prng),
      });
      if (fault === undefined || !fits(fault, kind, { taken, empty: round.length === 0 })) continue;
      for (const target of fault.targets) taken.add(target);
      if (takesLeader.has(kind)) taken.add('leader');
      deck.splice(deck.indexOf(kind), 1);
      round.push({
        kind,
        fault,
        interval: { kind, targets: fault.targets, fromMs: 0, toMs: Number.POSITIVE_INFINITY },
      });
    }
    await Promise.all(
      round.map(async ({ kind, fault, interval: drawn }) => {
        await sleep(systemClock, prng.below(500));
        const interval = { ...drawn, fromMs: systemClock.monotonicMs() };
        record.faults.push(interval);
        say(`${kind} ${fault.targets.join(' ')} for ${(fault.holdMs / 1000).toFixed(1)} s`);
        if (takesLeader.has(kind) && leads) {
          const failOver: FailOver = {
            how: kind,
            leader: fault.targets[0] ?? '',
            atMs: systemClock.monotonicMs(),
            term: leads.term,
          };
          record.failOvers.push(failOver);
          parts.onLeaderTaken(failOver);
        }
        await fault.begin();
        await sleep(systemClock, fault.holdMs, signal);
        await fault.end();
        interval.toMs = systemClock.monotonicMs();
        happened.add(kind);
      }),
    );
    await sleep(systemClock, 500 + prng.below(1_500), signal);
    // A process that was started again must be up before it can be stopped again.
    if (parts.leader() === undefined) await sleep(systemClock, 1_000, signal);
  }
  return record;
}

/** A store that is away hides what becomes of a leader; a flapping bridge hides everything. */
function fits(fault: Fault, kind: string, { taken, empty }: { taken: ReadonlySet<string>; empty: boolean }): boolean {
  if (taken.has('everything') || (fault.targets.includes('everything') && !empty)) return false;
  if (fault.targets.some((target) => taken.has(target))) return false;
  const ofStore = fault.targets.includes('store');
  return !(ofStore && taken.has('leader')) && !(takesLeader.has(kind) && (taken.has('store') || taken.has('leader')));
}

function pick<Item>(from: readonly Item[], prng: Prng): Item {
  const item = from[prng.below(from.length)];
  if (item === undefined) throw new Error('there is nothing to draw from');
  return item;
}

function shuffled(words: readonly string[], prng: Prng): string[] {
  const left = [...words];
  const out: string[] = [];
  while (left.length > 0) out.push(...left.splice(prng.below(left.length), 1));
  return out;
}
