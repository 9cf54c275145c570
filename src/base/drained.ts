// Waits for a slow reader. It leaves no listeners on the stream: a stream that lives for days is paused millions of
// times.

/** The part of Node's Writable that is used here. */
interface Drainable {
  readonly destroyed: boolean;
  readonly writableNeedDrain: boolean;
  on(event: 'drain' | 'close', listener: () => void): unknown;
  off(event: 'drain' | 'close', listener: () => void): unknown;
}

/** Resolves when `writable` accepts more, or is closed; the caller checks which. Never rejects. */
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
