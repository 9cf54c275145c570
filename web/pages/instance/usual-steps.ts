// How long each step usually takes: the median of other instances of the same image, on the same host where there are enough of them. Pure.

import type { Instance } from '../../../src/api/resources/instance.ts';
import { stepsOf } from './timeline-steps.ts';

export interface Usual {
  /** By the name of the step, in milliseconds. */
  readonly stepsMs: ReadonlyMap<string, number>;
  readonly of: number;
  /** False: on any host. */
  readonly sameHost: boolean;
}

const enough = 3;
/** More would not change a median that a person looks at. */
const most = 200;

/** Undefined: there are too few to compare with. */
export function usualSteps(instance: Instance, all: readonly Instance[]): Usual | undefined {
  const alike = all.filter(
    ({ metadata, spec, status }) =>
      metadata.id !== instance.metadata.id &&
      spec.image !== undefined &&
      spec.image === instance.spec.image &&
      status.runningAtMs !== undefined,
  );
  const near = alike.filter(({ status }) => status.host === instance.status.host);
  const sameHost = near.length >= enough;
  const compared = (sameHost ? near : alike).slice(0, most);
  if (compared.length < enough) return undefined;
  const durations = new Map<string, number[]>();
  for (const each of compared)
    for (const { name, fromMs, toMs } of stepsOf(each)) {
      if (toMs === undefined) continue;
      const known = durations.get(name);
      if (known) known.push(toMs - fromMs);
      else durations.set(name, [toMs - fromMs]);
    }
  const stepsMs = new Map([...durations].map(([name, values]) => [name, medianOf(values)]));
  return { stepsMs, of: compared.length, sameHost };
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
