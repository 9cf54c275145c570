// One signal of several. Node keeps what `AbortSignal.any` makes for as long as somebody listens to it, so that whoever waits in vain, as
// all do who are left behind when a simulated process dies, stays in memory for ever with all that he holds; this one does not.

export interface FirstOf {
  readonly signal: AbortSignal;
  /** It follows the others no longer. For when they live on. */
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
