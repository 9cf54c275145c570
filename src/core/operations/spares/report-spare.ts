// What the runner of spares has learned of a step. A report of another step than the present one changes nothing.

import type { Spare, SparePhase, SpareStatus } from '../../../api/resources/spare.ts';
import { backoffMs } from '../../../base/backoff.ts';
import type { Context } from '../../state/context.ts';
import { type Change, emptyPlan, type Plan } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { ended, provisioned, ready, releasing, spareChange, type SpareNews } from './spare-change.ts';

export interface SpareStep {
  readonly key: string;
  readonly id: string;
  readonly phase: SparePhase;
  readonly attempt: number;
}

export type SpareReport =
  | { readonly is: 'progress'; readonly message: string }
  | { readonly is: 'provisioned'; readonly address?: string; readonly name?: string }
  | { readonly is: 'ready'; readonly message: string }
  | { readonly is: 'released' }
  /** Nothing was begun, so nothing is undone. */
  | { readonly is: 'refused'; readonly why: string }
  /** `refused`: another attempt would fail too. */
  | { readonly is: 'failed'; readonly why: string; readonly refused?: true }
  /** A person must find out what became of it. */
  | { readonly is: 'unknown'; readonly why: string };

const retryDelay = { delayMsMin: 1_000, delayMsMax: 300_000 };
/** A machine that cannot be released is not left alone before this many tries: about half an hour. */
const releaseAttemptsMax = 12;
const failureMax = 1_024;

export function reportSpare(
  snapshot: Snapshot,
  { step, report }: { readonly step: SpareStep; readonly report: SpareReport },
  ctx: Context,
): { readonly plan: Plan } {
  const entry = snapshot.get('spare', step.key);
  if (entry?.value.metadata.id !== step.id) return { plan: emptyPlan };
  const { phase, attempt } = entry.value.status;
  if (phase !== step.phase || attempt !== step.attempt) return { plan: emptyPlan };
  return { plan: { changes: changesOf(snapshot, entry, report, ctx) } };
}

function changesOf(snapshot: Snapshot, entry: Entry<Spare>, report: SpareReport, ctx: Context): readonly Change[] {
  const { status } = entry.value;
  switch (report.is) {
    case 'progress': {
      const known = status.conditions.find(({ type }) => type === 'Ready');
      if (known?.message === report.message) return [];
      return spareChange(entry, status, { reason: status.phase, message: report.message, isProgress: true }, ctx);
    }
    case 'provisioned':
      return status.phase === 'Provisioning' ? provisioned(entry, report, ctx) : [];
    case 'ready':
      return status.phase === 'Checking' ? ready(entry, status, report.message, ctx) : [];
    case 'released':
      return status.phase === 'Releasing' ? ended(snapshot, entry, ctx) : [];
    case 'refused':
      return refusedStep(snapshot, entry, report.why, ctx);
    case 'unknown':
      return spareChange(entry, { ...status, phase: 'Unknown' }, unknownNews(report.why), ctx);
    case 'failed':
      return failedAttempt(entry, report, ctx);
  }
}

function refusedStep(snapshot: Snapshot, entry: Entry<Spare>, failure: string, ctx: Context): readonly Change[] {
  const { status } = entry.value;
  if (status.phase !== 'Provisioning' || status.attempt > 1)
    return failedAttempt(entry, { why: failure, refused: true }, ctx);
  const refused = { ...entry.value, status: { ...status, failure: failure.slice(0, failureMax) } };
  return ended(snapshot, { ...entry, value: refused }, ctx);
}

function unknownNews(why: string): SpareNews {
  const message = `${why}; look what became of it, then release it: berth spare release`;
  return { reason: 'Unknown', message, isWarning: true };
}

/** Another attempt, later; after the last one what was made is undone. */
export function failedAttempt(
  entry: Entry<Spare>,
  { why, refused }: { readonly why: string; readonly refused?: true },
  ctx: Context,
): readonly Change[] {
  const { spec, status } = entry.value;
  if (status.phase === 'Checking') return releasing(entry, { reason: 'NotReady', message: why, isWarning: true }, ctx);
  const isRelease = status.phase === 'Releasing';
  const isLast = status.attempt >= (isRelease ? releaseAttemptsMax : spec.attemptsMax) || (refused && !isRelease);
  if (isLast && isRelease)
    return spareChange(entry, { ...status, phase: 'Unknown' }, unknownNews(`it cannot be released: ${why}`), ctx);
  if (isLast) return releasing(entry, { reason: 'ProvisionFailed', message: why, isWarning: true }, ctx);
  const delayMs = backoffMs(status.attempt - 1, retryDelay, ctx.prng);
  const next: SpareStatus = { ...status, nextAttemptAtMs: ctx.nowMs + Math.ceil(delayMs) };
  const message = `attempt ${status.attempt} failed: ${why}; it is tried again`;
  return spareChange(entry, next, { reason: 'AttemptFailed', message, isWarning: true }, ctx);
}
