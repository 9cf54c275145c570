// The rhythm of attempts: what a host bears when guests hang, flap or come in crowds.

import { describe, expect, it } from 'vitest';
import type { Checks } from '../../../api/resources/check.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system } from '../../../base/system.ts';
import type { GuestAccess, GuestCommand } from '../../drivers/access.ts';
import type { Driver } from '../../drivers/driver.ts';
import { GuestProber } from './guest-prober.ts';
import { Slots } from './slots.ts';
import type { KeptTally } from './tally.ts';

const turn = (): Promise<void> => new Promise((resolve) => system.afterTurn(resolve));

class Scene {
  readonly clock = createManualClock();
  readonly slots = new Slots(2);
  changes = 0;

  prober(checks: Checks, access: GuestAccess, kept?: KeptTally): GuestProber {
    return new GuestProber({
      driver: { name: 'test', access } as Driver, // what an attempt uses of it
      ...{ instanceId: 'inst_1', checks, kept, clock: this.clock, prng: seededPrng(1), slots: this.slots },
      onChange: () => (this.changes += 1),
    });
  }

  pass(ms: number): Promise<void> {
    return this.clock.advanceSettled(ms, async () => {
      for (let turns = 0; turns < 12; turns++) await turn();
    });
  }
}

async function* nothingUntil(end: Promise<unknown>): AsyncGenerator<never> {
  await end;
  yield* [];
}

const refused = (): Promise<never> => Promise.reject(new Error('refused'));
const readiness = (change: object = {}): Checks => ({ readiness: { tcp: { port: 80 }, ...change } });

describe('attempts', () => {
  it('come once in a period, from the start of the guest or after its delay', async () => {
    const scene = new Scene();
    const atMs: number[] = [];
    const reach = async (): Promise<void> => void atMs.push(scene.clock.monotonicMs());
    const beganMs = scene.clock.monotonicMs();
    scene.prober(readiness({ initialDelayMs: 2500 }), { reach });
    await scene.pass(40_000);
    expect(atMs.map((each) => each - beganMs)).toEqual([2500, 12_500, 22_500, 32_500]);
  });

  it('never overlap, however long each takes', async () => {
    const scene = new Scene();
    let [running, most, count] = [0, 0, 0];
    const reach = async (_id: string, _port: number, signal: AbortSignal): Promise<void> => {
      count += 1;
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      running -= 1;
    };
    scene.prober(readiness({ periodMs: 1000, timeoutMs: 5000 }), { reach });
    await scene.pass(21_000);
    expect([most, count]).toEqual([1, 5]);
  });

  it('of a crowd wait for each other, and their time does not run meanwhile', async () => {
    const scene = new Scene();
    let [running, most] = [0, 0];
    const reach = async (): Promise<void> => {
      most = Math.max(most, ++running);
      await new Promise<void>((resolve) => scene.clock.setTimer(900, resolve));
      running -= 1;
    };
    const probers = Array.from({ length: 6 }, () => scene.prober(readiness(), { reach }));
    await scene.pass(3500);
    expect(most).toBe(2);
    expect(probers.every(({ tally }) => tally.passing)).toBe(true);
  });

  it('end with the guest', async () => {
    const scene = new Scene();
    let count = 0;
    const prober = scene.prober(readiness({ periodMs: 1000 }), { reach: async () => void (count += 1) });
    await scene.pass(2500);
    prober.close();
    const before = count;
    await scene.pass(60_000);
    expect(count).toBe(before);
  });
});

describe('what is told', () => {
  it('of a port that flaps is one change at most for each attempt, and none below its limit', async () => {
    const scene = new Scene();
    let count = 0;
    const reach = (): Promise<void> => (++count % 2 === 0 ? refused() : Promise.resolve());
    scene.prober(readiness({ periodMs: 1000, failures: 2 }), { reach });
    await scene.pass(60_000);
    expect(count).toBeGreaterThan(50);
    expect(scene.changes).toBe(1);
  });

  it('of a port that never answers is the first verdict, and not each attempt', async () => {
    const scene = new Scene();
    scene.prober(readiness({ periodMs: 1000 }), { reach: refused });
    await scene.pass(600_000);
    expect(scene.changes).toBe(1);
  });
});

it('a command that hangs is not begun again beside itself where it cannot be ended', async () => {
  const scene = new Scene();
  const ends: (() => void)[] = [];
  const exec = async (): Promise<GuestCommand> => {
    const ended = Promise.withResolvers<{ readonly code: number }>();
    ends.push(() => ended.resolve({ code: 0 }));
    return {
      output: () => nothingUntil(ended.promise),
      ...{ write: async () => {}, endInput: () => {}, resize: async () => {}, kill: () => {}, endable: false },
      exit: ended.promise,
    };
  };
  const prober = scene.prober(
    { readiness: { exec: { command: ['sleep'] }, periodMs: 1000, timeoutMs: 500 } },
    { exec },
  );
  await scene.pass(60_000);
  expect(ends).toHaveLength(1);
  expect(prober.tally.failing?.message).toMatch(/no answer within 500 ms|earlier attempt still runs/);
  ends[0]?.();
  await scene.pass(2000);
  expect(ends).toHaveLength(2);
});

it('a dead guest is attempted no more', async () => {
  const scene = new Scene();
  let count = 0;
  const reach = (): Promise<void> => (count++, refused());
  const prober = scene.prober({ liveness: { tcp: { port: 80 }, periodMs: 1000 } }, { reach });
  await scene.pass(60_000);
  expect(count).toBe(3);
  expect(prober.tally.dead).toMatchObject({ name: 'liveness', message: expect.stringContaining('refused') });
});
