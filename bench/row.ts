// One measured figure. Names are given by the issues; `limit` and `peer` are measured in the same run.

export interface BenchRow {
  readonly suite: string;
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  readonly goal: number;
  /** What the machine itself allows: the floor of a time, the ceiling of a rate. */
  readonly limit?: number;
  readonly peer?: number;
  /** value against limit, or against peer. */
  readonly ratio?: number;
}

export type Emit = (row: BenchRow) => void;

/** The value below which `share` (0..1) of `values` lie. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
