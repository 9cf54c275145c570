import { describe, expect, it } from 'vitest';
import { createManualClock } from '../manual-clock.ts';
import { createWorkQueue } from './work-queue.ts';

describe('the work queue', () => {
  const make = () => {
    const clock = createManualClock();
    return { clock, queue: createWorkQueue<string>({ clock }) };
  };
  const takeAll = (queue: { take(): string | undefined }): string[] => {
    const taken: string[] = [];
    for (let key = queue.take(); key !== undefined; key = queue.take()) taken.push(key);
    return taken;
  };

  it('hands keys out in the order they came, each once', () => {
    const { queue } = make();
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
    expect(takeAll(queue)).toEqual(['a', 'b', 'c']);
  });

  it('never hands out a key that is being worked on', () => {
    const { queue } = make();
    queue.add('a');
    expect(queue.take()).toBe('a');
    queue.add('a');
    expect(queue.take()).toBeUndefined();
  });

  it('brings a key again that was added while it was worked on, once', () => {
    const { queue } = make();
    queue.add('a');
    queue.take();
    queue.add('a');
    queue.add('a');
    queue.done('a');
    expect(takeAll(queue)).toEqual(['a']);
    queue.done('a');
    expect(queue.idle).toBe(true);
  });

  it('holds a delayed key back until its time has come', () => {
    const { clock, queue } = make();
    queue.addAfter('a', 100);
    clock.advance(99);
    expect(queue.take()).toBeUndefined();
    clock.advance(1);
    expect(queue.take()).toBe('a');
  });

  it('counts the shorter of two delays', () => {
    const { clock, queue } = make();
    queue.addAfter('a', 100);
    queue.addAfter('a', 10);
    queue.addAfter('a', 50);
    clock.advance(10);
    expect(takeAll(queue)).toEqual(['a']);
    queue.done('a');
    clock.advance(1000);
    expect(queue.take()).toBeUndefined();
  });

  it('lets a look now stand for a delayed one', () => {
    const { clock, queue } = make();
    queue.addAfter('a', 100);
    queue.add('a');
    expect(takeAll(queue)).toEqual(['a']);
    queue.done('a');
    clock.advance(100);
    expect(queue.idle).toBe(true);
  });

  it('says when there is something to take', () => {
    const clock = createManualClock();
    let said = 0;
    const queue = createWorkQueue<string>({ clock, onReady: () => void said++ });
    queue.add('a');
    queue.add('a');
    expect(said).toBe(1);
    queue.take();
    queue.add('a');
    expect(said).toBe(1);
    queue.done('a');
    expect(said).toBe(2);
  });

  it('forgets everything when closed', () => {
    const { clock, queue } = make();
    queue.add('a');
    queue.addAfter('b', 1);
    queue.close();
    queue.add('c');
    clock.advance(10);
    expect(queue.take()).toBeUndefined();
  });
});
