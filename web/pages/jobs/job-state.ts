// Texts about a job: why it waits, how it ended, how long it ran. Pure.

import type { Job, JobAttempt } from '../../../src/api/resources/job.ts';
import { spanText } from '../../parts/units.ts';

const finalPhases: readonly string[] = ['Succeeded', 'Failed', 'Cancelled', 'TimedOut'];

export function hasEnded({ status: { phase } }: Pick<Job, 'status'>): boolean {
  return finalPhases.includes(phase);
}

/** Empty: there is nothing to say. */
export function reasonOf({ status }: Pick<Job, 'status'>, nowMs: number): string {
  const { phase, queuePosition, estimatedStartMs = 0, message = '', cancel, exitCode } = status;
  const parts = [
    cancel && !finalPhases.includes(phase) ? 'being cancelled' : '',
    phase === 'Queued' && queuePosition !== undefined ? `number ${queuePosition} in the queue` : '',
    phase === 'Queued' && estimatedStartMs > nowMs ? `starts in about ${spanText(estimatedStartMs - nowMs)}` : '',
    exitCode === undefined || exitCode === 0 ? '' : `exit code ${exitCode}`,
    phase === 'Succeeded' ? '' : message,
  ];
  return parts.filter((part) => part !== '').join('; ');
}

/** How long its program ran; undefined: it has not started. */
export function ranMs({ status }: Pick<Job, 'status'>, nowMs: number): number | undefined {
  const { startedAtMs, endedAtMs } = status;
  return startedAtMs === undefined ? undefined : Math.max(0, (endedAtMs ?? nowMs) - startedAtMs);
}

export function attemptText({ outcome, exitCode, message, reason }: JobAttempt): string {
  if (outcome === undefined) return 'under way';
  const code = exitCode === undefined || exitCode === 0 ? '' : `, exit code ${exitCode}`;
  const why = outcome === 'succeeded' || outcome === 'failure' ? '' : (message ?? reason ?? '');
  return `${outcome}${code}${why === '' ? '' : `: ${why}`}`;
}

/** By which durations are compared. */
export function labelOf({ spec }: Pick<Job, 'spec'>): string {
  return spec.label ?? spec.image ?? 'default label';
}

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}
