// What every event bus gets, whatever broker it is: a false one that fails, forgets and remembers as it is told.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CloudEvent } from '../../../api/news/cloud-event.ts';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import type { Decider } from '../../decide.ts';
import type { OpenBus } from './bus.ts';
import type { EventBus } from './event-bus.ts';
import { deleteEvents, positionIn, putEvents, startBus, testDecider } from './testing.ts';

let clock: ManualClock;
let decider: Decider;
let bus: EventBus | undefined;
let taken: CloudEvent[];
let last: number | undefined;
/** How the next sends end, first of all; after them they succeed. */
let ends: ('lost' | 'taken, but nothing is heard')[];

beforeEach(() => {
  clock = createManualClock();
  decider = testDecider(createMemoryStore(), clock);
  [taken, last, ends] = [[], undefined, []];
});
afterEach(() => bus?.stop());

const open: OpenBus = () =>
  Promise.resolve({
    last: () => Promise.resolve(last),
    send(events) {
      const end = ends.shift();
      if (end !== 'lost') taken.push(...events);
      return end === undefined ? Promise.resolve() : Promise.reject(new Error('the connection broke'));
    },
    close: () => Promise.resolve(),
  });
const reasons = (): readonly string[] => taken.map(({ data }) => data.reason);
const restart = async (): Promise<void> => {
  await bus?.stop();
  bus = startBus(decider, open);
};

describe('an event bus', () => {
  it('gets all events in order from its first start on', async () => {
    await putEvents(decider, ['Before']);
    decider.cache.revision = 1; // as the store's events would say
    await restart();
    await putEvents(decider, ['A', 'B', 'C']);
    await expect.poll(reasons).toEqual(['A', 'B', 'C']);
    const sequence = taken.map((event) => Number(event.sequence));
    expect(sequence).toEqual([...sequence].sort((a, b) => a - b));
    expect(bus?.lags()).toEqual([{ bus: 'test', events: 0, ageMs: 0 }]);
  });

  it('goes on after a restart, and sends nothing twice', async () => {
    await restart();
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    await bus?.stop();
    await putEvents(decider, ['B']);
    await restart();
    await expect.poll(reasons).toEqual(['A', 'B']);
  });

  it('sends again, with the same id, what it does not know to be acknowledged', async () => {
    ends = ['taken, but nothing is heard', 'lost'];
    await restart();
    await expect.poll(() => positionIn(decider)).toBe(0);
    await putEvents(decider, ['A']);
    await expect.poll(() => bus?.report()[0]?.ok).toBe(false);
    expect(bus?.report()).toEqual([
      { name: 'event bus test', ok: false, message: 'it takes no events: the connection broke; 1 events wait' },
    ]);
    expect([positionIn(decider), bus?.lags()[0]?.events]).toEqual([0, 1]);
    clock.advance(30_000);
    await expect.poll(() => ends).toEqual([]);
    await expect.poll(() => (clock.advance(30_000), reasons())).toEqual(['A', 'A']);
    expect(taken[0]?.id).toBe(taken[1]?.id);
    await expect.poll(() => bus?.report()[0]?.ok).toBe(true);
  });

  it('does not send what the bus says that it has', async () => {
    await restart();
    await expect.poll(() => positionIn(decider)).toBe(0);
    await bus?.stop();
    await putEvents(decider, ['A', 'B']);
    last = Math.min(...[...decider.cache.listCommitted('event')].map(({ revision }) => revision));
    await restart();
    await expect.poll(reasons).toEqual(['B']);
  });

  it('writes down what is acknowledged, at most every second', async () => {
    await restart();
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    expect(positionIn(decider)).toBe(0);
    clock.advance(1_000);
    await expect.poll(() => positionIn(decider)).toBe(Number(taken[0]?.sequence));
  });

  it('gets one gap event when events were deleted before they were sent', async () => {
    await restart();
    await putEvents(decider, ['A']);
    await expect.poll(reasons).toEqual(['A']);
    await bus?.stop();
    await putEvents(decider, ['B']);
    await deleteEvents(decider);
    await putEvents(decider, ['C', 'D']);
    await restart();
    await expect.poll(reasons).toEqual(['A', 'Gap', 'C', 'D']);
    expect(taken[1]).toMatchObject({ type: 'berth.v1.fleet.Gap', sequence: String(Number(taken[2]?.sequence) - 1) });
    await restart();
    await putEvents(decider, ['E']);
    await expect.poll(reasons).toEqual(['A', 'Gap', 'C', 'D', 'E']);
  });

  it('gets a gap event when they were deleted while it was away', async () => {
    ends = ['lost'];
    await restart();
    await putEvents(decider, ['A']);
    await expect.poll(() => bus?.report()[0]?.ok).toBe(false);
    await deleteEvents(decider);
    await expect.poll(() => (clock.advance(30_000), reasons())).toEqual(['Gap']);
    await putEvents(decider, ['B']);
    await expect.poll(() => (clock.advance(1_000), reasons())).toEqual(['Gap', 'B']);
  });
});
