import { afterEach, describe, expect, it } from 'vitest';
import { assignment, hostName, instanceId, makeHost, otherId } from './testing.ts';

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
      await pass(15_000); // with the first one it tells that it has no unknown guests
      plane.heartbeats.splice(0);
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

    it('reports a resize of what was stopped before it was created as done', async () => {
      const { plane, startAgent, pass } = begin();
      await startAgent();
      plane.put({ want: 'stopped', generation: 2, resized: 1 });
      await pass(2000);
      expect(plane.last()).toMatchObject({ state: 'stopped', resized: 1 });
      plane.put({ generation: 3, resized: 1 });
      await pass(5000);
      expect(plane.last()).toMatchObject({ state: 'running', resized: 1 });
    });

    it('starts a guest that ended again when that is ordered, once, and keeps the disk', async () => {
      const { world, plane, startAgent, pass, guest, boots } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      world.powerOff(hostName, instanceId);
      await pass(5000);
      expect(plane.last()).toMatchObject({ state: 'exited' });
      const startAgain = { order: 1, endedRunAtMs: guest()?.startedAtMs ?? 0 };
      plane.put({ want: 'stopped', generation: 2, startAgain });
      await pass(2000);
      expect(boots()).toBe(1);
      plane.put({ generation: 2, startAgain });
      await pass(5000);
      expect(plane.last()).toMatchObject({ state: 'running', ready: true });
      expect(boots()).toBe(2);
      world.powerOff(hostName, instanceId);
      await pass(60_000);
      expect(plane.last()).toMatchObject({ state: 'exited' });
      expect(boots()).toBe(2);
    });

    it('says once that a guest could not be started again, and tries at the next order', async () => {
      const { world, plane, startAgent, pass, guest, boots } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      world.powerOff(hostName, instanceId);
      await pass(5000);
      const endedRunAtMs = guest()?.startedAtMs ?? 0;
      host.startTrouble = 'no hypervisor here';
      plane.put({ generation: 2, startAgain: { order: 1, endedRunAtMs } });
      await pass(60_000);
      expect(plane.last()).toMatchObject({ state: 'failed', message: 'no hypervisor here' });
      expect(plane.last()).not.toHaveProperty('startedAtMs');
      plane.put({ generation: 3, startAgain: { order: 2, endedRunAtMs } });
      await pass(5000);
      expect(plane.last()).toMatchObject({ state: 'running' });
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

    it('suspends a guest and lets it go on, and keeps it as asked whatever others do to it', async () => {
      const { world, plane, startAgent, pass, guest, boots } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'suspended', generation: 2 });
      await pass(500);
      expect(plane.last()).toMatchObject({ state: 'suspended', ready: true });
      world.setSuspended(guest() ?? expect.unreachable(), false); // somebody lets it go on
      await pass(500);
      expect(guest()).toMatchObject({ state: 'suspended' });
      plane.put({ want: 'running', generation: 3 });
      await pass(500);
      expect(plane.last()).toMatchObject({ state: 'running', ready: true });
      world.setSuspended(guest() ?? expect.unreachable(), true); // somebody suspends it
      await pass(500);
      expect(plane.last()).toMatchObject({ state: 'running' });
      expect(boots()).toBe(1);
    });

    it('says that all is as before when the answer to what was between was lost', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.answersLost = true;
      world.setSuspended(guest() ?? expect.unreachable(), true); // it is resumed before the report is repeated
      await pass(100);
      expect(guest()).toMatchObject({ state: 'running' });
      expect(plane.last()).toMatchObject({ state: 'suspended' });
      plane.answersLost = false;
      await pass(5000);
      expect(plane.last()).toMatchObject({ state: 'running' });
    });

    it('finds a suspended guest again, and it is as it was asked for when the next agent hears of it', async () => {
      const { plane, startAgent, pass, guest, boots } = begin();
      const first = await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'suspended', generation: 2 });
      await pass(500);
      await first.stop();
      await startAgent();
      await pass(500);
      expect(plane.last()).toMatchObject({ state: 'suspended' });
      plane.put({ want: 'stopped', generation: 3 });
      await pass(2000);
      expect(plane.last()).toMatchObject({ state: 'stopped' });
      plane.put({ want: 'suspended', generation: 4 });
      await pass(2000);
      expect(guest()).toMatchObject({ state: 'suspended' });
      expect(boots()).toBe(2);
      plane.put({ want: 'absent' });
      await pass(1000);
      expect(guest()).toBeUndefined();
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

    it('hurries a stop under way when less time is given, and says that force was needed', async () => {
      const { world, plane, startAgent, pass } = begin();
      world.inject({ do: 'ignore-power-button' });
      await startAgent();
      plane.put();
      await pass(5000);
      plane.put({ want: 'stopped', stopGraceMs: 600_000, generation: 2 });
      await pass(1000);
      expect(plane.last()).toMatchObject({ state: 'running' });
      plane.put({ want: 'stopped', stopGraceMs: 1000, generation: 3 });
      await pass(3000);
      expect(plane.last()).toMatchObject({
        state: 'stopped',
        reason: 'StopForced',
        message: expect.stringMatching(/^the guest did not power off within 2(\.\d)? s and was ended by force$/),
      });
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

    it('reports a guest whose record is damaged as running while it runs, and removes it only when nothing of it is wanted', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(5000);
      await agent.stop();
      world.damage(hostName, instanceId);
      await startAgent();
      await pass(3000);
      expect(plane.last()).toMatchObject({ state: 'running', ready: false, reason: 'RecordDamaged' });
      plane.put({ want: 'stopped' });
      await pass(3000);
      plane.put({ incarnation: 2 });
      plane.put({ want: 'absent' });
      await pass(10_000);
      expect(guest()).toMatchObject({ incarnation: 1, running: true, boots: 1 });
      expect(plane.states()).not.toContain('absent');
      plane.put({ incarnation: 2, want: 'absent' });
      await pass(3000);
      expect(guest()).toBeUndefined();
      expect(plane.last()).toEqual({ state: 'absent' });
    });

    it('does nothing with a driver that cannot find its guests again, tells why, and goes on when it can', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(5000);
      await agent.stop();
      host.blindness = 'the records are of a newer Berth';
      await startAgent();
      plane.put({ want: 'absent' });
      await pass(120_000);
      expect(guest()).toMatchObject({ running: true, boots: 1 });
      expect(plane.registrations.at(-1)?.drivers).toMatchObject([
        { available: false, reason: expect.stringContaining('the records are of a newer Berth') },
      ]);
      host.blindness = undefined;
      await pass(120_000);
      expect(world.guests()).toEqual([]);
      expect(plane.heartbeats.flatMap(({ drivers }) => drivers ?? []).at(-1)).toMatchObject({ available: true });
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

    it('makes nobody wait for an image that does not come, however many do', async () => {
      const { world, plane, startAgent, pass } = begin();
      const idOf = (index: number): string => `inst_${'1'.repeat(23)}${String(index).padStart(3, '0')}`;
      const [held, quick] = [200, 20];
      world.inject({ do: 'hang', step: 'pull', imageName: 'slow', times: held });
      await startAgent();
      for (let i = 0; i < held; i++) plane.put({ instanceId: idOf(i), imageName: 'slow' });
      await pass(100);
      for (let i = held; i < held + quick; i++) plane.put({ instanceId: idOf(i) });
      await pass(5000);
      const guests = world.guests(hostName);
      expect(guests.filter(({ ready }) => ready)).toHaveLength(quick);
      expect(guests.filter(({ state }) => state === 'preparing')).toHaveLength(held);
      plane.put({ instanceId: idOf(0), imageName: 'slow', want: 'absent' });
      await pass(1000);
      expect(plane.last(idOf(0))).toEqual({ state: 'absent' });
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

    it('tells what happened meanwhile as soon as the line is open again', async () => {
      const { world, plane, startAgent, pass } = begin();
      await startAgent();
      plane.put();
      await pass(5000);
      plane.setAway(true);
      world.powerOff(hostName, instanceId);
      await pass(300_000);
      plane.setAway(false);
      while (plane.lineCount === 0) await pass(100);
      await pass(100);
      expect(plane.last()).toMatchObject({ state: 'exited' });
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

    it('starts no stopped guest from its ledger alone: its room may be taken by now', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(10_000);
      await agent.stop();
      plane.setAway(true);
      const stopped = guest();
      if (stopped) Object.assign(stopped, { stopRequested: true });
      world.crash('host-1', stopped?.instanceId ?? ''); // as if stopped on request, with the ledger not yet written
      expect(guest()).toMatchObject({ state: 'stopped' });
      await startAgent();
      await pass(120_000);
      expect(guest()).toMatchObject({ state: 'stopped' });
      plane.setAway(false);
      await pass(60_000);
      expect(guest()).toMatchObject({ state: 'running' });
    });

    it('makes nothing anew from its ledger alone: what left no trace may have been removed, and its room given away', async () => {
      const { world, plane, startAgent, pass, guest } = begin();
      const agent = await startAgent();
      plane.put();
      await pass(10_000);
      await agent.stop();
      plane.setAway(true);
      const running = guest();
      if (running) world.deleteGuest(running); // as if removed, with the ledger not yet written
      await startAgent();
      await pass(120_000);
      expect(guest()).toBeUndefined();
      plane.setAway(false);
      await pass(60_000);
      expect(guest()).toMatchObject({ state: 'running' });
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
      const { plane, startAgent, pass, errors } = begin();
      plane.registerAnswer = 'Unauthenticated';
      await startAgent();
      await pass(60_000);
      expect(errors[0]).toMatchObject({
        host: hostName,
        advice: expect.stringContaining(`berth host token ${hostName}`),
      });
      plane.registerAnswer = undefined;
      await pass(60_000);
      expect(plane.heartbeats.length).toBeGreaterThan(1);
    });
  });
});
