// Back-off before the next attempt to reach the server. It ends early when the page becomes visible or the network returns.

const firstDelayMs = 500;
const delayMsMax = 30_000;

export async function waitForAnotherTry(tries: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const delayMs = Math.min(firstDelayMs * 2 ** tries, delayMsMax) * (0.5 + Math.random() / 2);
  const timer = setTimeout(resolve, delayMs);
  const again = (): void => {
    if (document.visibilityState === 'visible') resolve();
  };
  document.addEventListener('visibilitychange', again);
  window.addEventListener('online', again);
  signal.addEventListener('abort', () => resolve());
  if (signal.aborted) resolve();
  await promise;
  clearTimeout(timer);
  document.removeEventListener('visibilitychange', again);
  window.removeEventListener('online', again);
}
