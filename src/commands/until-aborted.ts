// Waits for Ctrl-C, or for whatever else aborts a signal. It must not keep a listener when it is over.

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
