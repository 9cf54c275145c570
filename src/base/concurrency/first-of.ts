// One signal of several. Node keeps the result of `AbortSignal.any` in memory as long as it has a listener: code that
// waits forever, as a dead simulated process leaves behind, would never be freed, nor what it references. This signal
// does not keep them.

export interface FirstOf {
  readonly signal: AbortSignal;
  /** Stops following the others, for when they outlive it. */
  forget(): void;
}

export function firstOf(...signals: readonly AbortSignal[]): FirstOf {
  const first = new AbortController();
  const abort = (): void => first.abort();
  for (const signal of signals) {
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }
  return {
    signal: first.signal,
    forget() {
      for (const signal of signals) signal.removeEventListener('abort', abort);
    },
  };
}
