// Waits for Ctrl-C, or for another cause that aborts a signal. It must not keep a listener afterwards.

export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
