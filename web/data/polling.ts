// How often a page asks again for what no watch carries. The larger the fleet, the longer the answer takes and the seldomer it is asked
// for, so that many open pages do not become the load of the server.

const shareOfTime = 0.02;

/** `fetch`, and how long to wait after it: at least `atLeastMs`, and so long that asking takes 2 % of the time. */
export function polled<T>(
  atLeastMs: number,
  fetch: () => Promise<T>,
): { readonly queryFn: () => Promise<T>; readonly refetchInterval: () => number } {
  let tookMs = 0;
  return {
    async queryFn() {
      const startedMs = performance.now();
      const answer = await fetch();
      tookMs = performance.now() - startedMs;
      return answer;
    },
    refetchInterval: () => Math.max(atLeastMs, tookMs / shareOfTime),
  };
}
