// Durations of jobs by label or image. Pure.

import type { Job } from '../../../src/api/resources/job.ts';
import { hasEnded, labelOf, ranMs } from './job-state.ts';

export interface Ran {
  readonly name: string;
  readonly project: string;
  readonly phase: string;
  readonly endedAtMs: number;
  readonly ms: number;
}

export interface LabelDurations {
  readonly label: string;
  /** The oldest first; the newest `keptMax`. */
  readonly ran: readonly Ran[];
  readonly count: number;
  readonly failed: number;
  readonly medianMs: number;
  /** The 95th percentile. */
  readonly p95Ms: number;
}

/** Points that a chart of this width can show. */
export const keptMax = 120;

/** Of the jobs that ran and ended; the label with the most jobs first. */
export function durationsByLabel(jobs: readonly Job[]): readonly LabelDurations[] {
  const byLabel = new Map<string, Ran[]>();
  for (const job of jobs) {
    const { endedAtMs, phase } = job.status;
    if (!hasEnded(job) || endedAtMs === undefined) continue;
    const ms = ranMs(job, endedAtMs);
    if (ms === undefined) continue;
    const { name, project } = job.metadata;
    const label = labelOf(job);
    const ran = byLabel.get(label) ?? [];
    ran.push({ name, project, phase, endedAtMs, ms });
    byLabel.set(label, ran);
  }
  return [...byLabel]
    .map(([label, all]) => {
      const sorted = all.map(({ ms }) => ms).sort((a, b) => a - b);
      return {
        label,
        ran: all.sort((a, b) => a.endedAtMs - b.endedAtMs).slice(-keptMax),
        count: all.length,
        failed: all.filter(({ phase }) => phase !== 'Succeeded').length,
        medianMs: atShare(sorted, 0.5),
        p95Ms: atShare(sorted, 0.95),
      };
    })
    .sort((a, b) => b.count - a.count || (a.label < b.label ? -1 : 1));
}

/** Nearest rank. */
function atShare(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}
