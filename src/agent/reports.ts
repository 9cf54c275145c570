// Tells the control plane what became of each guest: only the latest, again and again until it is answered. Level-triggered, so
// that lost, repeated and reordered messages do no harm; every report of a session carries a higher sequence than those before.

import type { Report, ReportResults, Reports } from '../api/agent-protocol.ts';
import { ApiError } from '../api/errors.ts';
import { backoffMs } from '../base/backoff.ts';
import { type Buggify, neverBuggify } from '../base/buggify.ts';
import { type Clock, sleep, type Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import { awaitWithin } from './await-within.ts';
import type { Ledger } from './ledger.ts';
import type { Reconciler } from './reconcile.ts';

export interface ReporterOptions {
  readonly ledger: Ledger;
  readonly statusOf: Reconciler['statusOf'];
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly buggify?: Buggify;
}

export interface Reporter {
  /** What is to be said of an instance may have changed. */
  mark(instanceId: string): void;
  /** Says again what was called stale: a control plane that lagged may take it now. */
  repeatStale(): void;
  /** The control plane is heard again: ends the pause before the next try. */
  hurry(): void;
  /** Reports everything once, then every change, until `signal` aborts. Throws what ends the session. */
  run(session: ReportingSession, signal: AbortSignal): Promise<void>;
}

export interface ReportingSession {
  readonly epoch: number;
  send(reports: Reports, signal: AbortSignal): Promise<ReportResults>;
  /** Errors that no repetition heals. */
  readonly endsSession: (error: unknown) => boolean;
}

type Content = Omit<Report, 'sequence'>;

interface Said {
  readonly text: string;
  readonly textWithoutProgress: string;
  readonly atMs: number;
  readonly result: ReportResults['results'][number] | 'refused';
}

const batchMax = 64; // far below the protocol's 256: each change is a write in the store
const answerTimeoutMs = 30_000;
const progressMs = 1000; // progress is for people, and each report of it is a durable write
const retry = { delayMsMin: 500, delayMsMax: 15_000 };

export function createReporter(options: ReporterOptions): Reporter {
  const { ledger, clock, log, buggify = neverBuggify } = options;
  const marked = new Set<string>();
  /** What the control plane answered to, by instance and incarnation, in this session. */
  const said = new Map<string, Map<number, Said>>();
  let wake = (): void => {};
  let pause: AbortController | undefined;

  const mark = (instanceId: string): void => {
    marked.add(instanceId);
    wake();
  };

  const contentsOf = (instanceId: string): Content[] =>
    ledger.entriesOf(instanceId).flatMap((entry) => {
      const guest = options.statusOf(entry);
      const { incarnation, generation } = entry.assignment;
      return guest === undefined ? [] : [{ instanceId, incarnation, observedGeneration: generation, guest }];
    });

  /** News of marked instances, at most `max`; those of which only the progress changed a moment ago stay marked. */
  const collect = (max: number): { readonly contents: Content[]; readonly nextMs: number | undefined } => {
    const contents: Content[] = [];
    let nextMs: number | undefined;
    for (const instanceId of marked) {
      if (contents.length >= max) return { contents, nextMs: 0 };
      const news = contentsOf(instanceId).filter((content) => textOf(content) !== saidOf(content)?.text);
      const waits = news.map(waitMsOf);
      if (waits.every((waitMs) => waitMs === 0)) marked.delete(instanceId);
      else nextMs = Math.min(nextMs ?? progressMs, ...waits.filter((waitMs) => waitMs > 0));
      contents.push(...news.filter((_, index) => waits[index] === 0));
      if (ledger.newestOf(instanceId) === undefined) said.delete(instanceId); // forgotten, also here
    }
    return { contents, nextMs };
  };

  const saidOf = ({ instanceId, incarnation }: Content): Said | undefined => said.get(instanceId)?.get(incarnation);

  const waitMsOf = (content: Content): number => {
    const before = saidOf(content);
    if (before === undefined || before.textWithoutProgress !== textOf(withoutProgress(content))) return 0;
    return Math.max(0, before.atMs + progressMs - clock.monotonicMs());
  };

  const remember = (content: Content, result: Said['result']): void => {
    const { instanceId, incarnation } = content;
    if (ledger.newestOf(instanceId) === undefined) return;
    const incarnations = said.get(instanceId) ?? new Map<number, Said>();
    const textWithoutProgress = textOf(withoutProgress(content));
    incarnations.set(incarnation, { text: textOf(content), textWithoutProgress, atMs: clock.monotonicMs(), result });
    said.set(instanceId, incarnations);
  };

  const sayAgain = (contents: readonly Content[]): void => {
    for (const { instanceId } of contents) if (said.delete(instanceId)) mark(instanceId);
  };

  const run = async (session: ReportingSession, signal: AbortSignal): Promise<void> => {
    let sequence = 0;
    let attempt = 0;
    let max = batchMax;
    said.clear();
    for (const instanceId of ledger.instanceIds()) marked.add(instanceId);

    while (!signal.aborted) {
      const { contents, nextMs } = collect(buggify('report-one') ? 1 : max);
      if (contents.length === 0) {
        await untilMarked(nextMs, signal);
        continue;
      }
      const reports = contents.map((content): Report => ({ ...content, sequence: ++sequence }));
      try {
        const { results } = await awaitWithin(
          { clock, timeoutMs: answerTimeoutMs, signal, what: 'reporting guests' },
          (limit) => session.send({ epoch: session.epoch, reports }, limit),
        );
        contents.forEach((content, index) => remember(content, results[index] ?? 'stale'));
        attempt = 0;
        max = batchMax;
        if (buggify('report-again')) sayAgain(contents);
      } catch (error) {
        if (signal.aborted) return;
        if (session.endsSession(error)) throw error;
        if (isRefusal(error) && contents.length === 1) {
          // One bad report must not hold up the others for ever.
          log.error('the control plane refuses a report', { report: contents[0], error: describeError(error) });
          for (const content of contents) remember(content, 'refused');
          continue;
        }
        for (const { instanceId } of contents) marked.add(instanceId);
        if (isRefusal(error)) {
          max = 1; // find out which
          continue;
        }
        log.warn('cannot report guests; trying again', { guests: contents.length, error: describeError(error) });
        await rest(backoffMs(attempt++, retry, options.prng), signal);
      }
    }
  };

  const rest = async (delayMs: number, signal: AbortSignal): Promise<void> => {
    const resting = new AbortController();
    pause = resting;
    const end = (): void => resting.abort();
    signal.addEventListener('abort', end, { once: true });
    await sleep(clock, delayMs, resting.signal);
    signal.removeEventListener('abort', end);
    pause = undefined;
  };

  const untilMarked = (delayMs: number | undefined, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      let timer: Timer | undefined;
      const finish = (): void => {
        timer?.cancel();
        signal.removeEventListener('abort', finish);
        wake = () => {};
        resolve();
      };
      if (signal.aborted) return finish();
      // While something waits for its time, what is marked meanwhile may well be urgent: any mark wakes.
      wake = finish;
      signal.addEventListener('abort', finish, { once: true });
      if (delayMs !== undefined) timer = clock.setTimer(delayMs, finish);
    });

  return {
    mark,
    run,
    hurry: () => pause?.abort(),
    repeatStale() {
      for (const [instanceId, incarnations] of said) {
        for (const [incarnation, { result }] of incarnations) {
          if (result !== 'stale') continue;
          incarnations.delete(incarnation);
          mark(instanceId);
        }
      }
    },
  };
}

/** The report itself is at fault, not the way to the control plane. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 'InvalidRequest' || error.code === 'PayloadTooLarge');
}

function withoutProgress(content: Content): Content {
  if (content.guest.state === 'absent') return content;
  const { progress: _progress, ...guest } = content.guest;
  return { ...content, guest };
}

function textOf(content: Content): string {
  return JSON.stringify(content);
}
