// Follows the log of one attempt of a job into a RunLog, and notifies once per frame. After a broken connection it continues at the next byte.

import { ApiError } from '../../../src/api/errors.ts';
import { client } from '../../data/client.ts';
import { RunLog } from './run-log.ts';

export interface RunLogState {
  readonly log: RunLog;
  /** Grows with each change of the log. */
  readonly version: number;
  readonly state: 'reading' | 'ended';
  /** Why no data arrives; some failures are retried automatically. */
  readonly fault?: string;
}

const firstDelayMs = 500;
const delayMsMax = 15_000;

/** Returns a function that stops it. `isOver`: the attempt has ended, so the end of the stream is the end of the log. */
export function followRunLog(
  { name, project, attempt, isOver }: { name: string; project: string; attempt: number; isOver: () => boolean },
  tell: (state: RunLogState) => void,
): () => void {
  const log = new RunLog();
  const stop = new AbortController();
  const { signal } = stop;
  let version = 0;
  let fault: string | undefined;
  let state: RunLogState['state'] = 'reading';
  let frame = 0;
  const tellSoon = (): void => {
    if (frame !== 0 || signal.aborted) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      version += 1;
      tell({ log, version, state, ...(fault === undefined ? {} : { fault }) });
    });
  };
  const pass = async (): Promise<boolean> => {
    const wasOver = isOver();
    const query = { project, attempt, offset: log.bytes, follow: true };
    for await (const piece of client.jobLog(name, query, signal)) {
      fault = undefined;
      log.push(piece);
      tellSoon();
    }
    return wasOver;
  };
  const run = async (): Promise<void> => {
    for (let delayMs = firstDelayMs; !signal.aborted; delayMs = Math.min(2 * delayMs, delayMsMax)) {
      const before = log.bytes;
      try {
        if (await pass()) break;
      } catch (error) {
        if (signal.aborted) return;
        fault = error instanceof Error ? error.message : String(error);
        tellSoon();
        if (error instanceof ApiError && ['Forbidden', 'NotFound'].includes(error.code)) break;
      }
      if (log.bytes > before) delayMs = firstDelayMs;
      await pause(delayMs, signal);
    }
    log.end();
    state = 'ended';
    tellSoon();
  };
  tellSoon();
  void run();
  return () => {
    stop.abort();
    cancelAnimationFrame(frame);
  };
}

function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, delayMs);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
