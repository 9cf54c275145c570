// The steps of an instance from its request until it is ready, with their times. Pure.

import type { Instance } from '../../../src/api/resources/instance.ts';

export interface Step {
  readonly name: string;
  readonly fromMs: number;
  /** Undefined: it goes on. */
  readonly toMs: number | undefined;
}

/** In order. What the agent reported of its own work stands between "claimed" and "booted". */
export function stepsOf({ metadata, status }: Pick<Instance, 'metadata' | 'status'>): readonly Step[] {
  const { scheduledAtMs, runningAtMs, readyAtMs, guest } = status;
  const { createdAtMs } = metadata;
  const steps: Step[] = [{ name: 'queued', fromMs: createdAtMs, toMs: scheduledAtMs }];
  if (scheduledAtMs === undefined) return steps;
  for (const { name, startedAtMs, durationMs } of guest?.phases ?? [])
    steps.push({ name, fromMs: startedAtMs, toMs: startedAtMs + durationMs });
  const doneMs = Math.max(scheduledAtMs, ...steps.slice(1).map(({ toMs }) => toMs ?? 0));
  if (runningAtMs === undefined) {
    steps.push({ name: 'starts', fromMs: doneMs, toMs: undefined });
    return steps;
  }
  if (readyAtMs === undefined || readyAtMs > runningAtMs)
    steps.push({ name: 'until ready', fromMs: runningAtMs, toMs: readyAtMs });
  return steps;
}
