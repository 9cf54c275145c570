import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { awaitAtMost, StartStopped, stoppableStart, throwIfStopped } from './stoppable-start.ts';

function closable() {
  let closed = 0;
  return { close: async () => void closed++, closed: () => closed };
}

describe('a start that can be stopped', () => {
  it('brings what it starts, which is left open', async () => {
    const started = closable();
    const stop = new AbortController();
    const clock = createManualClock();
    expect(await stoppableStart(async () => started, { signal: stop.signal, clock })).toBe(started);
    stop.abort();
    expect(started.closed()).toBe(0);
  });

  it('fails as the start does', async () => {
    const { signal } = new AbortController();
    const failing = () => Promise.reject(new Error('port taken'));
    await expect(stoppableStart(failing, { signal, clock: createManualClock() })).rejects.toThrow('port taken');
  });

  it('does not begin once it was stopped', async () => {
    let begun = false;
    const start = async () => ((begun = true), closable());
    const stopped = stoppableStart(start, { signal: AbortSignal.abort(), clock: createManualClock() });
    await expect(stopped).rejects.toBeInstanceOf(StartStopped);
    expect(begun).toBe(false);
  });

  it('waits for a start that looks at the signal, so that all is closed when it ends', async () => {
    const stop = new AbortController();
    const step = Promise.withResolvers<void>();
    let tidied = false;
    const start = async (): Promise<ReturnType<typeof closable>> => {
      await step.promise;
      try {
        throwIfStopped(stop.signal);
        return closable();
      } finally {
        tidied = true;
      }
    };
    const starting = stoppableStart(start, { signal: stop.signal, clock: createManualClock() });
    stop.abort();
    step.resolve();
    await expect(starting).rejects.toBeInstanceOf(StartStopped);
    expect(tidied).toBe(true);
  });

  it('leaves a start behind that does not end, and closes what it brings later', async () => {
    const stop = new AbortController();
    const clock = createManualClock();
    const late = Promise.withResolvers<ReturnType<typeof closable>>();
    const stopped = expect(stoppableStart(() => late.promise, { signal: stop.signal, clock })).rejects.toBeInstanceOf(
      StartStopped,
    );
    stop.abort();
    await expect.poll(clock.nextDueMs).toBe(1_000);
    clock.advance(1_000);
    await stopped;
    const store = closable();
    late.resolve(store);
    await expect.poll(store.closed).toBe(1);
  });
});

describe('a wait with an end', () => {
  it.each([
    ['as the work ends', 'resolves', async () => undefined, 0],
    ['as the work fails', 'rejects', () => Promise.reject(new Error('no')), 0],
    ['after the grace, though the work goes on', 'resolves', () => new Promise<void>(() => {}), 1_000],
  ])('ends %s', async (_, how, work, passesMs) => {
    const clock = createManualClock();
    const waiting = awaitAtMost(work(), { graceMs: 1_000, clock });
    clock.advance(passesMs);
    if (how === 'rejects') await expect(waiting).rejects.toThrow('no');
    else await waiting;
    expect(clock.nextDueMs()).toBeUndefined();
  });
});
