import { describe, expect, it } from 'vitest';
import { createManualClock } from '../manual-clock.ts';
import { startWorkers } from './workers.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('workers', () => {
  const start = (concurrency: number) => {
    const clock = createManualClock();
    const open = new Map<string, PromiseWithResolvers<void>[]>();
    const log: string[] = [];
    const workers = startWorkers<string>({
      clock,
      concurrency,
      failed: (key, error) => log.push(`${key} failed: ${error instanceof Error ? error.message : 'oddly'}`),
      work: async (key) => {
        log.push(`${key} begins`);
        const gate = Promise.withResolvers<void>();
        open.set(key, [...(open.get(key) ?? []), gate]);
        await gate.promise;
        log.push(`${key} ends`);
      },
    });
    const finish = async (key: string): Promise<void> => {
      open.get(key)?.shift()?.resolve();
      await turn();
    };
    const fail = async (key: string): Promise<void> => {
      open.get(key)?.shift()?.reject(new Error('broken'));
      await turn();
    };
    return { clock, workers, log, finish, fail };
  };

  it('begin nothing inside add', async () => {
    const { workers, log } = start(1);
    workers.add('a');
    expect(log).toEqual([]);
    await turn();
    expect(log).toEqual(['a begins']);
  });

  it('work on several keys side by side, but not on more than they may', async () => {
    const { workers, log, finish } = start(2);
    for (const key of ['a', 'b', 'c']) workers.add(key);
    await turn();
    expect(log).toEqual(['a begins', 'b begins']);
    await finish('b');
    expect(log).toEqual(['a begins', 'b begins', 'b ends', 'c begins']);
  });

  it('work on one key one after the other', async () => {
    const { workers, log, finish } = start(4);
    workers.add('a');
    await turn();
    workers.add('a');
    await turn();
    expect(log).toEqual(['a begins']);
    await finish('a');
    expect(log).toEqual(['a begins', 'a ends', 'a begins']);
  });

  it('go on when work throws', async () => {
    const { workers, log, fail } = start(1);
    workers.add('a');
    workers.add('b');
    await turn();
    await fail('a');
    expect(log).toEqual(['a begins', 'a failed: broken', 'b begins']);
  });

  it('close once the work under way has ended, and begin nothing more', async () => {
    const { workers, log, finish } = start(1);
    workers.add('a');
    workers.add('b');
    await turn();
    let closed = false;
    const closing = workers.close().then(() => {
      closed = true;
    });
    await turn();
    expect(closed).toBe(false);
    await finish('a');
    await closing;
    expect(log).toEqual(['a begins', 'a ends']);
  });
});
