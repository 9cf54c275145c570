// Tells the control plane what became of each guest and each volume: only the latest, again and again until it is answered. Level-triggered, so
// that lost, repeated and reordered messages do no harm; every report of a session carries a higher sequence than those before.

import type { Report, ReportResults, Reports, VolumeReport } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { backoffMs } from '../../base/backoff.ts';
import { type Buggify, neverBuggify } from '../../base/buggify.ts';
import { type Clock, sleep, type Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import { awaitWithin } from '../host/await-within.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { GuestReconciler } from '../guests/guest-reconciler.ts';

export interface ReporterOptions {
  readonly ledger: Ledger;
  readonly statusOf: GuestReconciler['statusOf'];
  /** What is known now of a volume; undefined: nothing worth a report yet. */
  readonly volumeSeenOf: (volumeId: string) => VolumeReport['volume'] | undefined;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly buggify?: Buggify;
}

export interface Reporter {
  /** What is to be said of an instance or a volume may have changed. */
  mark(id: string): void;
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

type GuestContent = Omit<Report, 'sequence'>;
type VolumeContent = Omit<VolumeReport, 'sequence'>;
type Content = GuestContent | VolumeContent;

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
  /** What the control plane answered to, by id and incarnation, in this session. A volume has one life. */
  const said = new Map<string, Map<number, Said>>();
  let wake = (): void => {};
  let pause: AbortController | undefined;

  const mark = (id: string): void => {
    marked.add(id);
    wake();
  };

  const contentsOf = (id: string): Content[] => {
    const volume = ledger.volumeOf(id);
    if (volume !== undefined) {
      const seen = options.volumeSeenOf(id);
      return seen === undefined ? [] : [{ volumeId: id, observedGeneration: volume.generation, volume: seen }];
    }
    return ledger.entriesOf(id).flatMap((entry) => {
      const guest = options.statusOf(entry);
      const { incarnation, generation } = entry.assignment;
      return guest === undefined ? [] : [{ instanceId: id, incarnation, observedGeneration: generation, guest }];
    });
  };

  const isKnown = (id: string): boolean => ledger.newestOf(id) !== undefined || ledger.volumeOf(id) !== undefined;

  /** News of what is marked, at most `max`; those of which only the progress changed a moment ago stay marked. */
  const collect = (max: number): { readonly contents: Content[]; readonly nextMs: number | undefined } => {
    const contents: Content[] = [];
    let nextMs: number | undefined;
    for (const id of marked) {
      if (contents.length >= max) return { contents, nextMs: 0 };
      const news = contentsOf(id).filter((content) => textOf(content) !== saidOf(content)?.text);
      const waits = news.map(waitMsOf);
      if (waits.every((waitMs) => waitMs === 0)) marked.delete(id);
      else nextMs = Math.min(nextMs ?? progressMs, ...waits.filter((waitMs) => waitMs > 0));
      contents.push(...news.filter((_, index) => waits[index] === 0));
      if (!isKnown(id)) said.delete(id); // forgotten, also here
    }
    return { contents, nextMs };
  };

  const saidOf = (content: Content): Said | undefined => said.get(idOf(content))?.get(incarnationOf(content));

  const waitMsOf = (content: Content): number => {
    const before = saidOf(content);
    if (before === undefined || before.textWithoutProgress !== textOf(withoutProgress(content))) return 0;
    return Math.max(0, before.atMs + progressMs - clock.monotonicMs());
  };

  const remember = (content: Content, result: Said['result']): void => {
    const id = idOf(content);
    if (!isKnown(id)) return;
    const incarnations = said.get(id) ?? new Map<number, Said>();
    const textWithoutProgress = textOf(withoutProgress(content));
    const atMs = clock.monotonicMs();
    incarnations.set(incarnationOf(content), { text: textOf(content), textWithoutProgress, atMs, result });
    said.set(id, incarnations);
  };

  const sayAgain = (contents: readonly Content[]): void => {
    for (const id of contents.map(idOf)) if (said.delete(id)) mark(id);
  };

  const run = async (session: ReportingSession, signal: AbortSignal): Promise<void> => {
    let sequence = 0;
    let attempt = 0;
    let max = batchMax;
    said.clear();
    for (const id of [...ledger.instanceIds(), ...ledger.volumeIds()]) marked.add(id);

    while (!signal.aborted) {
      const { contents, nextMs } = collect(buggify('report-one') ? 1 : max);
      if (contents.length === 0) {
        await untilMarked(nextMs, signal);
        continue;
      }
      const guests = contents.filter((content): content is GuestContent => 'guest' in content);
      const ofVolumes = contents.filter((content): content is VolumeContent => 'volume' in content);
      const reports = guests.map((content): Report => ({ ...content, sequence: ++sequence }));
      const volumes = ofVolumes.map((content): VolumeReport => ({ ...content, sequence: ++sequence }));
      try {
        const { results, volumes: volumeResults = [] } = await awaitWithin(
          { clock, timeoutMs: answerTimeoutMs, signal, what: 'reporting guests' },
          (limit) =>
            session.send({ epoch: session.epoch, reports, ...(volumes.length === 0 ? {} : { volumes }) }, limit),
        );
        guests.forEach((content, index) => remember(content, results[index] ?? 'stale'));
        ofVolumes.forEach((content, index) => remember(content, volumeResults[index] ?? 'stale'));
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
        for (const content of contents) marked.add(idOf(content));
        if (isRefusal(error)) {
          max = 1; // find out which
          continue;
        }
        // It may have been taken in: should all be again as it was said before, that is news there.
        for (const content of contents) said.get(idOf(content))?.delete(incarnationOf(content));
        log.warn('cannot report guests; trying again', {
          guests: guests.length,
          ...(volumes.length === 0 ? {} : { volumes: volumes.length }),
          error: describeError(error),
        });
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
      for (const [id, incarnations] of said) {
        for (const [incarnation, { result }] of incarnations) {
          if (result !== 'stale') continue;
          incarnations.delete(incarnation);
          mark(id);
        }
      }
    },
  };
}

/** The report itself is at fault, not the way to the control plane. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 'InvalidRequest' || error.code === 'PayloadTooLarge');
}

const idOf = (content: Content): string => ('volume' in content ? content.volumeId : content.instanceId);
const incarnationOf = (content: Content): number => ('volume' in content ? 1 : content.incarnation);

function withoutProgress(content: Content): Content {
  if ('volume' in content || content.guest.state === 'absent') return content;
  const { progress: _progress, ...guest } = content.guest;
  return { ...content, guest };
}

function textOf(content: Content): string {
  return JSON.stringify(content);
}
