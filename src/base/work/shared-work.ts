// Work that several ask for is done once, and ends when nobody waits for it any more. Knows nothing of what is done.

export interface SharedWork<Progress, Result> {
  /** Whether something is under way for `key`. */
  has(key: string): boolean;
  /**
   * What the work for `key` comes to: of what is under way, or begun now. Undefined as soon as the caller leaves, by its signal; the last
   * one to leave ends the work, and hears of it when nothing of it goes on. Rejects as the work does.
   */
  join(
    key: string,
    caller: Caller<Progress>,
    begin: (call: WorkCall<Progress>) => Promise<Result>,
  ): Promise<Result | undefined>;
}

export interface Caller<Progress> {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface WorkCall<Progress> {
  /** Aborts when nobody waits any more. */
  readonly signal: AbortSignal;
  /** To all who wait. */
  readonly tell: (progress: Progress) => void;
}

interface Work<Progress, Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  readonly callers: Set<Caller<Progress>>;
}

export function createSharedWork<Progress, Result>(): SharedWork<Progress, Result> {
  const works = new Map<string, Work<Progress, Result>>();

  const start = (key: string, begin: (call: WorkCall<Progress>) => Promise<Result>): Work<Progress, Result> => {
    const controller = new AbortController();
    const callers = new Set<Caller<Progress>>();
    const tell = (progress: Progress): void => {
      for (const caller of callers) caller.onProgress?.(progress);
    };
    const result = begin({ signal: controller.signal, tell }).finally(() => {
      works.delete(key);
    });
    result.catch(() => {}); // every caller is told; the last one may have left
    return { result, controller, callers };
  };

  return {
    has: (key) => works.has(key),
    async join(key, caller, begin) {
      for (;;) {
        if (caller.signal.aborted) return undefined;
        let work = works.get(key);
        if (work?.controller.signal.aborted) {
          await work.result.catch(() => {}); // it is clearing up; its outcome is not ours
          continue;
        }
        if (work === undefined) {
          work = start(key, begin);
          works.set(key, work);
        }
        return waitFor(work, caller);
      }
    },
  };
}

async function waitFor<Progress, Result>(
  { result, controller, callers }: Work<Progress, Result>,
  asked: Caller<Progress>,
): Promise<Result | undefined> {
  const { signal } = asked;
  const caller = { ...asked }; // its own, should one ask twice
  callers.add(caller);
  const left = Promise.withResolvers<void>();
  const leave = (): void => left.resolve();
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([result, left.promise.then(() => undefined)]);
  } finally {
    signal.removeEventListener('abort', leave);
    callers.delete(caller);
    if (signal.aborted && callers.size === 0) {
      controller.abort();
      await result.catch(() => {}); // so that nothing of it is left when the caller hears of the end
    }
  }
}
