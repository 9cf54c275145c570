import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { drained } from './drained.ts';

/** A stream whose reader takes a piece when `read` is called. */
function slowReader(): { writable: Writable; read(): void; listeners(): number } {
  let done: (() => void) | undefined;
  const writable = new Writable({
    highWaterMark: 1,
    write: (_chunk, _encoding, callback) => {
      done = callback;
    },
  });
  return {
    writable,
    read: () => done?.(),
    listeners: () => ['drain', 'close', 'error'].reduce((sum, name) => sum + writable.listenerCount(name), 0),
  };
}

describe('waiting for a slow reader', () => {
  it('leaves no listeners, however often', async () => {
    const { writable, read, listeners } = slowReader();
    const before = listeners();
    for (let pause = 0; pause < 100; pause++) {
      expect(writable.write('piece')).toBe(false);
      const waiting = drained(writable);
      expect(listeners()).toBe(before + 2);
      read();
      await waiting;
      expect(listeners()).toBe(before);
    }
  });

  it('ends when the reader goes, and leaves no listeners either', async () => {
    const { writable, listeners } = slowReader();
    const before = listeners();
    writable.write('piece');
    const waiting = drained(writable);
    writable.destroy();
    await waiting;
    expect(listeners()).toBe(before);
  });

  it('does not wait for a reader that is gone or quick already', async () => {
    const { writable, read } = slowReader();
    await drained(writable);
    writable.write('piece');
    read();
    await drained(writable);
    writable.write('piece');
    writable.destroy();
    await drained(writable);
  });
});
