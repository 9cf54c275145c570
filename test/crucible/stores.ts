// The stores of the crucible: real database servers on machines and disks of their own, which can be killed, stopped, filled and cut off.

import { appendFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { giveTo, postgresPrograms } from '../../src/store/postgres/test-postgres.ts';
import { command, Daemon } from './daemon.ts';
import { createDisk, type Disk } from './disk.ts';
import type { Network } from './network.ts';

export type StoreKind = 'postgres' | 'etcd' | 'sqlite';

/** One process that stores, its machine and its disk. */
export interface StoreMember {
  readonly machine: string;
  readonly daemon: Daemon;
  readonly disk: Disk;
  /** Starts it, again and again if need be, until it stays up and answers. */
  start(): Promise<void>;
}

export interface RigStore {
  readonly kind: StoreKind;
  /** For servers and tools. Of SQLite: in the data directory of its one server. */
  readonly url: string;
  readonly members: readonly StoreMember[];
  /** The member that leads; of one, that one. */
  leader(): Promise<StoreMember>;
  /** Another member leads now; undefined where there is none. */
  readonly moveLeader?: () => Promise<void>;
}

interface StoreParts {
  readonly folder: string;
  readonly network: Network;
  readonly logs: string;
}

export const storeMachines: Readonly<Record<StoreKind, readonly string[]>> = {
  postgres: ['db'],
  etcd: ['e1', 'e2', 'e3'],
  sqlite: [],
};

const startLimitMs = 60_000;

async function untilAnswers(
  daemon: Daemon,
  answers: () => Promise<boolean>,
  beforeStart = async () => {},
): Promise<void> {
  const deadlineMs = performance.now() + startLimitMs;
  while (performance.now() < deadlineMs) {
    if (!daemon.running) {
      await beforeStart();
      daemon.start();
    }
    if (await answers().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${daemon.name} does not come up within ${startLimitMs / 1000} s; see its log`);
}

export async function createPostgres({ folder, network, logs }: StoreParts): Promise<RigStore> {
  if (postgresPrograms === null) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
  const disk = await createDisk(folder, 'db', 400);
  const data = join(disk.path, 'data');
  await mkdir(data, { mode: 0o700 });
  giveTo('postgres', data);
  await command('chmod', '700', data);
  const asUser = ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups'];
  const cluster = ['-D', data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C.UTF-8'];
  await command('setpriv', ...asUser.slice(1), join(postgresPrograms, 'initdb'), ...cluster);
  await appendFile(join(data, 'pg_hba.conf'), 'host all all 10.77.0.0/24 trust\n');
  await command('sync', '--file-system', data); // else the first power cut takes our own line away
  const address = network.addressOf('db');
  const settings = ['max_wal_size=64MB', 'min_wal_size=32MB', 'unix_socket_directories=', 'max_connections=60'];
  const daemon = new Daemon({
    name: 'db',
    machine: 'db',
    argv: [
      ...asUser,
      ...[join(postgresPrograms, 'postgres'), '-D', data, '-p', '5432', '-h', address],
      ...settings.flatMap((each) => ['-c', each]),
    ],
    cwd: '/',
    logFile: join(logs, 'db.log'),
  });
  const answers = async (): Promise<boolean> => {
    const client = new Client({ host: address, port: 5432, user: 'postgres', connectionTimeoutMillis: 2_000 });
    client.on('error', () => {}); // told by what is awaited
    await client.connect();
    try {
      await client.query('SELECT 1');
    } finally {
      await client.end();
    }
    return true;
  };
  const member: StoreMember = {
    machine: 'db',
    daemon,
    disk,
    // Backends of a killed postmaster end by themselves, and must have before the next can start.
    start: () => untilAnswers(daemon, answers),
  };
  await member.start();
  return {
    kind: 'postgres',
    url: `postgres://postgres@${address}:5432/postgres`,
    members: [member],
    leader: async () => member,
  };
}

export async function createEtcd({ folder, network, logs }: StoreParts): Promise<RigStore> {
  const names = storeMachines.etcd;
  const url = (name: string, port: number): string => `http://${network.addressOf(name)}:${port}`;
  const cluster = names.map((name) => `${name}=${url(name, 2380)}`).join(',');
  const ask = async (name: string, path: string, body: object) => {
    const answer = await fetch(`${url(name, 2379)}/v3/${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(2_000),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${text}`);
    return JSON.parse(text);
  };
  const members: StoreMember[] = [];
  for (const name of names) {
    const disk = await createDisk(folder, name, 400);
    const daemon = new Daemon({
      name,
      machine: name,
      argv: [
        ...['etcd', '--name', name, '--data-dir', join(disk.path, 'data'), '--logger', 'zap', '--log-level', 'warn'],
        ...['--listen-client-urls', url(name, 2379), '--advertise-client-urls', url(name, 2379)],
        ...['--listen-peer-urls', url(name, 2380), '--initial-advertise-peer-urls', url(name, 2380)],
        ...['--initial-cluster', cluster],
      ],
      cwd: '/',
      logFile: join(logs, `${name}.log`),
    });
    const answers = async (): Promise<boolean> => {
      await ask(name, 'kv/range', { key: 'cmVhZHk=' });
      return true;
    };
    members.push({ machine: name, daemon, disk, start: () => untilAnswers(daemon, answers) });
  }
  await Promise.all(members.map((member) => member.start()));

  /** By what most members say, so that one that lags is not believed. */
  const leader = async (): Promise<StoreMember> => {
    const ids = new Map<string, StoreMember>();
    const votes = new Map<string, number>();
    for (const member of members) {
      const status = await ask(member.machine, 'maintenance/status', {}).catch(() => undefined);
      if (status === undefined) continue;
      ids.set(status.header.member_id, member);
      votes.set(status.leader, (votes.get(status.leader) ?? 0) + 1);
    }
    const [most] = [...votes].sort(([, a], [, b]) => b - a);
    return ids.get(most?.[0] ?? '') ?? members[0] ?? noMember();
  };
  return {
    kind: 'etcd',
    url: `etcd://${names.map((name) => `${network.addressOf(name)}:2379`).join(',')}/crucible`,
    members,
    leader,
    async moveLeader() {
      for (let tries = 1; ; tries++) {
        const from = await leader();
        const to = members.find((member) => member !== from && member.daemon.running) ?? noMember();
        try {
          const { header } = await ask(to.machine, 'maintenance/status', {});
          return void (await ask(from.machine, 'maintenance/transfer-leadership', { targetID: header.member_id }));
        } catch (error) {
          if (tries === movesMax) throw error;
          await new Promise((resolve) => setTimeout(resolve, 200)); // another fault may have moved it meanwhile
        }
      }
    },
  };
}

/** Of etcd's election, 1 s, a few. */
const movesMax = 20;

/** SQLite is in the server's own process: this is its disk only. */
export async function createSqlite({ folder }: StoreParts): Promise<{ readonly url: string; readonly disk: Disk }> {
  const disk = await createDisk(folder, 'sqlite', 200);
  return { url: `sqlite:${join(disk.path, 'berth.db')}`, disk };
}

/** Its disk has lost power: the process goes with it, the disk comes back, and what was flushed must be enough. */
export async function cutPower({ daemon, disk, start }: StoreMember): Promise<() => Promise<void>> {
  // None may be flushing meanwhile: ext4 then says that it is done, and loses what it was for. No power cut does that. With a program that
  // writes and flushes and nothing else it came 4 times in 154 (Linux 6.18).
  daemon.pause();
  await daemon.still();
  await disk.powerOff();
  daemon.resume();
  const family = daemon.descendants();
  await daemon.kill();
  await allGone(family);
  await disk.powerOn();
  return start;
}

async function allGone(pids: readonly number[]): Promise<void> {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      continue; // gone already
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
}

function noMember(): never {
  throw new Error('the store has no member that can be asked');
}
