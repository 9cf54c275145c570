// What a guest uses, over the time that a page has followed it. Pure.

import type { InstanceUsage } from '../../../src/api/guests/guest-usage.ts';

export interface Point {
  readonly atMs: number;
  readonly value: number;
}

export interface Series {
  readonly name: string;
  readonly unit: 'CPUs' | 'bytes' | 'bytes/s';
  readonly points: readonly Point[];
}

/** An hour with a measurement each 10 s. */
const samplesMax = 360;

/** The same measurement is read more than once. Counters that fall are of a guest that was started again. */
export function withSample(samples: readonly InstanceUsage[], next: InstanceUsage): readonly InstanceUsage[] {
  const last = samples.at(-1);
  if (last !== undefined && next.measuredAtMs <= last.measuredAtMs) return samples;
  const kept = last !== undefined && next.cpuMs < last.cpuMs ? [] : samples;
  return [...kept, next].slice(-samplesMax);
}

/** Without those that the driver does not measure. */
export function seriesOf(samples: readonly InstanceUsage[]): readonly Series[] {
  const all: readonly Series[] = [
    { name: 'CPUs in use', unit: 'CPUs', points: pointsOf(samples, ({ cpus }) => cpus) },
    { name: 'Memory', unit: 'bytes', points: pointsOf(samples, ({ memoryBytes }) => memoryBytes) },
    { name: 'Disk, read', unit: 'bytes/s', points: ratesOf(samples, ({ diskReadBytes }) => diskReadBytes) },
    { name: 'Disk, written', unit: 'bytes/s', points: ratesOf(samples, ({ diskWrittenBytes }) => diskWrittenBytes) },
    { name: 'Network, received', unit: 'bytes/s', points: ratesOf(samples, (each) => each.networkReceivedBytes) },
    { name: 'Network, sent', unit: 'bytes/s', points: ratesOf(samples, (each) => each.networkSentBytes) },
  ];
  return all.filter(({ points }) => points.length > 0);
}

type Field = (sample: InstanceUsage) => number | undefined;

function pointsOf(samples: readonly InstanceUsage[], field: Field): readonly Point[] {
  return samples.flatMap((sample) => {
    const value = field(sample);
    return value === undefined ? [] : [{ atMs: sample.measuredAtMs, value }];
  });
}

/** Of a counter, per second between two measurements. */
function ratesOf(samples: readonly InstanceUsage[], counter: Field): readonly Point[] {
  const counts = pointsOf(samples, counter);
  return counts.slice(1).map(({ atMs, value }, i) => {
    const before = counts[i] ?? { atMs, value };
    return { atMs, value: Math.max(0, ((value - before.value) * 1_000) / Math.max(1, atMs - before.atMs)) };
  });
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

export function valueText(value: number, unit: Series['unit']): string {
  if (unit === 'CPUs') return value.toFixed(2);
  let step = 0;
  let shown = value;
  while (shown >= 1024 && step < units.length - 1) {
    shown /= 1024;
    step += 1;
  }
  return `${shown.toFixed(step === 0 || shown >= 100 ? 0 : 1)} ${units[step]}${unit === 'bytes/s' ? '/s' : ''}`;
}
