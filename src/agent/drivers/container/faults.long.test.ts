import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Type } from 'typebox';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { sleep } from '../../../base/clock.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { system, systemClock } from '../../../base/system.ts';
import { followLog } from '../../access/guest-log.ts';
import { atEveryStep } from '../../test-every-step.ts';
import type { Life } from '../../test-life.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, GuestContainer, GuestSpec } from '../driver.ts';
import { containerTalk } from '../test-engine-talks.ts';
import { containerName, labels } from './container-config.ts';
import { EngineClient } from './engine-client.ts';
import { createEngineHttp } from './engine-http.ts';
import type { ContainerDriverOptions } from './driver.ts';
import { type ContainerTestHost, type ContainerTestHosts, startContainerTestHosts } from './test-host.ts';
import { whyNoExecution, whyNoPodman } from './test-podman.ts';

const why = whyNoPodman();
const whyNot = whyNoExecution();
const never = new AbortController().signal;

describe.skipIf(why !== undefined)(`containers on podman${why === undefined ? '' : ` (${why})`}`, () => {
  let hosts: ContainerTestHosts;
  let host: ContainerTestHost;
  let driver: Driver;
  let opened: Driver[];

  beforeAll(async () => {
    hosts = await startContainerTestHosts();
  });
  afterAll(() => hosts.stop());
  beforeEach(async () => {
    host = await hosts.make();
    opened = [];
    await open();
  });
  afterEach(async () => {
    for (const guest of driver.guests()) await driver.remove(guest.instanceId);
    for (const each of opened) await each.close();
    await host.dispose();
  });

  const open = async (change: Partial<ContainerDriverOptions> = {}): Promise<void> => {
    driver = host.open(change);
    opened.push(driver);
    await driver.recover();
  };
  const guestOf = ({ instanceId }: GuestSpec) => driver.guests().find((guest) => guest.instanceId === instanceId);
  const container = (name: string, change: Partial<GuestContainer> = {}): GuestContainer => ({
    name,
    imageName: 'obedient',
    image: host.imageSpec('obedient'),
    env: {},
    ...change,
  });
  const shell = (name: string, script: string, change: Partial<GuestContainer> = {}): GuestContainer =>
    container(name, { command: ['/bin/sh', '-c'], args: [script], ...change });
  /** Until it ends in `end`, or the guest does. */
  const logUpTo = async ({ instanceId }: GuestSpec, end: string): Promise<string> => {
    let text = '';
    const range = { instanceId, offset: 0, follow: true };
    for await (const { data } of followLog({ driver, clock: systemClock, range }, never)) {
      text += new TextDecoder().decode(data);
      if (text.includes(end)) break;
    }
    return text;
  };
  const inspect = async ({ instanceId }: GuestSpec, name = 'main') => {
    const found = await host.podman.engine.inspect(containerName(instanceId, name));
    if (found === null) throw new Error(`there is no container ${name}`);
    return found;
  };
  const run = async (spec: GuestSpec, command: readonly string[], name = 'main'): Promise<string> => {
    const call = { command, tty: false, stdin: true, env: {} };
    const execution = await host.podman.engine.exec(containerName(spec.instanceId, name), call);
    execution.stream.end();
    execution.errors.resume();
    let text = '';
    for await (const piece of execution.stream) text += String(piece);
    return text;
  };

  describe('an engine that goes away', () => {
    it('is said to be away before it was ever there, and found when it comes', async () => {
      await host.podman.kill();
      const late = host.open();
      opened.push(late);
      expect(await late.fingerprint()).toMatchObject({
        available: false,
        reason: expect.stringContaining('cannot reach the container engine'),
      });
      await expect(late.recover()).rejects.toMatchObject({ code: 'ContainerEngineFailed' });
      await host.podman.start();
      await late.recover();
      expect(await late.fingerprint()).toMatchObject({
        available: true,
        version: expect.stringMatching(/^podman 4\./),
      });
    });

    it('leaves guests alone, and what happened meanwhile is seen when it is back', async () => {
      const [staying, dying] = [host.spec('obedient'), host.spec('obedient')];
      for (const spec of [staying, dying]) {
        await driver.create(spec, never);
        await untilGuest(driver, spec.instanceId, (seen) => seen?.ready === true);
      }
      const before = await inspect(staying);
      const victim = await pidOf(dying);
      await host.podman.kill();
      process.kill(victim, 'SIGKILL');
      expect(guestOf(staying)?.state).toBe('running');
      await host.podman.start();
      const dead = await untilGuest(driver, dying.instanceId, (seen) => seen?.state === 'failed');
      expect(dead?.reason).toMatchObject({
        code: 'ContainerExited',
        message: expect.stringContaining('exit code 137'),
      });
      expect((await inspect(staying)).State.StartedAt).toBe(before.State.StartedAt);
      expect(guestOf(staying)).toMatchObject({ state: 'running', ready: true });
      await driver.stop(staying.instanceId, 60_000);
      expect(guestOf(staying)?.state).toBe('stopped');
    });

    /** Of the kernel: the first process of the namespace that bears the container's id in its cgroup. */
    const pidOf = async (spec: GuestSpec): Promise<number> => {
      const { Id } = await inspect(spec);
      for (const entry of await readdir('/proc')) {
        if (!/^\d+$/.test(entry)) continue;
        const group = await readFile(`/proc/${entry}/cgroup`, 'utf8').catch(() => '');
        const status = await readFile(`/proc/${entry}/status`, 'utf8').catch(() => '');
        if (group.includes(Id) && !group.includes('conmon') && /^NSpid:\s+\d+\s+1$/m.test(status)) return Number(entry);
      }
      throw new Error(`no process of ${Id}`);
    };
  });

  describe('an image that does not come', () => {
    it('is asked for once, and no guest of another image waits for it', async () => {
      const given = new AbortController();
      const held = Array.from({ length: 8 }, () => host.spec('endless'));
      const waiting = Promise.allSettled(held.map((spec) => driver.create(spec, given.signal)));
      for (const { instanceId } of held)
        await untilGuest(driver, instanceId, (seen) => seen?.progress?.startsWith('pulling') === true);
      const others = Array.from({ length: 6 }, () => host.spec('obedient'));
      await Promise.all(others.map((spec) => driver.create(spec, never)));
      expect(others.map((spec) => guestOf(spec)?.state)).toEqual(others.map(() => 'running'));
      expect(held.map((spec) => guestOf(spec)?.state)).toEqual(held.map(() => 'preparing'));
      given.abort();
      for (const end of await waiting) expect(end).toMatchObject({ status: 'rejected', reason: { code: 'Aborted' } });
      expect(host.registry.requests.filter((asked) => asked.includes('/endless/'))).toHaveLength(1);
    });
  });

  describe('a container that ends badly', () => {
    it('is a failed guest, with its name, its code and its last words', async () => {
      const spec = host.spec('failing');
      await driver.create(spec, never);
      const guest = await untilGuest(driver, spec.instanceId, (seen) => seen?.state === 'failed');
      expect(guest?.reason).toEqual({
        code: 'ContainerExited',
        message: 'container "main" ended with exit code 3; its log may say why',
      });
      expect(await logUpTo(spec, 'oh no\n')).toBe('oh no\n');
    });

    it('takes the others with it', async () => {
      const spec = host.spec('obedient', {
        containers: [shell('steady', 'exec sleep 1000'), shell('shaky', 'sleep 1; exit 7'), shell('done', 'exit 0')],
      });
      await driver.create(spec, never);
      const guest = await untilGuest(driver, spec.instanceId, (seen) => seen?.state === 'failed');
      expect(guest?.reason?.message).toContain('container "shaky" ended with exit code 7');
      expect(await host.runningCopies(spec.instanceId)).toBe(0);
    });

    it('is told from others when it used up its memory', async () => {
      const spec = host.spec('obedient', {
        memoryMiB: 20,
        containers: [shell('greedy', 'a=x; while true; do a=$a$a; done')],
      });
      await driver.create(spec, never);
      const guest = await untilGuest(driver, spec.instanceId, (seen) => seen?.state === 'failed');
      expect(guest?.reason).toMatchObject({
        code: 'ContainerExited',
        message: expect.stringContaining('20 MiB of memory'),
      });
    });
  });

  describe('several containers', () => {
    it('reach each other on localhost, have one log with names, and end as one', async () => {
      const spec = host.spec('web', {
        containers: [
          container('web', { imageName: 'web', image: host.imageSpec('web') }),
          shell(
            'client',
            'until wget -q -O - http://127.0.0.1/; do sleep 0.1; done; sleep 1000 & trap "exit 0" TERM; wait',
          ),
        ],
      });
      await driver.create(spec, never);
      await untilGuest(driver, spec.instanceId, (seen) => seen?.ready === true);
      expect(await logUpTo(spec, 'client: hello\n')).toContain('client: hello\n');
      expect(await host.runningCopies(spec.instanceId)).toBe(2);
      await driver.stop(spec.instanceId, 0);
      expect(await host.runningCopies(spec.instanceId)).toBe(0);
      await driver.start(spec.instanceId);
      await untilGuest(driver, spec.instanceId, (seen) => seen?.state === 'running' && seen.ready);
      expect(await host.runningCopies(spec.instanceId)).toBe(2);
    });

    it('are over when the last of them is', async () => {
      const spec = host.spec('obedient', {
        containers: [shell('long', 'sleep 2; echo late'), shell('short', 'echo early')],
      });
      await driver.create(spec, never);
      const guest = await untilGuest(
        driver,
        spec.instanceId,
        (seen) => seen?.state !== 'running' && seen?.state !== 'preparing',
      );
      expect(guest).toMatchObject({ state: 'exited', reason: { code: 'ContainersEnded' } });
      expect((await logUpTo(spec, 'late\n')).split('\n').toSorted()).toEqual(['', 'long: late', 'short: early']);
    });
  });

  describe('a suspended guest', () => {
    const isPaused = async (spec: GuestSpec, name: string) => (await inspect(spec, name)).State.Status === 'paused';
    const until = async (what: () => Promise<boolean>): Promise<void> => {
      while (!(await what())) await sleep(systemClock, 20);
    };

    it('stands still as a whole or not at all, whatever is done to one of its containers', async () => {
      const spec = host.spec('obedient', {
        containers: [shell('one', 'exec sleep 1000'), shell('two', 'exec sleep 1000')],
      });
      const { instanceId } = spec;
      const [one, two] = ['one', 'two'].map((name) => containerName(instanceId, name));
      const { engine } = host.podman;
      await driver.create(spec, never);
      await untilGuest(driver, instanceId, (seen) => seen?.ready === true);
      await engine.pause(two ?? '');
      await until(async () => !(await isPaused(spec, 'two')));
      expect(guestOf(spec)?.state).toBe('running');
      await driver.suspension?.suspend(instanceId);
      expect(await Promise.all([isPaused(spec, 'one'), isPaused(spec, 'two')])).toEqual([true, true]);
      await engine.unpause(one ?? '');
      await until(() => isPaused(spec, 'one'));
      expect(guestOf(spec)?.state).toBe('suspended');
      // The engine tells of each of them while the other is still to follow.
      for (let round = 0; round < 20; round++) {
        await driver.suspension?.resume(instanceId);
        expect(await Promise.all([isPaused(spec, 'one'), isPaused(spec, 'two')])).toEqual([false, false]);
        await driver.suspension?.suspend(instanceId);
        expect(await Promise.all([isPaused(spec, 'one'), isPaused(spec, 'two')])).toEqual([true, true]);
      }
    });

    it('is found again when the engine was away', async () => {
      const spec = host.spec('obedient');
      const { instanceId } = spec;
      await driver.create(spec, never);
      await untilGuest(driver, instanceId, (seen) => seen?.ready === true);
      await driver.suspension?.suspend(instanceId);
      await host.podman.kill();
      await expect(driver.suspension?.resume(instanceId)).rejects.toMatchObject({ code: 'ContainerEngineFailed' });
      expect(guestOf(spec)?.state).toBe('suspended');
      await host.podman.start();
      await driver.suspension?.resume(instanceId);
      expect(guestOf(spec)).toMatchObject({ state: 'running', ready: true });
      expect(await isPaused(spec, 'main')).toBe(false);
    });
  });

  describe('the log', () => {
    it('goes on after a restart of the agent, no line twice and none lost', async () => {
      const lines = 400;
      const spec = host.spec('obedient', {
        containers: [shell('main', `i=0; while [ $i -lt ${lines} ]; do i=$((i+1)); echo line $i; sleep 0.01; done`)],
      });
      await driver.create(spec, never);
      for (const seen of [20, 100, 200, 300]) {
        await logUpTo(spec, `line ${seen}\n`);
        await driver.close();
        await open();
      }
      await untilGuest(driver, spec.instanceId, (seen) => seen?.state === 'exited');
      const text = await logUpTo(spec, `line ${lines}\n`);
      expect(text).toBe(Array.from({ length: lines }, (_, i) => `line ${i + 1}\n`).join(''));
    });

    it('of a container that never ends writing stays bounded', async () => {
      await driver.close();
      const limits = { consoleBytesMax: 512 * 1024, consoleBytesKept: 256 * 1024 };
      await open(limits);
      const spec = host.spec('chatterbox');
      await driver.create(spec, never);
      let start = 0;
      while (start < 1024 * 1024) {
        const { offset, size } = await driver.readLog(spec.instanceId, 0, 1);
        start = offset;
        expect(size - offset).toBeLessThan(64 * 1024 * 1024);
        await new Promise((resolve) => systemClock.setTimer(50, () => resolve(undefined)));
      }
      await driver.stop(spec.instanceId, 0);
      const { offset, size } = await driver.readLog(spec.instanceId, 0, 1);
      expect(offset).toBeGreaterThan(0);
      const { blocks } = await stat(join(host.directory, spec.instanceId, 'console.log'));
      expect(blocks * 512).toBeLessThan(size);
    });
  });

  describe('what is not ours', () => {
    it('is left alone, also under the name that a guest would have', async () => {
      const spec = host.spec('obedient');
      const { engine } = host.podman;
      const name = containerName(spec.instanceId, 'main');
      const id = await engine.create(name, { Image: 'localhost/obedient:1' });
      await expect(driver.create(spec, never)).rejects.toMatchObject({
        code: 'ContainerEngineFailed',
        message: expect.stringContaining(`there is a container "${name}" that is not this agent's`),
      });
      await driver.remove(spec.instanceId);
      expect((await engine.inspect(name))?.Id).toBe(id);
      await engine.remove(id);
      await driver.create(spec, never);
      expect(await host.runningCopies(spec.instanceId)).toBe(1);
    });

    it('of another agent on the same engine is neither seen nor removed', async () => {
      const other = await hosts.make();
      const theirs = other.open();
      await theirs.recover();
      const spec = other.spec('obedient');
      await theirs.create(spec, never);
      await driver.close();
      await open();
      expect(driver.guests()).toEqual([]);
      await driver.remove(spec.instanceId);
      expect(await other.runningCopies(spec.instanceId)).toBe(1);
      await theirs.remove(spec.instanceId);
      await theirs.close();
      await other.dispose();
    });

    it('is shown as damaged when it is ours and nothing is known of it', async () => {
      const spec = host.spec('obedient');
      await driver.create(spec, never);
      await driver.close();
      await rm(join(host.directory, spec.instanceId), { recursive: true });
      await open();
      expect(guestOf(spec)).toMatchObject({ state: 'running', damaged: true });
      expect(await host.runningCopies(spec.instanceId)).toBe(1);
      await driver.remove(spec.instanceId);
      expect(await host.traces(spec.instanceId)).toEqual([]);
    });
  });

  describe('a container', () => {
    it('is not started on a port that another program has taken meanwhile', async () => {
      const spec = host.spec('web', { ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }] });
      await driver.create(spec, never);
      const port = guestOf(spec)?.ports[0]?.hostPort ?? 0;
      await driver.stop(spec.instanceId, 0);
      const thief = createServer();
      await new Promise<void>((resolve) => thief.listen({ port, host: '127.0.0.1' }, resolve));
      await expect(driver.start(spec.instanceId)).rejects.toMatchObject({
        code: 'PortInUse',
        message: expect.stringContaining(String(port)),
      });
      await new Promise((resolve) => thief.close(resolve));
      await driver.start(spec.instanceId);
      expect(guestOf(spec)).toMatchObject({ state: 'running', ports: [{ hostPort: port }] });
    });
  });

  describe.skipIf(whyNot !== undefined)(
    `a container that is entered${whyNot === undefined ? '' : ` (${whyNot})`}`,
    () => {
      it('has the limits, the environment and the hostname that were asked for, and no more rights than it needs', async () => {
        const spec = host.spec('obedient', {
          cpus: 2,
          memoryMiB: 96,
          hostname: 'shop',
          containers: [
            container('main', { cpus: 0.5, memoryMiB: 48, env: { SECRET: 'very secret', EMPTY: '' } }),
            container('other'),
          ],
        });
        await driver.create(spec, never);
        expect(await run(spec, ['/bin/env'])).toMatch(/^SECRET=very secret$/m);
        expect(await run(spec, ['/bin/env'])).toMatch(/^EMPTY=$/m);
        expect(await run(spec, ['/bin/cat', '/proc/sys/kernel/hostname'])).toBe('shop\n');
        const status = await run(spec, ['/bin/cat', '/proc/1/status']);
        expect(status).toMatch(/^NoNewPrivs:\t1$/m);
        expect(status).toMatch(/^Seccomp:\t2$/m);
        const capabilities = Number.parseInt(/^CapBnd:\t([0-9a-f]+)$/m.exec(status)?.[1] ?? 'ffffffff', 16);
        // Of capabilities(7): NET_RAW 13, SYS_MODULE 16, SYS_ADMIN 21, MKNOD 27, AUDIT_WRITE 29.
        for (const bit of [13, 16, 21, 27, 29]) expect(Math.floor(capabilities / 2 ** bit) % 2).toBe(0);
        expect(await limitsOf(spec, 'main')).toEqual({ NanoCpus: 5e8, Memory: 48 * 2 ** 20, MemorySwap: 48 * 2 ** 20 });
        expect(await limitsOf(spec, 'other')).toEqual({
          NanoCpus: 2e9,
          Memory: 96 * 2 ** 20,
          MemorySwap: 96 * 2 ** 20,
        });
        expect(await readFile(join(host.directory, spec.instanceId, 'guest.json'), 'utf8')).not.toContain(
          'very secret',
        );
      });

      it('is ready when its health check has passed, and not before', async () => {
        const spec = host.spec('healthy-later');
        await driver.create(spec, never);
        expect(guestOf(spec)).toMatchObject({ state: 'running', ready: false });
        await untilGuest(driver, spec.instanceId, (seen) => seen?.ready === true);
        expect(await run(spec, ['/bin/cat', '/tmp/well'])).toBe('well\n');
      });

      it('runs one program more when asked to, with its input, its two outputs and its code', async () => {
        const spec = host.spec('obedient');
        await driver.create(spec, never);
        const script = 'read a; echo "got $a in $PLACE"; echo oops >&2; exit 5';
        const call = { command: ['/bin/sh', '-c', script], tty: false, stdin: true, env: { PLACE: 'here' } };
        const execution = await host.podman.engine.exec(containerName(spec.instanceId, 'main'), call);
        execution.stream.end('input\n');
        const [out, errors] = await Promise.all([textOf(execution.stream), textOf(execution.errors)]);
        expect({ out, errors }).toEqual({ out: 'got input in here\n', errors: 'oops\n' });
        expect(await execution.exitCode()).toBe(5);
      });

      it('tells the code of a program that closed its outputs, however long it lives on', async () => {
        const spec = host.spec('obedient');
        await driver.create(spec, never);
        const clock = createManualClock();
        const engine = new EngineClient({ socketPath: () => Promise.resolve(host.podman.socketPath), clock });
        const call = {
          command: ['/bin/sh', '-c', 'exec >&- 2>&-; sleep 2; exit 7'],
          tty: false,
          stdin: false,
          env: {},
        };
        const execution = await engine.exec(containerName(spec.instanceId, 'main'), call);
        await Promise.all([textOf(execution.stream), textOf(execution.errors)]);
        let over = false;
        const ended = execution.exitCode().finally(() => (over = true));
        while (!over) {
          clock.advance(60_000);
          await system.turn();
        }
        expect(await ended).toBe(7);
      });

      it('gives a terminal of the asked-for size', async () => {
        const spec = host.spec('obedient');
        await driver.create(spec, never);
        const call = { command: ['/bin/sh', '-c', 'read a; stty size'], tty: true, stdin: true, env: {} };
        const execution = await host.podman.engine.exec(containerName(spec.instanceId, 'main'), call);
        await execution.resize({ columns: 132, rows: 43 });
        execution.stream.write('go\n');
        expect(await textOf(execution.stream)).toContain('43 132');
        expect(await execution.exitCode()).toBe(0);
      });
    },
  );

  describe('an agent that dies', () => {
    /** What is asked for in the life of one guest, in this order. */
    const wishes = ['create', 'stop', 'start', 'remove'] as const;
    /** All but what the engine is asked for: the code of all drivers, tried with QEMU. */
    const alike = /^(?!ask for )/;

    const carryOut = async (doing: Driver, wish: (typeof wishes)[number], spec: GuestSpec): Promise<void> => {
      if (wish === 'create') await doing.create(spec, never);
      if (wish === 'stop') await doing.stop(spec.instanceId, 0);
      if (wish === 'start') await doing.start(spec.instanceId);
      if (wish === 'remove') await doing.remove(spec.instanceId);
    };

    const attempt = async (own: ContainerTestHost, life: Life): Promise<void> => {
      const spec = own.spec('obedient', {
        containers: [container('one'), container('two')],
        ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }],
      });
      const { instanceId } = spec;
      let wish = 'create' as (typeof wishes)[number];
      await life.live(async () => {
        const doomed = own.open({ clock: life.clock });
        await doomed.recover();
        for (wish of wishes) await carryOut(doomed, wish, spec);
      });
      await life.kill();
      const startedAt = (): Promise<(string | undefined)[]> =>
        Promise.all(
          ['one', 'two'].map(async (name) => {
            const state = (await own.podman.engine.inspect(containerName(instanceId, name)))?.State;
            return state?.Status === 'running' ? state.StartedAt : undefined;
          }),
        );
      const before = await startedAt();
      const next = own.open();
      try {
        await next.recover();
        await carryOut(next, wish, spec);
        if (wish === 'create' || wish === 'start') {
          await untilGuest(next, instanceId, (seen) => seen?.ready === true);
          expect(next.guests()).toMatchObject([{ instanceId, state: 'running' }]);
          expect(await own.runningCopies(instanceId)).toBe(2);
          if (!before.includes(undefined)) expect(await startedAt()).toEqual(before);
        } else expect(await own.runningCopies(instanceId)).toBe(0);
        expect(await own.podman.engine.list(`${labels.instance}=${instanceId}`)).toHaveLength(
          wish === 'remove' ? 0 : 2,
        );
        await next.remove(instanceId);
        expect(next.guests()).toEqual([]);
        expect(await own.traces(instanceId)).toEqual([]);
      } finally {
        await next.close();
      }
    };

    it('at any step of what it does to a guest is followed by one that finishes it, with one guest and nothing left over', async () => {
      const steps = await atEveryStep(
        async (life) => {
          const own = await hosts.make();
          await attempt(own, life);
          await own.dispose();
        },
        { talks: [containerTalk], atOnce: 2, alike },
      );
      const asked = steps.filter((name) => name.startsWith('ask for '));
      expect(asked.length).toBeGreaterThanOrEqual(12); // of two containers each: create, start, kill, start, kill, remove
    }, 600_000);
  });

  async function limitsOf({ instanceId }: GuestSpec, name: string): Promise<unknown> {
    const limits = Type.Object({ NanoCpus: Type.Number(), Memory: Type.Number(), MemorySwap: Type.Number() });
    const http = createEngineHttp({
      socketPath: () => Promise.resolve(host.podman.socketPath),
      clock: systemClock,
      timeoutMs: 10_000,
      version: '',
    });
    const path = `/containers/${containerName(instanceId, name)}/json`;
    const { HostConfig } = await http.json(Type.Object({ HostConfig: limits }), { method: 'GET', path });
    return { NanoCpus: HostConfig.NanoCpus, Memory: HostConfig.Memory, MemorySwap: HostConfig.MemorySwap };
  }
});

async function textOf(stream: AsyncIterable<unknown>): Promise<string> {
  let text = '';
  for await (const piece of stream) text += String(piece);
  return text;
}
