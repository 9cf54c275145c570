// Waiting for a slow reader. It leaves nothing behind on the stream: a stream that lives for days is paused millions of times.

/** A writable of Node, as far as it is needed here. */
interface Drainable {
  readonly destroyed: boolean;
  readonly writableNeedDrain: boolean;
  on(event: 'drain' | 'close', listener: () => void): unknown;
  off(event: 'drain' | 'close', listener: () => void): unknown;
}

/** Resolves when `writable` takes more, or is closed; the caller looks which. Never rejects. */
export function drained(writable: Drainable): Promise<void> {
  return new Promise((resolve) => {
    if (writable.destroyed || !writable.writableNeedDrain) return resolve();
    const finish = (): void => {
      writable.off('drain', finish);
      writable.off('close', finish);
      resolve();
    };
    writable.on('drain', finish);
    writable.on('close', finish);
  });
}
