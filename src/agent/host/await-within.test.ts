import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { awaitWithin } from './await-within.ts';

describe('awaiting within a time', () => {
  const start = (call: (signal: AbortSignal) => Promise<string>) => {
    const clock = createManualClock();
    const stop = new AbortController();
    const result = awaitWithin({ clock, timeoutMs: 100, signal: stop.signal, what: 'asking' }, call);
    return { clock, stop, result };
  };
  const never = (): Promise<string> => new Promise(() => {});

  it('gives what the call gives, and leaves no timer behind', async () => {
    const { clock, result } = start(async () => 'answer');
    expect(await result).toBe('answer');
    expect(clock.nextDueMs()).toBeUndefined();
  });

  it('throws what the call throws', async () => {
    const { result } = start(async () => {
      throw new Error('broken');
    });
    await expect(result).rejects.toThrow('broken');
  });

  it('gives up on a call that heeds nothing, after the time', async () => {
    const { clock, result } = start(never);
    clock.advance(100);
    await expect(result).rejects.toMatchObject({ code: 'Unavailable', message: 'asking: no answer within 100 ms' });
  });

  it('gives up at once when told to, and tells the call', async () => {
    let told: AbortSignal | undefined;
    const { stop, result } = start((signal) => {
      told = signal;
      return never();
    });
    stop.abort();
    await expect(result).rejects.toMatchObject({ code: 'Unavailable' });
    expect(told?.aborted).toBe(true);
  });

  it('does not even begin when it is too late', async () => {
    const stop = new AbortController();
    stop.abort();
    const clock = createManualClock();
    let called = false;
    const result = awaitWithin({ clock, timeoutMs: 100, signal: stop.signal, what: 'asking' }, async () => {
      called = true;
    });
    await expect(result).rejects.toMatchObject({ code: 'Unavailable' });
    expect(called).toBe(false);
  });
});
