// The client's end of a stream: pieces wait here until they are read. One reader.

export interface Inbox {
  readonly body: AsyncIterable<Uint8Array>;
  push(piece: Uint8Array): void;
  end(): void;
  fail(error: Error): void;
}

/** `onLeave` is called when the reader stops before the end. */
export function createInbox(onLeave: () => void): Inbox {
  const pieces: Uint8Array[] = [];
  let outcome: { readonly error?: Error } | undefined;
  let left = false;
  let wake = (): void => {};

  const settle = (end: { readonly error?: Error }): void => {
    outcome ??= end;
    wake();
  };

  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    for (;;) {
      const piece = pieces.shift();
      if (piece !== undefined) return { done: false, value: piece };
      if (outcome?.error) throw outcome.error;
      if (outcome || left) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };

  return {
    body: {
      [Symbol.asyncIterator]: () => ({
        next,
        return() {
          if (!outcome && !left) {
            left = true;
            onLeave();
          }
          return Promise.resolve({ done: true, value: undefined });
        },
      }),
    },
    push(piece) {
      if (outcome || left) return;
      pieces.push(piece);
      wake();
    },
    end: () => settle({}),
    fail: (error) => settle({ error }),
  };
}
