// A host for tests of the agent: a scripted control plane, a false world of guests, a ledger in memory, a clock to be turned.

import type {
  Assignment,
  AssignmentEvent,
  Heartbeat,
  Registration,
  Report,
  Reports,
  VolumeAssignment,
  VolumeReport,
} from '../api/agent-protocol.ts';
import { createClient, type FetchInit, type FetchResponse } from '../api/client/client.ts';
import { ApiError, type ErrorCode } from '../api/errors.ts';
import { silentLogger } from '../base/log.ts';
import { createManualClock } from '../base/manual-clock.ts';
import { seededPrng } from '../base/prng.ts';
import { system } from '../base/system.ts';
import { type Agent, createAgent } from './agent.ts';
import type { Driver } from './drivers/driver.ts';
import { createMemoryRunFiles, readMemoryDisk, type RunMemory } from './runner/files/memory-run-files.ts';
import type { RunParts } from './runner/runs.ts';
import { createFakeDriver } from './drivers/fake/driver.ts';
import { createFakeWorld } from './drivers/fake/world.ts';
import { createMemoryIncomingFiles, type IncomingMemory } from './migration/memory-incoming-files.ts';
import type { MoveSource } from './migration/move.ts';
import type { LedgerFile } from './ledger/ledger.ts';
import { createMemoryVolumeFiles } from './volumes/files/memory-volume-files.ts';

export const hostName = 'host-1';
export const instanceId = `inst_${'0'.repeat(25)}1`;
export const otherId = `inst_${'0'.repeat(25)}2`;
const turn = (): Promise<void> => new Promise((resolve) => system.afterTurn(resolve));

export const assignment = (change: Partial<Assignment> = {}): Assignment => ({
  instanceId,
  incarnation: 1,
  revision: 1,
  want: 'running',
  driver: 'fake',
  name: 'web-1',
  project: 'default',
  hostname: 'web-1',
  generation: 1,
  cpus: 1,
  memoryMiB: 64,
  diskGiB: 0,
  imageName: 'tiny',
  image: {
    source: 'file:///tiny.qcow2',
    decompress: 'none',
    format: 'qcow2',
    nocloud: true,
    architecture: 'amd64',
    aliases: [],
    preload: false,
    defaults: {},
  },
  ports: [],
  sshKeys: [],
  userData: '',
  stopGraceMs: 10_000,
  ...change,
});

export const volumeId = `vol_${'0'.repeat(25)}1`;
export const otherVolumeId = `vol_${'0'.repeat(25)}2`;

export const volumeAssignment = (change: Partial<VolumeAssignment> = {}): VolumeAssignment => ({
  volumeId,
  revision: 1,
  want: 'present',
  name: 'data',
  project: 'default',
  generation: 1,
  sizeGiB: 1,
  snapshots: [],
  made: false,
  ...change,
});

/** A control plane that does as it is told: it holds assignments, streams them, and notes what it hears. */
function scriptedControlPlane() {
  const assignments = new Map<string, Assignment>();
  const volumes = new Map<string, VolumeAssignment>();
  const lines = new Set<Line>();
  const plane = {
    revision: 10,
    epoch: 0,
    away: false,
    /** Answers are lost: the call has its effect, the caller hears nothing. */
    answersLost: false,
    registerAnswer: undefined as ErrorCode | undefined,
    reportResult: 'accepted' as 'accepted' | 'stale',
    refuse: (_report: Report): boolean => false,
    registrations: [] as Registration[],
    heartbeats: [] as Heartbeat[],
    reports: [] as (Report & { epoch: number })[],
    volumeReports: [] as (VolumeReport & { epoch: number })[],
    /** What was sent of runs, by part. */
    runParts: { log: '', artifacts: '' },
    putVolume(change: Partial<VolumeAssignment> = {}): void {
      plane.revision += 1;
      const next = volumeAssignment({ revision: plane.revision, ...change });
      volumes.set(next.volumeId, next);
      plane.say({ type: 'put-volume', revision: plane.revision, volume: next });
    },
    dropVolume(id = volumeId): void {
      plane.revision += 1;
      volumes.delete(id);
      plane.say({ type: 'drop-volume', revision: plane.revision, volumeId: id });
    },
    /** The newest report of a volume. */
    lastVolume: (id = volumeId): VolumeReport['volume'] | undefined =>
      plane.volumeReports.findLast((report) => report.volumeId === id)?.volume,
    put(change: Partial<Assignment> = {}): void {
      plane.revision += 1;
      const next = assignment({ revision: plane.revision, ...change });
      assignments.set(`${next.instanceId}/${next.incarnation}`, next);
      plane.say({ type: 'put', revision: plane.revision, assignment: next });
    },
    drop(id = instanceId, incarnation = 1): void {
      plane.revision += 1;
      assignments.delete(`${id}/${incarnation}`);
      plane.say({ type: 'drop', revision: plane.revision, instanceId: id, incarnation });
    },
    has: (id: string, incarnation: number): boolean => assignments.has(`${id}/${incarnation}`),
    /** Changes the desired state without a word: the next sync tells. */
    forget(): void {
      assignments.clear();
      volumes.clear();
    },
    say(event: AssignmentEvent): void {
      for (const line of lines) line.push(`${JSON.stringify(event)}\n`);
    },
    breakLines(): void {
      for (const line of lines) line.end(new Error('connection reset'));
      lines.clear();
    },
    setAway(away: boolean): void {
      plane.away = away;
      if (away) plane.breakLines();
    },
    get lineCount() {
      return lines.size;
    },
    /** What the control plane believes of an instance: the newest report. */
    last: (id = instanceId): Report['guest'] | undefined =>
      plane.reports.findLast((report) => report.instanceId === id)?.guest,
    states: (id = instanceId): string[] => {
      const states = plane.reports.filter((report) => report.instanceId === id).map((report) => report.guest.state);
      return states.filter((state, index) => state !== states[index - 1]);
    },
    fetch: async (url: string, init: FetchInit): Promise<FetchResponse> => {
      await turn();
      if (plane.away) throw new TypeError('fetch failed');
      const { pathname, searchParams } = new URL(url);
      const body = typeof init.body === 'string' ? JSON.parse(init.body) : undefined;
      const answer = (() => {
        try {
          if (init.body instanceof Uint8Array) return takeRunPart(pathname, init.body, searchParams);
          return respond(pathname.split('/').at(-1) ?? '', body, searchParams, init.signal);
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          return {
            status: error.status,
            headers: { get: () => null },
            body: null,
            text: async () => JSON.stringify(error.toBody()),
          };
        }
      })();
      if (plane.answersLost) throw new TypeError('fetch failed');
      return answer;
    },
  };

  const takeRunPart = (pathname: string, bytes: Uint8Array, query: URLSearchParams): FetchResponse => {
    if (Number(query.get('epoch')) !== plane.epoch) throw new ApiError('StaleEpoch', 'that session is over');
    const part = pathname.endsWith('/log') ? 'log' : 'artifacts';
    const [known, offset] = [plane.runParts[part], Number(query.get('offset'))];
    if (offset > known.length) throw new ApiError('Conflict', 'a gap', { details: { size: known.length } });
    plane.runParts[part] += Buffer.from(bytes)
      .toString('latin1')
      .slice(known.length - offset);
    const text = JSON.stringify({ size: plane.runParts[part].length });
    return { status: 200, headers: { get: () => null }, body: null, text: async () => text };
  };

  const respond = (route: string, body: unknown, query: URLSearchParams, signal?: AbortSignal): FetchResponse => {
    const json = (value: unknown): FetchResponse => ({
      status: 200,
      headers: { get: () => null },
      body: null,
      text: async () => JSON.stringify(value),
    });
    const inSession = (epoch: unknown): void => {
      if (Number(epoch) !== plane.epoch) throw new ApiError('StaleEpoch', 'that session is over');
    };
    if (route === 'session') {
      if (plane.registerAnswer) throw new ApiError(plane.registerAnswer, 'no');
      const registration = body as Registration;
      if (plane.registrations.at(-1)?.session !== registration.session) plane.epoch += 1;
      plane.registrations.push(registration);
      return json({ hostId: 'host_1', epoch: plane.epoch, heartbeatMs: 10_000, offlineAfterMs: 60_000 });
    }
    if (route === 'heartbeat') {
      inSession((body as Heartbeat).epoch);
      plane.heartbeats.push(body as Heartbeat);
      return json({});
    }
    if (route === 'reports') {
      const { epoch, reports, volumes: ofVolumes } = body as Reports;
      inSession(epoch);
      if (reports.some(plane.refuse)) throw new ApiError('InvalidRequest', 'reports[0] is bad');
      plane.reports.push(...reports.map((report) => ({ ...report, epoch })));
      if (ofVolumes === undefined) return json({ results: reports.map(() => plane.reportResult) });
      plane.volumeReports.push(...ofVolumes.map((report) => ({ ...report, epoch })));
      const results = reports.map(() => plane.reportResult);
      return json({ results, volumes: ofVolumes.map(() => plane.reportResult) });
    }
    inSession(query.get('epoch'));
    const line = makeLine();
    const held = volumes.size === 0 ? {} : { volumes: [...volumes.values()] };
    line.push(
      `${JSON.stringify({ type: 'sync', revision: plane.revision, assignments: [...assignments.values()], ...held })}\n`,
    );
    lines.add(line);
    signal?.addEventListener('abort', () => {
      lines.delete(line);
      line.end(new Error('aborted'));
    });
    return { status: 200, headers: { get: () => null }, body: line.bytes(), text: async () => '' };
  };
  return plane;
}

type Line = ReturnType<typeof makeLine>;

function makeLine() {
  const pending: Uint8Array[] = [];
  let error: Error | undefined;
  let wake = (): void => {};
  return {
    push(text: string): void {
      pending.push(new TextEncoder().encode(text));
      wake();
    },
    end(why: Error): void {
      error = why;
      wake();
    },
    async *bytes(): AsyncGenerator<Uint8Array> {
      for (;;) {
        const next = pending.shift();
        if (next) yield next;
        else if (error) throw error;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}

function memoryFile(
  text: string | null = null,
): LedgerFile & { text: string | null; aside: string | null; full: boolean } {
  const file = {
    text,
    aside: null as string | null,
    full: false,
    read: async () => file.text,
    write: async (next: string) => {
      if (file.full) throw new Error('no space left on device');
      file.text = next;
    },
    setAside: async () => {
      file.aside = file.text;
      file.text = null;
      return 'aside';
    },
  };
  return file;
}

export function makeHost() {
  const clock = createManualClock();
  const world = createFakeWorld({
    clock,
    latencies: { pullMs: 1000, cloneMs: 100, startMs: 100, bootMs: 1000, shutdownMs: 500 },
  });
  const plane = scriptedControlPlane();
  const file = memoryFile();
  const agents: Agent[] = [];
  let starts = 0;
  const withStartTrouble = (driver: Driver): Driver => ({
    ...driver,
    start: (id) => {
      const { startTrouble } = host;
      host.startTrouble = undefined;
      return startTrouble === undefined ? driver.start(id) : Promise.reject(new Error(startTrouble));
    },
  });
  const host = {
    clock,
    world,
    plane,
    file,
    machineId: 'm-1',
    agentId: `agent_${'a'.repeat(26)}`,
    drivers: ['fake'],
    /** False: the agent keeps none. */
    keepsVolumes: true,
    /** Throws where a change of a volume is to fail. */
    volumeTrouble: async (): Promise<void> => {},
    disk: world.volumeDisk(hostName),
    /** Files of guests that move here; they survive an agent. */
    incoming: new Map() as IncomingMemory,
    /** Another host, whose guests move here. */
    moveSource: undefined as MoveSource | undefined,
    /** The files of runs; they survive an agent. */
    runMemory: new Map() as RunMemory,
    fetchRepository: undefined as RunParts['fetchRepository'],
    /** What its agents said that needs a person. */
    errors: [] as Record<string, unknown>[],
    /** Why drivers cannot find their guests again, if they cannot. */
    blindness: undefined as string | undefined,
    /** Why the next start of a guest fails, if it does. */
    startTrouble: undefined as string | undefined,
    async startAgent(): Promise<Agent> {
      starts += 1;
      const prng = seededPrng(starts, 'agent');
      const agent = createAgent({
        client: createClient({ fetch: plane.fetch, url: 'http://plane' }),
        hostName,
        agentVersion: '0',
        identity: async () => host.agentId,
        drivers: host.drivers.map(() => ({
          ...withStartTrouble(
            createFakeDriver({
              world,
              host: hostName,
              prng: seededPrng(starts, 'driver'),
              readRunDisk: async (path) => readMemoryDisk(host.runMemory, path),
            }),
          ),
          recover: async () => {
            if (host.blindness !== undefined) throw new Error(host.blindness);
          },
        })),
        ledgerFile: file,
        ...(host.keepsVolumes
          ? {
              volumeFiles: createMemoryVolumeFiles({
                disk: host.disk,
                clock,
                holders: (id) => world.volumeUsers(hostName, id).length,
                beforeChange: () => host.volumeTrouble(),
              }),
            }
          : {}),
        incomingFiles: createMemoryIncomingFiles(host.incoming),
        ...(host.moveSource === undefined ? {} : { moveSource: host.moveSource }),
        runs: {
          files: createMemoryRunFiles(host.runMemory),
          randomSecret: (length) => Buffer.from(Array.from({ length }, () => prng.below(256))),
          ...(host.fetchRepository === undefined ? {} : { fetchRepository: host.fetchRepository }),
        },
        measure: async () => ({
          machineId: host.machineId,
          bootId: 'b-1',
          architecture: 'amd64',
          capacity: { VCPU: 4 },
          reserved: {},
        }),
        clock,
        prng,
        log: { ...silentLogger, error: (message, fields) => host.errors.push({ message, ...fields }) },
      });
      agents.push(agent);
      await agent.start();
      await host.pass(100);
      return agent;
    },
    pass: (ms: number): Promise<void> =>
      clock.advanceSettled(ms, async () => {
        for (let turns = 0; turns < 12; turns++) await turn();
      }),
    guest: (id = instanceId) => world.guest(hostName, id),
    boots: (id = instanceId) => world.guest(hostName, id)?.boots ?? 0,
    stopAll: async () => {
      for (const agent of agents) await agent.stop();
    },
  };
  return host;
}
