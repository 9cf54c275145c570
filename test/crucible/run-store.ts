// One run of the crucible over one store: a fleet under work and misfortunes, then rest, then judgement.

import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../src/base/clock.ts';
import { seededPrng } from '../../src/base/prng.ts';
import { systemClock } from '../../src/base/system.ts';
import { createFakeWorld } from '../../src/agent/drivers/fake/world.ts';
import { keys } from '../../src/core/state/keys.ts';
import { conditionOf } from '../../src/core/state/conditions.ts';
import { createIntents } from '../../src/sim/intents.ts';
import { openStore } from '../../src/store/open.ts';
import type { Store, WatchEvent } from '../../src/store/store.ts';
import {
  commitsOf,
  differenceOf,
  cleanFailOvers,
  judgeBoots,
  judgeFailOvers,
  judgeLostHosts,
  judgeWatches,
  type LostHost,
  restartFault,
} from './judge.ts';
import { kindsFor, storm, usualKinds, type StormRecord } from './faults.ts';
import { type Fleet, policy, startFleet, untilReady } from './fleet.ts';
import { createNetwork } from './network.ts';
import { judgeRestore } from './restore.ts';
import { headOf, RunRecord, type Violation } from './record.ts';
import { createEtcd, createPostgres, createSqlite, type RigStore, type StoreKind, storeMachines } from './stores.ts';
import { Workload } from './workload.ts';
import { openWorldSocket } from './world-socket.ts';

export interface StoreRunOptions {
  readonly store: StoreKind;
  readonly seed: number;
  readonly durationMs: number;
  /** Kinds of faults; missing: all that this store can have. */
  readonly faults?: readonly string[];
  /** Everything is made in here. */
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

export interface StoreRunResult {
  readonly store: StoreKind;
  readonly seed: number;
  readonly seconds: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly operations: number;
  readonly answeredCreates: number;
  readonly operationsPerSecond: number;
  readonly revisions: number;
  readonly watches: { readonly count: number; readonly changes: number; readonly compacted: number };
  readonly leaderTerms: number;
  readonly failOvers: {
    readonly clean: number;
    readonly disturbed: number;
    readonly p50Ms?: number;
    readonly p99Ms?: number;
  };
  readonly hostsLost: number;
  readonly restarts: number;
  readonly restMs: number;
  readonly backups: number;
  readonly restored: boolean;
  readonly violations: readonly Violation[];
  /** Why this run proves nothing. */
  readonly idle: readonly string[];
}

const hostNames = ['h1', 'h2', 'h3', 'h4'];
const planeNames = ['cp1', 'cp2', 'cp3'];
const restMsMax = 120_000;
const restedMs = 3_000;
const operationsPerSecondMin = 5;
const createsMin = 40;

export async function runStore(options: StoreRunOptions): Promise<StoreRunResult> {
  const { store: kind, seed, folder, signal, say } = options;
  const prng = seededPrng(seed, `crucible ${kind}`);
  const logs = join(folder, 'logs');
  await mkdir(logs, { recursive: true });
  const planes = kind === 'sqlite' ? planeNames.slice(0, 1) : planeNames;
  const network = await createNetwork([...planes, ...storeMachines[kind], ...hostNames]);

  const sqlite = kind === 'sqlite' ? await createSqlite({ folder, network, logs }) : undefined;
  const shared =
    kind === 'postgres'
      ? await createPostgres({ folder, network, logs })
      : kind === 'etcd'
        ? await createEtcd({ folder, network, logs })
        : undefined;
  const storeUrl = shared?.url ?? sqlite?.url ?? '';

  const intents = createIntents();
  const world = createFakeWorld({
    clock: systemClock,
    latencies: { pullMs: 100, cloneMs: 20, startMs: 50, bootMs: 200, shutdownMs: 100 },
  });
  const record = new RunRecord({ world, hosts: hostNames, intents, policy });
  const worldSocket = join(folder, 'world.sock');
  const closeWorld = await openWorldSocket({
    path: worldSocket,
    world,
    prng: prng.split(),
    onReport: (sent) => record.onReport(sent),
  });

  say(`starting ${planes.length} control planes and ${hostNames.length} agents over ${kind}`);
  const fleet = await startFleet({
    ...{ folder, logs, network, storeUrl, planes, hosts: hostNames, worldSocket },
    onServerStart: () => record.onServerStart(),
  });
  const rigStore = shared ?? sqliteMember(fleet, sqlite);

  // ── following ───────────────────────────────────────────────────────────────────────────────────────────────────

  const lost: LostHost[] = [];
  let terms = 0;
  let restarts = 0;
  const awaited = new Set<{ term: number; seen: (atMs: number) => void }>();
  record.onCommit((commit) => {
    const fault = restartFault(commit);
    if (fault !== undefined) record.violate(9, `revision ${commit.revision}: ${fault}`);
    for (const { before, after } of commit.events) {
      if (after?.kind === 'leader' && after.holder !== '') {
        terms = after.term;
        for (const each of awaited) if (after.term > each.term) each.seen(systemClock.monotonicMs());
      }
      if (
        after?.kind === 'instance' &&
        before?.kind === 'instance' &&
        after.status.restartCount > before.status.restartCount
      )
        restarts += 1;
      if (after?.kind !== 'host' || before?.kind !== 'host') continue;
      const ready = (host: typeof after) => conditionOf(host.status.conditions, 'Ready')?.status;
      if (ready(after) === 'False' && ready(before) !== 'False')
        lost.push({ host: after.metadata.name, atMs: record.committedAtMs });
    }
  });
  const followed = new AbortController();
  let follower: Store | undefined;
  let following: Promise<void> = Promise.resolve();
  if (shared) {
    follower = await openStore(storeUrl);
    following = record.follow(follower, followed.signal);
  }

  const workload = new Workload({
    clients: fleet.controlPlanes.map((plane) => ({ name: plane.machine, client: fleet.client(plane) })),
    prng: prng.split(),
    intents,
    tenants: 10,
    watchers: fleet.controlPlanes.length + 1,
    ownMax: 8,
  });
  await workload.prepare();
  workload.start();
  const startedMs = systemClock.monotonicMs();

  // ── the storm ───────────────────────────────────────────────────────────────────────────────────────────────────

  const kinds = options.faults?.filter((each) => kindsFor(kind).includes(each)) ?? usualKinds(kind);
  const stormed = await storm({
    fleet,
    store: rigStore,
    network,
    prng: prng.split(),
    folder,
    kinds,
    durationMs: options.durationMs,
    signal,
    leader: () => {
      const leader = record.history.state.get('leader', keys.leader);
      return leader && leader.holder !== ''
        ? { listen: leader.holder.split('@')[1] ?? '', term: leader.term }
        : undefined;
    },
    onLeaderTaken: (failOver) => {
      const each = {
        term: failOver.term,
        seen: (atMs: number) => {
          failOver.tookMs = Math.round(atMs - failOver.atMs);
          awaited.delete(each);
        },
      };
      awaited.add(each);
    },
    say,
  });
  const stormMs = systemClock.monotonicMs() - startedMs;

  // ── rest ────────────────────────────────────────────────────────────────────────────────────────────────────────

  say('healed; waiting for rest');
  for (const { daemon } of [...fleet.controlPlanes, ...fleet.hosts]) daemon.start();
  await Promise.all(fleet.controlPlanes.map(untilReady));
  await within(workload.endTenants(), restMsMax, () => record.violate(3, 'some calls were never answered'));
  for (const refusal of workload.refused) record.violate(3, refusal);
  const restBeganMs = systemClock.monotonicMs();
  if (shared && follower) await untilRest(record, follower, signal);
  else await untilQuiet(fleet, signal);
  const restMs = Math.round(systemClock.monotonicMs() - restBeganMs);
  await untilWatched(workload, record.revision);
  await workload.endWatchers();
  followed.abort();
  await following;
  await follower?.close();
  await judgeConsistency(fleet, record);

  // ── the store itself ────────────────────────────────────────────────────────────────────────────────────────────

  say('stopping the control planes; reading the whole log');
  await Promise.all(fleet.controlPlanes.map(({ daemon }) => daemon.stop()));
  await judgeStore(storeUrl, record, fleet);
  record.end();
  if (sqlite) for (const violation of record.unrest()) record.violate(violation.invariant, violation.message);
  const epoch = record.history.state.get('cluster', keys.cluster)?.epoch;
  for (const violation of [
    ...judgeWatches(workload.watches, record.history.commits),
    ...judgeLostHosts(lost, stormed.faults, policy.offlineAfterMs),
    ...judgeBoots(world.guests(), record.history.state),
  ])
    record.violate(violation.invariant, violation.message);
  const clean = cleanFailOvers(stormed.failOvers, stormed.faults, planes);
  for (const violation of judgeFailOvers(clean)) record.violate(violation.invariant, violation.message);
  const backup = stormed.backups.at(-1);
  if (backup && epoch !== undefined) {
    say(`restoring the backup of revision ${backup.revision}`);
    const before = { epoch, revision: record.revision };
    const { file } = backup;
    for (const fault of await judgeRestore({ fleet, world, storeUrl, file, before }))
      record.violate(9, `restore: ${fault}`);
    await Promise.all(fleet.controlPlanes.map(({ daemon }) => daemon.stop()));
  }
  await Promise.all(fleet.hosts.map(({ daemon }) => daemon.stop()));
  if (shared)
    await Promise.all(shared.members.map(({ daemon }) => daemon.stop(kind === 'postgres' ? 'SIGINT' : 'SIGTERM')));
  closeWorld();
  await writeRecord(folder, { workload, stormed, record });

  const took = clean.flatMap(({ tookMs }) => tookMs ?? []).sort((a, b) => a - b);
  const counts: Record<string, number> = {};
  for (const { kind: each } of stormed.faults) counts[each] = (counts[each] ?? 0) + 1;
  const answered = workload.asked.filter(({ answer }) => answer === 'ok').length;
  const operationsPerSecond = Math.round((10_000 * answered) / stormMs) / 10;
  const result: StoreRunResult = {
    store: kind,
    seed,
    seconds: Math.round(stormMs / 1000),
    faults: counts,
    operations: answered,
    answeredCreates: workload.answeredCreates,
    operationsPerSecond,
    revisions: record.revision,
    watches: {
      count: workload.watches.length,
      changes: workload.watches.reduce(
        (sum, { lines }) => sum + lines.filter(({ type }) => type !== 'bookmark').length,
        0,
      ),
      compacted: workload.watches.filter(({ end }) => end === 'Compacted').length,
    },
    leaderTerms: terms,
    failOvers: {
      clean: clean.length,
      disturbed: stormed.failOvers.length - clean.length,
      ...(took.length === 0 ? {} : { p50Ms: took[Math.floor((took.length - 1) / 2)] ?? 0, p99Ms: took.at(-1) ?? 0 }),
    },
    hostsLost: lost.length,
    restarts,
    restMs,
    backups: stormed.backups.length,
    restored: backup !== undefined,
    violations: record.violations,
    idle: signal.aborted
      ? ['it was interrupted']
      : idleReasons({
          kinds,
          counts,
          operationsPerSecond,
          terms,
          creates: workload.answeredCreates,
          shared: shared !== undefined,
        }),
  };
  return result;
}

function idleReasons(did: {
  readonly kinds: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly operationsPerSecond: number;
  readonly terms: number;
  readonly creates: number;
  readonly shared: boolean;
}): string[] {
  const found: string[] = [];
  if (did.operationsPerSecond < operationsPerSecondMin)
    found.push(`${did.operationsPerSecond} operations a second are too few; ${operationsPerSecondMin} are asked for`);
  if (did.creates < createsMin) found.push(`${did.creates} creates are too few; ${createsMin} are asked for`);
  for (const kind of did.kinds) if (did.counts[kind] === undefined) found.push(`"${kind}" never happened`);
  const leaderFaults = did.kinds.some((kind) => kind.includes('leader') && !kind.includes('store-leader'));
  if (did.shared && leaderFaults && did.terms < 2) found.push('the leader never changed');
  return found;
}

/** SQLite lives and dies with its one server. */
function sqliteMember(fleet: Fleet, sqlite: Awaited<ReturnType<typeof createSqlite>> | undefined): RigStore {
  const [plane] = fleet.controlPlanes;
  if (plane === undefined || sqlite === undefined)
    throw new Error('a run over SQLite has one control plane and one disk');
  const member = {
    machine: plane.machine,
    daemon: plane.daemon,
    disk: sqlite.disk,
    async start() {
      if (!plane.daemon.running) plane.daemon.start();
      await untilReady(plane);
    },
  };
  return { kind: 'sqlite', url: sqlite.url, members: [member], leader: () => Promise.resolve(member) };
}

/** Until every checker is content and nothing but heartbeats was written for a while. */
async function untilRest(record: RunRecord, store: Store, signal: AbortSignal): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + restMsMax;
  let newsMs = systemClock.monotonicMs();
  const forget = record.onCommit(({ events }) => {
    if (events.some(({ key }) => !key.startsWith('lease') && !key.startsWith('leader')))
      newsMs = systemClock.monotonicMs();
  });
  let restingSinceMs: number | undefined;
  for (;;) {
    const head = await headOf(store);
    const [waits] = head !== undefined && head <= record.revision ? [...record.unrest()] : [notRead];
    if (waits === undefined) restingSinceMs ??= systemClock.monotonicMs();
    else restingSinceMs = undefined;
    const nowMs = systemClock.monotonicMs();
    if (restingSinceMs !== undefined && nowMs - Math.max(restingSinceMs, newsMs) >= restedMs) break;
    if (nowMs > deadlineMs || signal.aborted) {
      const busy = { invariant: 8, message: 'nothing is amiss, yet it goes on writing' };
      record.violate((waits ?? busy).invariant, (waits ?? busy).message);
      break;
    }
    await sleep(systemClock, 500);
  }
  forget();
}

const notRead: Violation = { invariant: 6, message: 'the log cannot be read to its end' };

/** Where the store cannot be read beside its server: until the check finds nothing, and no instance is on its way. */
async function untilQuiet(fleet: Fleet, signal: AbortSignal): Promise<void> {
  const [plane] = fleet.controlPlanes;
  if (plane === undefined) return;
  const client = fleet.client(plane);
  const deadlineMs = systemClock.monotonicMs() + restMsMax;
  let quietSinceMs: number | undefined;
  while (systemClock.monotonicMs() < deadlineMs && !signal.aborted) {
    const { items } = await client.list('instance', { limit: 1_000 });
    const { findings, young } = await client.verify({ olderThanMs: 0 });
    const moving = items.some(({ status }) => ['Scheduled', 'Starting', 'Stopping', 'Deleting'].includes(status.phase));
    if (moving || findings.length + young > 0) quietSinceMs = undefined;
    else quietSinceMs ??= systemClock.monotonicMs();
    if (quietSinceMs !== undefined && systemClock.monotonicMs() - quietSinceMs > restedMs) return;
    await sleep(systemClock, 500);
  }
}

/** Until every watcher has been told that it has seen all. */
async function untilWatched(workload: Workload, revision: number): Promise<void> {
  const deadlineMs = systemClock.monotonicMs() + 30_000;
  while (systemClock.monotonicMs() < deadlineMs) {
    if ([...workload.seen.values()].every((seen) => seen.revision >= revision)) return;
    await sleep(systemClock, 200);
  }
}

async function judgeConsistency(fleet: Fleet, record: RunRecord): Promise<void> {
  for (const plane of fleet.controlPlanes) {
    const { exitCode, stdout, stderr } = await fleet.berth(plane, 'verify', '--older-than', '0s');
    if (exitCode !== 0) record.violate(8, `berth verify at ${plane.machine}: ${stdout.trim()} ${stderr.trim()}`);
  }
}

/** The whole log as it stands at the end: without gaps, the same as was followed, and what "berth store check" says of it. Read to its end. */
async function judgeStore(url: string, record: RunRecord, fleet: Fleet): Promise<void> {
  const { exitCode, stdout, stderr } = await fleet.berth(undefined, 'store', 'check', url);
  if (exitCode !== 0) record.violate(6, `berth store check: ${stdout.trim()} ${stderr.trim()}`);
  const store = await openStore(url, { mustExist: true });
  const over = new AbortController();
  const head = (await headOf(store)) ?? 0;
  const log: WatchEvent[] = [];
  for await (const events of store.watch('', 0, over.signal)) {
    log.push(...events);
    if ((events.at(-1)?.revision ?? 0) >= head) break;
  }
  over.abort();
  await store.close();
  const through = record.revision;
  const fault = differenceOf(record.history.commits, commitsOf(log.filter(({ revision }) => revision <= through)));
  if (fault !== undefined) record.violate(6, fault);
  record.take(log.filter(({ revision }) => revision > through)); // all of it where it could not be followed
}

async function within(work: Promise<void>, limitMs: number, onLate: () => void): Promise<void> {
  const late = sleep(systemClock, limitMs).then(() => 'late' as const);
  if ((await Promise.race([work, late])) === 'late') onLate();
}

/** Everything that was asked, seen and broken, to look at later. */
async function writeRecord(
  folder: string,
  { workload, stormed, record }: { workload: Workload; stormed: StormRecord; record: RunRecord },
): Promise<void> {
  const lines = (items: readonly unknown[]): string => items.map((item) => `${JSON.stringify(item)}\n`).join('');
  await writeFile(join(folder, 'asked.jsonl'), lines(workload.asked));
  await writeFile(join(folder, 'watches.jsonl'), lines(workload.watches));
  await writeFile(join(folder, 'faults.jsonl'), lines([...stormed.faults, ...stormed.failOvers]));
  await writeFile(join(folder, 'log.jsonl'), '');
  for (let i = 0; i < record.history.commits.length; i += 1_000)
    await appendFile(join(folder, 'log.jsonl'), lines(record.history.commits.slice(i, i + 1_000)));
}
