// What is told as it comes: who has something to tell calls a sink, and waits when that is full. Thousands who wait for their next piece
// cost nothing meanwhile, as they would with a promise and a timer each.

export interface Sink<Piece> {
  /** Takes the piece in any case. False: nothing more, please, until `ready` has resolved. */
  take(piece: Piece): boolean;
  /** Resolves when more can be taken, or will never be. Never rejects. */
  ready(): Promise<void>;
}

/** Tells `sink` all that there is to tell; resolves at its end, or soon after `signal` aborts. */
export type Source<Piece> = (sink: Sink<Piece>, signal: AbortSignal) => Promise<void>;

/** The pieces of `source` for who takes one after the other; the source waits until the next is asked for. */
export async function* pulled<Piece extends object>(
  source: Source<Piece>,
  signal: AbortSignal,
): AsyncGenerator<Piece, void> {
  const over = new AbortController();
  const abort = (): void => over.abort();
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  const pieces: Piece[] = [];
  let asked = Promise.withResolvers<void>();
  let come = Promise.withResolvers<void>();
  const sink: Sink<Piece> = {
    take(piece) {
      pieces.push(piece);
      come.resolve();
      return false;
    },
    ready: () => asked.promise,
  };
  let told = false;
  const telling = source(sink, over.signal).finally(() => {
    told = true;
    come.resolve();
  });
  telling.catch(() => {}); // told to who asks for the next piece
  try {
    for (;;) {
      const piece = pieces.shift();
      if (piece) yield piece;
      else if (told) return await telling;
      else {
        come = Promise.withResolvers();
        asked.resolve();
        asked = Promise.withResolvers();
        await come.promise;
      }
    }
  } finally {
    signal.removeEventListener('abort', abort);
    abort();
    asked.resolve();
  }
}
