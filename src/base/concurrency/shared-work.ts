// Single-flight: work that several callers request is done once, and ends when the last of them leaves. It does not
// interpret the work.

export interface SharedWork<Progress, Result> {
  /** Whether work for `key` is in progress. */
  has(key: string): boolean;
  /**
   * The result of the work for `key`, which is joined or started. Resolves with undefined as soon as the caller's
   * signal aborts; the last caller to leave ends the work, and its promise resolves when the work has stopped. Rejects
   * when the work does.
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
  /** Aborts when no caller waits any more. */
  readonly signal: AbortSignal;
  /** Reports progress to all callers. */
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
    result.catch(() => {}); // every caller gets the error; the last one may have left
    return { result, controller, callers };
  };

  return {
    has: (key) => works.has(key),
    async join(key, caller, begin) {
      for (;;) {
        if (caller.signal.aborted) return undefined;
        let work = works.get(key);
        if (work?.controller.signal.aborted) {
          await work.result.catch(() => {}); // it is cleaning up; its result does not matter here
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
  const caller = { ...asked }; // an object per call, should one caller ask twice
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
      await result.catch(() => {}); // so that nothing of it is left when the caller continues
    }
  }
}
