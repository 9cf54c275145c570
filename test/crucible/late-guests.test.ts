// Changes of guests that are told late: none is lost, none comes before its time, each is as it was.

import { expect, it } from 'vitest';
import { createFakeWorld } from '../../src/agent/drivers/fake/world.ts';
import { createManualClock } from '../../src/base/manual-clock.ts';
import { LateGuests } from './late-guests.ts';

function lateWorld() {
  const clock = createManualClock();
  const world = createFakeWorld({ clock });
  let looks = 0;
  const ticking = { ...clock, nowMs: () => clock.nowMs() + looks++ }; // as that of the machine, it goes on meanwhile
  const late = new LateGuests({ world, hosts: ['h1'], clock: ticking });
  const pass = async (ms: number): Promise<void> => clock.advance(ms);
  const told = (beforeMs: number): string[] => {
    const lines: string[] = [];
    late.tell(
      ({ monotonicMs }) => monotonicMs < beforeMs,
      (host, instanceId) => {
        const guest = late.world.guest(host, instanceId);
        lines.push(`${instanceId} ${guest ? guest.state : 'gone'} ${(late.changedAtMs ?? 0) - begunMs}`);
      },
    );
    return lines;
  };
  const begunMs = clock.nowMs();
  const add = (instanceId: string) =>
    world.addGuest({
      ...{ host: 'h1', instanceId, incarnation: 1, imageName: 'tiny', state: 'preparing' },
      ...{ running: false, created: false, stopRequested: false, ready: false, boots: 0, ports: [], phases: [] },
      console: '',
    });
  return { pass, world, late, told, add, sinceMs: clock.monotonicMs() };
}

it('tells of each change in its order, as the guest was then', async () => {
  const { pass, world, told, add } = lateWorld();
  const guest = add('a');
  await pass(10);
  world.startGuest(guest);
  await pass(10);
  world.endGuest(guest, 'killed');
  expect(told(Number.POSITIVE_INFINITY)).toEqual(['a preparing 0', 'a running 11', 'a failed 22']);
  expect(told(Number.POSITIVE_INFINITY)).toEqual([]);
});

it('tells of nothing before its time', async () => {
  const { pass, late, told, add, sinceMs } = lateWorld();
  add('a');
  await pass(10);
  add('b');
  expect(told(sinceMs)).toEqual([]);
  expect(late.world.guests()).toEqual([]);
  expect(told(sinceMs + 10)).toEqual(['a preparing 0']);
  expect(late.world.guest('h1', 'b')).toBeUndefined();
  expect(told(sinceMs + 11)).toEqual(['b preparing 11']);
  expect(late.world.guests('h1')).toHaveLength(2);
  expect(late.changedAtMs).toBeUndefined();
});

it('loses none that came and went, and ends a guest in the moment in which it is taken away', async () => {
  const { pass, world, told, add } = lateWorld();
  const guest = add('a');
  world.startGuest(guest);
  await pass(10);
  world.deleteGuest(guest);
  expect(told(Number.POSITIVE_INFINITY)).toEqual(['a preparing 0', 'a running 0', 'a failed 11', 'a gone 11']);
});
