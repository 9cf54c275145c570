// Faults that the drivers of virtual machines must survive alike, as cases in the describe of a driver's own test.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { sleep } from '../../../base/clock.ts';
import { system, systemClock } from '../../../base/system.ts';
import { followLog } from '../../access/guest-log.ts';
import type { ProcessIdentity } from '../../host/processes.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, Guest } from '../driver.ts';
import { testSpec } from '../qemu/test-host.ts';
import { keptFrom } from './ways-in/console-keeper.ts';

/** The driver under test. `driver` and `host` are those of the present case. */
interface FaultyMachine {
  /** Opens the next driver on the same guests, which `driver` returns from then on. */
  readonly open: (change?: {
    readonly silenceMsMax?: number;
    readonly consoleBytesMax?: number;
    readonly consoleBytesKept?: number;
  }) => Promise<Driver>;
  readonly driver: () => Driver;
  readonly host: () => {
    readonly directory: string;
    process(instanceId: string): Promise<ProcessIdentity | null>;
    runningCopies(instanceId: string): Promise<number>;
    traces(instanceId: string): Promise<readonly string[]>;
  };
  /** The program of an agent that creates the guest of `testSpec` and prints its steps, and its arguments. */
  readonly startAgent: () => readonly [URL, ...string[]];
  /** Resolves when the hypervisor has noticed that the guest panicked. */
  readonly untilPanicked: () => Promise<void>;
}

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
const ready = (seen?: Guest): boolean => seen?.ready === true;

export function sharedFaults(name: string, machine: FaultyMachine): void {
  agentDeaths(machine);
  consoles(machine);
  refusalsAndPanics(name, machine);
}

function agentDeaths({ open, driver, host, startAgent: agentCall }: FaultyMachine): void {
  describe('an agent that is killed', () => {
    const startAgent = (): ChildProcess => {
      const [program, ...words] = agentCall();
      return spawn(system.nodePath(), [fileURLToPath(program), ...words], {
        stdio: ['ignore', 'pipe', 'inherit'],
        detached: true,
      });
    };
    const guest = () =>
      driver()
        .guests()
        .find((each) => each.instanceId === id);
    const log = async () => new TextDecoder().decode((await driver().readLog(id, 0, 65_536)).data);
    const markAsRemoving = async (): Promise<void> => {
      const path = join(host().directory, id, 'guest.json');
      await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), removing: true }));
    };
    /** Kills the agent and all its session, as soon as it has said `word`. */
    const killAfter = async (agent: ChildProcess, word: string): Promise<void> => {
      if (agent.stdout === null) throw new Error('no output');
      const exited = once(agent, 'exit');
      for await (const line of createInterface({ input: agent.stdout })) if (line === word) break;
      system.signal(-(agent.pid ?? 0), 'SIGKILL');
      await exited;
    };

    it('leaves its guest running, and the next one adopts the same process', async () => {
      await killAfter(startAgent(), 'created');
      const before = await host().process(id);
      expect(before).not.toBeNull();
      await open();
      expect(await untilGuest(driver(), id, ready)).toMatchObject({ state: 'running' });
      await driver().create(spec, never);
      expect(await host().process(id)).toEqual(before);
      expect(await host().runningCopies(id)).toBe(1);
    });

    // Once for each word the agent says, that is, between any two of its steps.
    it.each(['preparing', 'pull', 'clone', 'seed', 'start'])(
      'after "%s" does not keep the next one from finishing',
      async (word) => {
        await killAfter(startAgent(), word);
        await open();
        await driver().create(spec, never);
        expect(guest()?.state).toBe('running');
        await untilGuest(driver(), id, ready);
        expect((await log()).match(/boot/g)).toHaveLength(1);
        await driver().remove(id);
        expect(await host().traces(id)).toEqual([]);
      },
    );

    it('in the middle of a removal is followed by one that ends it', async () => {
      await driver().create(spec, never);
      await driver().close();
      await markAsRemoving();
      await open();
      await driver().create(spec, never);
      const guests = await readdir(host().directory);
      expect(guests).toEqual([id]);
      await driver().remove(id);
      expect(await host().traces(id)).toEqual([]);
    });
  });
}

function consoles({ open, driver, host }: FaultyMachine): void {
  const guest = () =>
    driver()
      .guests()
      .find((each) => each.instanceId === id);

  it('keeps the console of a talkative guest bounded while no agent runs', async () => {
    await driver().close();
    await open({ consoleBytesMax: 64 * 1024, consoleBytesKept: 32 * 1024 });
    await driver().create({ ...spec, imageName: 'chatterbox' }, never);
    await driver().close();
    const path = join(host().directory, id, 'console.log');
    const { size: sizeBefore } = await stat(path);
    while ((await keptFrom(path)) < sizeBefore + 64 * 1024) await sleep(systemClock, 5);
    await open();
    await driver().stop(id, 0);
    const begins = async (): Promise<number> => (await driver().readLog(id, 0, 100)).offset;
    while ((await begins()) !== (await keptFrom(path))) await sleep(systemClock, 5); // its keeper ends a moment later
    const { offset, size } = await driver().readLog(id, 0, 100);
    expect((await stat(path)).blocks * 512).toBeLessThan(size);
    const lineBytes = 'chatter '.length * 15 + 1;
    const line = Math.ceil(offset / lineBytes) * lineBytes;
    const chunk = await driver().readLog(id, line, lineBytes);
    expect(new TextDecoder().decode(chunk.data)).toBe(`${'chatter '.repeat(15)}\n`);
  });

  it('keeps the console of a talkative guest bounded, and its offsets true', async () => {
    await driver().close();
    await open({ consoleBytesMax: 256 * 1024, consoleBytesKept: 128 * 1024 });
    await driver().create({ ...spec, imageName: 'chatterbox' }, never);
    let first = await driver().readLog(id, 0, 100);
    while (first.offset === 0) {
      await new Promise((resolve) => setImmediate(resolve));
      first = await driver().readLog(id, 0, 100);
    }
    await driver().stop(id, 0);
    const { offset, size } = await driver().readLog(id, 0, 100);
    expect(size - offset).toBeLessThan(2 * 256 * 1024);
    const lineBytes = 'chatter '.length * 15 + 1;
    const line = Math.ceil(offset / lineBytes) * lineBytes; // where the first whole line begins, if no byte was miscounted
    const chunk = await driver().readLog(id, line, lineBytes);
    expect(new TextDecoder().decode(chunk.data)).toBe(`${'chatter '.repeat(15)}\n`);
    const file = await stat(join(host().directory, id, 'console.log'));
    expect(file.blocks * 512).toBeLessThan(file.size);
    await driver().close();
    await open();
    expect((await driver().readLog(id, 0, 10)).offset).toBe(offset);
  });

  it('says that a guest has shown no sign of life, also to the next agent, and no more once it shows one', async () => {
    await open({ silenceMsMax: 200 });
    const dead = { ...spec, instanceId: id.replace(/1$/, '3'), imageName: 'dead' };
    const isSilent = (seen?: Guest): boolean => seen?.reason?.code === 'NoSignOfLife';
    await driver().create(dead, never);
    expect(await untilGuest(driver(), dead.instanceId, isSilent)).toMatchObject({ state: 'running', ready: false });
    await driver().create({ ...spec, imageName: 'mute' }, never);
    expect(await untilGuest(driver(), id, isSilent)).toMatchObject({
      state: 'running',
      ready: false,
      reason: { message: expect.stringContaining('nothing on its console, no address, no guest agent') },
    });
    await driver().close();
    await open({ silenceMsMax: 200 });
    await untilGuest(driver(), id, isSilent);
    const keyboard = await driver().access?.typeInto?.(id);
    await keyboard?.type(Buffer.from('hello'));
    await untilGuest(driver(), id, (seen) => seen?.reason === undefined);
    keyboard?.close();
    await driver().suspension?.suspend(id);
    await driver().stop(id, 0);
    expect(guest()).toMatchObject({ state: 'stopped' });
  });

  it('answers at the consoles of other guests while one floods its own, and somebody reads along', async () => {
    const flooding = { ...spec, instanceId: spec.instanceId.replace(/1$/, '2') };
    await driver().create({ ...flooding, imageName: 'chatterbox' }, never);
    await driver().create({ ...spec, imageName: 'mute' }, never);
    const over = new AbortController();
    const clock = systemClock;
    let flood = 0;
    const reading = [1, 2, 3].map(async () => {
      const range = { instanceId: flooding.instanceId, offset: 0, follow: true };
      for await (const { data } of followLog({ driver: driver(), clock, range }, over.signal)) flood += data.length;
    });
    const echo = followLog(
      { driver: driver(), clock, range: { instanceId: id, offset: 0, follow: true } },
      over.signal,
    );
    const keyboard = await driver().access?.typeInto?.(id);
    let heard = '';
    for (const word of ['one', 'two', 'three', 'four']) {
      const before = flood;
      await keyboard?.type(Buffer.from(word));
      while (!heard.endsWith(word))
        heard += Buffer.from((await echo.next()).value?.data ?? expect.unreachable('the guest has ended')).toString();
      while (flood === before) await new Promise((resolve) => setImmediate(resolve)); // it goes on meanwhile
    }
    expect(heard).toBe('onetwothreefour');
    keyboard?.close();
    over.abort();
    await Promise.all(reading);
    await echo.return(undefined);
  });
}

function refusalsAndPanics(name: string, machine: FaultyMachine): void {
  const { open, driver, host } = machine;

  it(`passes on what ${name} says when it refuses`, async () => {
    await expect(driver().create({ ...spec, cpus: 1000 }, never)).rejects.toMatchObject({
      code: 'HypervisorFailed',
      message: expect.stringMatching(/CPUs/i),
    });
    await driver().remove(id);
    expect(await host().traces(id)).toEqual([]);
  });

  it('tells that a guest panicked while no agent was there', async () => {
    await driver().create({ ...spec, imageName: 'panicking' }, never);
    await driver().close();
    await machine.untilPanicked();
    await open();
    expect(await untilGuest(driver(), id, (seen) => seen?.state === 'failed')).toMatchObject({
      reason: { code: 'GuestPanicked' },
    });
  });
}
