import { afterEach, describe, expect, it } from 'vitest';
import type { Assignment, AssignmentEvent, Heartbeat, Registration, Report, Reports } from '../api/agent-protocol.ts';
import { createClient, type FetchInit, type FetchResponse } from '../api/client.ts';
import { ApiError, type ErrorCode } from '../api/errors.ts';
import { silentLogger } from '../base/log.ts';
import { createManualClock } from '../base/manual-clock.ts';
import { seededPrng } from '../base/prng.ts';
import { type Agent, createAgent } from './agent.ts';
import { createFakeDriver } from './drivers/fake/driver.ts';
import { createFakeWorld } from './drivers/fake/world.ts';
import type { LedgerFile } from './ledger.ts';

const hostName = 'host-1';
const instanceId = `inst_${'0'.repeat(25)}1`;
const otherId = `inst_${'0'.repeat(25)}2`;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const assignment = (change: Partial<Assignment> = {}): Assignment => ({
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

/** A control plane that does as it is told: it holds assignments, streams them, and notes what it hears. */
function scriptedControlPlane() {
  const assignments = new Map<string, Assignment>();
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
    /** Changes the desired state without a word: the next sync tells. */
    forget(): void {
      assignments.clear();
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
      const body = init.body === undefined ? undefined : JSON.parse(init.body);
      const answer = (() => {
        try {
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
      const { epoch, reports } = body as Reports;
      inSession(epoch);
      if (reports.some(plane.refuse)) throw new ApiError('InvalidRequest', 'reports[0] is bad');
      plane.reports.push(...reports.map((report) => ({ ...report, epoch })));
      return json({ results: reports.map(() => plane.reportResult) });
    }
    inSession(query.get('epoch'));
    const line = makeLine();
    line.push(
      `${JSON.stringify({ type: 'sync', revision: plane.revision, assignments: [...assignments.values()] })}\n`,
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

function makeHost() {
  const clock = createManualClock();
  const world = createFakeWorld({
    clock,
    latencies: { pullMs: 1000, cloneMs: 100, startMs: 100, bootMs: 1000, shutdownMs: 500 },
  });
  const plane = scriptedControlPlane();
  const file = memoryFile();
  const agents: Agent[] = [];
  let starts = 0;
  const host = {
    clock,
    world,
    plane,
    file,
    machineId: 'm-1',
    drivers: ['fake'],
    async startAgent(): Promise<Agent> {
      starts += 1;
      const prng = seededPrng(starts, 'agent');
      const agent = createAgent({
        client: createClient({ fetch: plane.fetch, url: 'http://plane' }),
        hostName,
        agentVersion: '0',
        drivers: host.drivers.map(() =>
          createFakeDriver({ world, host: hostName, prng: seededPrng(starts, 'driver') }),
        ),
        ledgerFile: file,
        measure: async () => ({
          machineId: host.machineId,
          bootId: 'b-1',
          architecture: 'amd64',
          capacity: { VCPU: 4 },
          reserved: {},
        }),
        clock,
        prng,
        log: silentLogger,
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

describe('the agent', () => {
  let host: ReturnType<typeof makeHost>;
  const begin = (): ReturnType<typeof makeHost> => {
    host = makeHost();
    return host;
  };
  afterEach(async () => {
    await host.stopAll();
    if (host.world.doubleStarts.length > 0) throw new Error(`ran twice: ${JSON.stringify(host.world.doubleStarts)}`);
  });

  describe('with the control plane there', () => {
    it('creates what is assigned and reports it preparing, running, ready', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      expect(plane.states()).toEqual(['preparing', 'running']);
      expect(plane.last()).toMatchObject({ state: 'running', ready: true, address: '10.0.2.15' });
      expect(plane.reports.at(-1)).toMatchObject({ instanceId, incarnation: 1, observedGeneration: 1 });
    });

    it('gives every report of a session a higher sequence', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put();
      plane.put({ instanceId: otherId });
      await pass(5000);
      const sequences = plane.reports.map((report) => report.sequence);
      expect(sequences.length).toBeGreaterThan(4);
      expect(sequences).toEqual(sequences.map((_, index) => index + 1));
    });

    it('is quiet when nothing changes, but for heartbeats', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      const { length } = plane.reports;
      await pass(60_000);
      expect(plane.reports).toHaveLength(length);
      expect(plane.heartbeats.length).toBeGreaterThanOrEqual(5);
      expect(plane.heartbeats.every((heartbeat) => Object.keys(heartbeat).join() === 'epoch')).toBe(true);
    });

    it('stops, starts again, and keeps the disk', async () => {
      const { plane, startAgent, pass, boots } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'stopped', generation: 2 });
      await pass(2000);
      expect(plane.last()).toMatchObject({ state: 'stopped' });
      plane.put({ want: 'running', generation: 3 });
      await pass(5000);
      expect(plane.reports.at(-1)).toMatchObject({ observedGeneration: 3, guest: { state: 'running', ready: true } });
      expect(boots()).toBe(2);
    });

    it('removes what is to be absent, reports that once, and forgets it when it is dropped', async () => {
      const { plane, startAgent, pass, guest, file } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'absent' });
      await pass(1000);
      expect(guest()).toBeUndefined();
      expect(plane.states()).toEqual(['preparing', 'running', 'absent']);
      plane.drop();
      await pass(1000);
      expect(file.text).not.toContain(instanceId);
    });

    it('deletes while the guest is being built, without waiting for the build', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      world.inject({ do: 'hang', step: 'pull' });
      await startAgent();
      plane.put();
      await pass(500);
      expect(plane.last()).toMatchObject({ state: 'preparing' });
      plane.put({ want: 'absent' });
      await pass(500);
      expect(guest()).toBeUndefined();
      expect(plane.states()).toEqual(['preparing', 'absent']);
    });

    it('never reports a creation that was given up as a failure, and takes it up again', async () => {
      const { world, plane, startAgent, pass } = begin();
      world.inject({ do: 'slow', factor: 100 });
      await startAgent();
      plane.put();
      await pass(500);
      plane.put({ want: 'stopped', generation: 2 });
      await pass(500);
      expect(plane.last()).toMatchObject({ state: 'stopped' });
      plane.put({ want: 'running', generation: 3 });
      await pass(5000);
      expect(plane.states()).toEqual(['preparing', 'stopped', 'preparing', 'running']);
    });

    it('does not let a long stop hold up a removal', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      world.inject({ do: 'ignore-power-button' });
      await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'stopped', stopGraceMs: 600_000 });
      await pass(1000);
      plane.put({ want: 'absent' });
      await pass(1000);
      expect(guest()).toBeUndefined();
      expect(plane.last()).toMatchObject({ state: 'absent' });
    });

    it('reports why a guest could not be made, and leaves what to do to the control plane', async () => {
      const { world, plane, startAgent, pass } = begin();
      world.inject({ do: 'fail', step: 'clone', code: 'DiskFull' });
      await startAgent();
      plane.put();
      await pass(60_000);
      expect(plane.last()).toMatchObject({ state: 'failed', reason: 'DiskFull' });
      expect(plane.states()).toEqual(['preparing', 'failed']);
    });

    it('leaves a dead guest alone until a new incarnation is sent, then removes the old one first', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      world.crash(hostName, instanceId);
      await pass(60_000);
      expect(plane.last()).toMatchObject({ state: 'failed', reason: 'HypervisorExited' });
      plane.put({ want: 'absent' });
      plane.put({ incarnation: 2 });
      await pass(5000);
      expect(guest()).toMatchObject({ incarnation: 2, state: 'running' });
      const absent = plane.reports.find((report) => report.guest.state === 'absent');
      expect(absent).toMatchObject({ incarnation: 1 });
      expect(plane.reports.at(-1)).toMatchObject({ incarnation: 2, guest: { ready: true } });
    });

    it('says that a driver is missing, and that nothing is left once it is not wanted any more', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put({ driver: 'zones' });
      await pass(1000);
      expect(plane.last()).toMatchObject({ state: 'failed', reason: 'DriverMissing' });
      plane.put({ driver: 'zones', want: 'absent' });
      await pass(1000);
      expect(plane.last()).toEqual({ state: 'absent' });
    });

    it('builds only a few guests at once, and all of them in the end', async () => {
      const { world, plane, startAgent, pass } = begin();
      await startAgent();
      const ids = Array.from({ length: 12 }, (_, index) => `inst_${'1'.repeat(24)}${String(index).padStart(2, '0')}`);
      for (const id of ids) plane.put({ instanceId: id });
      await pass(50);
      expect(world.guests(hostName).filter((guest) => guest.state === 'preparing')).toHaveLength(4);
      await pass(20_000);
      expect(world.guests(hostName).filter((guest) => guest.ready)).toHaveLength(12);
    });

    it('tells of guests that nothing assigns, and does not touch them', async () => {
      const { plane, startAgent, pass, guest } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.forget();
      plane.breakLines();
      await pass(30_000);
      expect(guest()).toMatchObject({ state: 'running' });
      expect(plane.heartbeats.findLast((heartbeat) => heartbeat.unknownGuests)?.unknownGuests).toEqual([
        { instanceId, incarnation: 1, driver: 'fake', state: 'running' },
      ]);
    });

    it('says again at a heartbeat what was called stale', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.reportResult = 'stale';
      plane.put({ want: 'absent' });
      await pass(1000);
      const { length } = plane.reports;
      plane.reportResult = 'accepted';
      await pass(20_000);
      expect(plane.reports).toHaveLength(length + 1);
    });

    it('does not let one refused report hold up the others', async () => {
      const { plane, startAgent, pass } = begin();
      plane.refuse = (report) => report.instanceId === otherId;
      plane.put({ instanceId: otherId });
      plane.put();
      await startAgent();
      await pass(5000);
      expect(plane.last()).toMatchObject({ ready: true });
      expect(plane.last(otherId)).toBeUndefined();
    });

    it('reports progress at most once a second, and states at once', async () => {
      const { world, plane, startAgent, pass } = begin();
      world.inject({ do: 'slow', factor: 20 });
      await startAgent();
      plane.put();
      await pass(60_000);
      const preparing = plane.reports.filter((report) => report.guest.state === 'preparing');
      expect(preparing.length).toBeLessThan(40);
      expect(plane.last()).toMatchObject({ ready: true });
    });
  });

  describe('with messages lost, repeated, late', () => {
    it('takes an assignment twice as once', async () => {
      const { plane, startAgent, pass, boots } = begin();
      await startAgent();
      plane.put({ revision: 11 });
      plane.put({ revision: 11 });
      await pass(5000);
      plane.put({ revision: 11 });
      await pass(5000);
      expect(boots()).toBe(1);
    });

    it('does not take an older assignment for a newer one', async () => {
      const { plane, startAgent, pass, guest } = begin();
      await startAgent();
      plane.put({ revision: 20, want: 'running' });
      plane.put({ revision: 22, want: 'absent' });
      plane.put({ revision: 21, want: 'running' });
      await pass(5000);
      expect(guest()).toBeUndefined();
      expect(plane.last()).toMatchObject({ state: 'absent' });
    });

    it('does not bring back what was dropped', async () => {
      const { plane, startAgent, pass, guest } = begin();
      await startAgent();
      plane.put();
      plane.put({ want: 'absent' });
      await pass(1000);
      plane.drop();
      plane.say({ type: 'put', revision: 12, assignment: assignment({ revision: 12 }) });
      await pass(5000);
      expect(guest()).toBeUndefined();
    });

    it('repeats reports until they are answered', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put();
      await pass(500);
      plane.answersLost = true;
      await pass(10_000);
      plane.answersLost = false;
      await pass(20_000);
      expect(plane.last()).toMatchObject({ ready: true });
      const sequences = plane.reports.filter((report) => report.epoch === plane.epoch).map((report) => report.sequence);
      expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    });

    it('opens a silent line again', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      const { lineCount } = plane;
      plane.forget();
      await pass(40_000);
      expect(plane.lineCount).toBe(lineCount);
      plane.put();
      await pass(5000);
      expect(plane.last()).toMatchObject({ ready: true });
    });

    it('does not believe a control plane that went back in time; a new session settles it', async () => {
      const { plane, startAgent, pass, guest } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'absent' });
      await pass(1000);
      plane.put({ revision: 5 });
      plane.revision = 5;
      plane.breakLines();
      await pass(300);
      expect(guest()).toBeUndefined();
      const { epoch } = plane;
      plane.revision = 100;
      plane.forget();
      await pass(10_000);
      expect(plane.epoch).toBe(epoch + 1);
      expect(guest()).toBeUndefined();
    });
  });

  describe('without the control plane', () => {
    it('keeps trying to register, for ever', async () => {
      const { plane, startAgent, pass } = begin();
      plane.away = true;
      await startAgent();
      await pass(600_000);
      plane.away = false;
      plane.put();
      await pass(40_000);
      expect(plane.last()).toMatchObject({ ready: true });
    });

    it('keeps guests running, and tells the latest when it is heard again', async () => {
      const { world, plane, startAgent, pass, boots } = begin();
      await startAgent();
      plane.put();
      plane.put({ instanceId: otherId });
      await pass(5000);
      plane.setAway(true);
      await pass(120_000);
      world.powerOff(hostName, otherId);
      await pass(120_000);
      plane.setAway(false);
      await pass(30_000);
      expect(boots()).toBe(1);
      expect(plane.last(otherId)).toMatchObject({ state: 'exited', reason: 'GuestShutdown' });
      expect(plane.lineCount).toBe(1);
    });

    it('finishes from its ledger what was being built when it died', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      world.inject({ do: 'slow', factor: 10 });
      const agent = await startAgent();
      plane.put();
      await pass(3000);
      expect(guest()).toMatchObject({ state: 'preparing' });
      await agent.stop();
      plane.setAway(true);
      await startAgent();
      await pass(60_000);
      expect(guest()).toMatchObject({ state: 'running', ready: true, boots: 1 });
    });

    it('gives the control plane a moment to say what is wanted now before it trusts its ledger', async () => {
      const { plane, startAgent, pass, guest } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(500);
      await agent.stop();
      plane.setAway(true);
      await startAgent();
      await pass(5000);
      expect(guest()).toMatchObject({ state: 'preparing', boots: 0 });
      plane.put({ want: 'absent' });
      plane.setAway(false);
      await pass(5000);
      expect(guest()).toBeUndefined();
      expect(plane.states()).toEqual(['preparing', 'absent']);
    });

    it('starts with nothing from a damaged ledger, keeps that for a look, and harms no guest', async () => {
      const { plane, startAgent, pass, guest, file } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(5000);
      await agent.stop();
      const damaged = file.text?.slice(0, -20) ?? '';
      file.text = damaged;
      plane.setAway(true);
      await startAgent();
      await pass(60_000);
      expect(file.aside).toBe(damaged);
      expect(guest()).toMatchObject({ state: 'running', boots: 1 });
      plane.setAway(false);
      await pass(60_000);
      expect(guest()).toMatchObject({ state: 'running', boots: 1 });
      expect(plane.last()).toMatchObject({ ready: true });
    });

    it('does not act on the ledger of another machine', async () => {
      const { world, plane, startAgent, pass, file } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(5000);
      await agent.stop();
      const copy = makeHost();
      copy.machineId = 'm-2';
      copy.file.text = file.text;
      copy.plane.away = true;
      await copy.startAgent();
      await copy.pass(60_000);
      expect(copy.world.guests()).toEqual([]);
      expect(world.guests()).toHaveLength(1);
      await copy.stopAll();
    });

    it('works on with a full disk under its ledger, and writes it when there is room', async () => {
      const { plane, startAgent, pass, file } = begin();
      await startAgent();
      await pass(100);
      file.full = true;
      plane.put();
      await pass(5000);
      expect(plane.last()).toMatchObject({ ready: true });
      file.full = false;
      await pass(10_000);
      expect(file.text).toContain(instanceId);
    });
  });

  describe('across its own restart', () => {
    it('adopts running guests and does not start them twice', async () => {
      const { plane, startAgent, pass, boots } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(5000);
      await agent.stop();
      await startAgent();
      await pass(30_000);
      expect(boots()).toBe(1);
      expect(plane.reports.at(-1)).toMatchObject({ epoch: 2, sequence: 1, guest: { state: 'running', ready: true } });
    });

    it('remembers a failure that its driver knows nothing of', async () => {
      const { plane, startAgent, pass } = begin();
      const agent = await startAgent();
      const { image: _image, ...imageless } = assignment();
      plane.put();
      await pass(1);
      plane.put({ want: 'absent' });
      await pass(1000);
      plane.drop();
      plane.say({ type: 'put', revision: 50, assignment: { ...imageless, incarnation: 2, revision: 50 } });
      await pass(1000);
      expect(plane.last()).toMatchObject({ state: 'failed', reason: 'ImageUnavailable' });
      await agent.stop();
      plane.put({ incarnation: 2, want: 'stopped' });
      await startAgent();
      await pass(1000);
      expect(plane.last()).toMatchObject({ state: 'failed', reason: 'ImageUnavailable' });
    });
  });

  describe('when its session is over', () => {
    it('registers anew, under a new name, and reports everything again', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.epoch += 1;
      await pass(30_000);
      expect(new Set(plane.registrations.map((registration) => registration.session)).size).toBe(2);
      expect(plane.reports.at(-1)).toMatchObject({ epoch: 3, sequence: 1, guest: { ready: true } });
    });

    it('stops with a clear error when the host belongs to another machine', async () => {
      const { plane, startAgent, pass } = begin();
      plane.registerAnswer = 'Conflict';
      const agent = await startAgent();
      await pass(1000);
      expect((await agent.failed).message).toContain('cannot register host "host-1"');
    });

    it('tries again after any other refusal', async () => {
      const { plane, startAgent, pass } = begin();
      plane.registerAnswer = 'Unauthenticated';
      await startAgent();
      await pass(60_000);
      plane.registerAnswer = undefined;
      await pass(60_000);
      expect(plane.heartbeats.length).toBeGreaterThan(1);
    });
  });
});
