// When a job that waits may start: its place among the jobs that wait, and an estimate from recent durations. Computed
// on request, never stored: every job that ends would change it for all others.
//
// The estimate replays the queue over the places that are in use now, with the median of the last 20 durations of each
// label. It is absent where fewer than 5 are known. Errors of 30 to 50 % are normal, and fair shares make them larger.

import { isFinal, type Job } from '../../../api/resources/job.ts';
import type { Context } from '../../state/context.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../../state/snapshot.ts';
import { conditionOf } from '../../state/conditions.ts';
import { jobsOf } from '../../state/jobs.ts';
import { keys } from '../../state/keys.ts';
import { imageWordOf } from './attempt.ts';

const samplesMax = 20;
const samplesMin = 5;
/** A longer queue is not replayed: nothing useful can be said of it. */
const replayedMax = 10_000;

export interface JobOutlook {
  readonly queuePosition?: number;
  /** Milliseconds since 1970. */
  readonly estimatedStartMs?: number;
  /** Why it waits, where its own status does not say. */
  readonly message?: string;
}

/**
 * For the jobs of one snapshot: the queue is sorted and replayed once, however many are asked about. Empty for a job that has been placed
 * or has ended.
 */
export function jobOutlooks(snapshot: Snapshot, ctx: Pick<Context, 'nowMs' | 'policy'>): (job: Job) => JobOutlook {
  let replay: Replay | undefined;
  return (job) => {
    if (!isWaiting(job)) return {};
    replay ??= new Replay(snapshot, ctx);
    return { ...whyItWaits(snapshot, job), ...replay.outlookOf(job) };
  };
}

/** As its instance says. */
function whyItWaits(snapshot: Snapshot, { metadata, status }: Job): Pick<JobOutlook, 'message'> {
  if (status.message !== undefined || status.instance === undefined) return {};
  const instance = snapshot.get('instance', keys.instance(metadata.project, status.instance))?.value;
  const message = instance && conditionOf(instance.status.conditions, 'Scheduled')?.message;
  return message === undefined ? {} : { message };
}

interface Line {
  readonly waiting: readonly Job[];
  readonly placed: readonly Job[];
}

/** Higher priorities first, then the older; shares of projects are not known to it. */
function lineOf(snapshot: Snapshot): Line {
  const unfinished = [...jobsOf(snapshot).unfinished].flatMap((key) => snapshot.get('job', key)?.value ?? []);
  const waiting = unfinished.filter(isWaiting);
  waiting.sort(
    (a, b) =>
      (b.spec.priority ?? 0) - (a.spec.priority ?? 0) ||
      a.metadata.createdAtMs - b.metadata.createdAtMs ||
      (a.metadata.id < b.metadata.id ? -1 : 1),
  );
  return { waiting, placed: unfinished.filter((job) => !isWaiting(job)) };
}

function isWaiting({ status }: Job): boolean {
  return status.phase === 'Queued';
}

/** The queue, played forward as far as needed. */
class Replay {
  readonly #waiting: readonly Job[];
  readonly #positions: ReadonlyMap<string, number>;
  readonly #durations: Durations;
  /** When each place is free; empty: nothing can be said. */
  readonly #free: number[];
  /** Of the first ones of `#waiting`. */
  readonly #starts: number[] = [];

  constructor(snapshot: Snapshot, { nowMs, policy }: Pick<Context, 'nowMs' | 'policy'>) {
    const { waiting, placed } = lineOf(snapshot);
    this.#waiting = waiting;
    this.#positions = new Map(waiting.map(({ metadata }, i) => [metadata.id, i]));
    this.#durations = durationsOf(snapshot);
    this.#free = this.#freeFrom(placed, policy.maxConcurrency ?? placed.length, nowMs);
  }

  outlookOf({ metadata, status }: Job): JobOutlook {
    const at = this.#positions.get(metadata.id);
    if (at === undefined) return {};
    const freeMs = at < replayedMax ? this.#startOf(at) : undefined;
    if (freeMs === undefined) return { queuePosition: at + 1 };
    return { queuePosition: at + 1, estimatedStartMs: Math.ceil(Math.max(freeMs, status.retryAtMs ?? 0)) };
  }

  #freeFrom(placed: readonly Job[], places: number, nowMs: number): number[] {
    const free: number[] = [];
    for (const job of placed.slice(0, places)) {
      const left = this.#durations.remaining(imageWordOf(job.spec), nowMs - (job.status.startedAtMs ?? nowMs));
      if (left === undefined) return [];
      free.push(nowMs + left);
    }
    while (free.length < places) free.push(nowMs);
    return free;
  }

  #startOf(at: number): number | undefined {
    while (this.#starts.length <= at) {
      const before = this.#waiting[this.#starts.length - 1];
      if (before && !this.#take(before)) return undefined;
      const next = this.#free[indexOfLeast(this.#free)];
      if (next === undefined) return undefined;
      this.#starts.push(next);
    }
    return this.#starts[at];
  }

  /** The job takes the place that is free first. False: how long it takes is not known. */
  #take({ spec }: Job): boolean {
    const median = this.#durations.median(imageWordOf(spec));
    const next = indexOfLeast(this.#free);
    if (median === undefined) return false;
    this.#free[next] = (this.#free[next] ?? 0) + median;
    return true;
  }
}

function indexOfLeast(numbers: readonly number[]): number {
  let least = 0;
  for (let i = 1; i < numbers.length; i++) if ((numbers[i] ?? 0) < (numbers[least] ?? 0)) least = i;
  return least;
}

const durationsOf = defineView((snapshot) => new Durations(snapshot));

/** The last durations of successful and failed programs, by label. */
class Durations implements View {
  readonly #byLabel = new Map<string, number[]>();

  constructor(snapshot: Snapshot) {
    const ended = Array.from(snapshot.list('job'), ({ value }) => value);
    ended.sort((a, b) => (a.status.endedAtMs ?? 0) - (b.status.endedAtMs ?? 0));
    for (const job of ended) this.#add(job);
  }

  apply({ kind, before, after }: RecordChange): void {
    if (kind !== 'job' || after?.kind !== 'job') return;
    if (before?.kind === 'job' && isFinal(before.status.phase)) return;
    this.#add(after);
  }

  #add({ spec, status }: Job): void {
    const { phase, startedAtMs, endedAtMs } = status;
    if ((phase !== 'Succeeded' && phase !== 'Failed') || startedAtMs === undefined || endedAtMs === undefined) return;
    const label = imageWordOf(spec);
    const samples = this.#byLabel.get(label) ?? [];
    this.#byLabel.set(label, [...samples.slice(1 - samplesMax), Math.max(0, endedAtMs - startedAtMs)]);
  }

  median(label: string): number | undefined {
    return medianOf(this.#byLabel.get(label) ?? []);
  }

  /** How long a program that has run for `elapsedMs` still takes; undefined when it has run longer than all known. */
  remaining(label: string, elapsedMs: number): number | undefined {
    const samples = this.#byLabel.get(label) ?? [];
    if (samples.length < samplesMin) return undefined;
    const longer = samples.filter((each) => each > elapsedMs);
    if (longer.length === 0) return undefined;
    return longer.reduce((sum, each) => sum + each, 0) / longer.length - elapsedMs;
  }
}

function medianOf(samples: readonly number[]): number | undefined {
  if (samples.length < samplesMin) return undefined;
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] =
    sorted.length % 2 === 1 ? [sorted[middle], sorted[middle]] : [sorted[middle - 1], sorted[middle]];
  return (low + high) / 2;
}
