// Weather: how bad network, stores and disks are just now. Drawn from the seed for the stormy part of a run (each seed its own
// subset and its own rates), and `calm` before and after it: delays stay, faults go.

import type { Prng } from '../../base/prng.ts';

/** Rates are in thousandths. */
export interface Weather {
  readonly network: {
    readonly delayMsMin: number;
    readonly delayMsMean: number;
    readonly requestLost: number;
    readonly answerLost: number;
    readonly duplicate: number;
    /** A message that takes a hundred times as long. */
    readonly slow: number;
    readonly streamCut: number;
    readonly streamStalled: number;
  };
  readonly store: {
    readonly latencyMsMean: number;
    readonly watchLagMsMean: number;
    readonly unavailable: number;
    readonly unknown: number;
    /** A commit that is long on its way there or back. */
    readonly slow: number;
    readonly watchBroken: number;
  };
  readonly disk: { readonly latencyMsMean: number; readonly failed: number };
}

export function drawWeather(prng: Prng): { readonly calm: Weather; readonly stormy: Weather } {
  const rate = (max: number): number => (prng.chance(1, 2) ? 1 + prng.below(max) : 0);
  const delayMsMin = prng.below(5);
  const network = { delayMsMin, delayMsMean: delayMsMin + 1 + prng.below(prng.chance(1, 4) ? 100 : 15) };
  const store = {
    latencyMsMean: 1 + prng.below(prng.chance(1, 3) ? 40 : 4),
    watchLagMsMean: 1 + prng.below(prng.chance(1, 3) ? 200 : 10),
  };
  const disk = { latencyMsMean: 1 + prng.below(20) };
  return {
    calm: {
      network: {
        ...network,
        requestLost: 0,
        answerLost: 0,
        duplicate: 0,
        slow: 0,
        streamCut: 0,
        streamStalled: 0,
      },
      store: { ...store, unavailable: 0, unknown: 0, slow: 0, watchBroken: 0 },
      disk: { ...disk, failed: 0 },
    },
    stormy: {
      network: {
        ...network,
        requestLost: rate(100),
        answerLost: rate(100),
        duplicate: rate(150),
        slow: rate(50),
        streamCut: rate(500),
        streamStalled: rate(200),
      },
      store: { ...store, unavailable: rate(60), unknown: rate(60), slow: rate(150), watchBroken: rate(20) },
      disk: { ...disk, failed: rate(200) },
    },
  };
}

/** A whole number of milliseconds from `minMs` on whose mean is `meanMs`: mostly short, now and then long. */
export function drawDelayMs(
  prng: Prng,
  { minMs, meanMs }: { readonly minMs: number; readonly meanMs: number },
): number {
  const spreadMs = Math.max(0, meanMs - minMs);
  // Three equal parts: up to half the spread, up to the spread, up to three and a half times the spread; whose mean is the spread.
  const share = [0.5, 1.5, 4][prng.below(3)] ?? 1;
  return minMs + Math.round((prng.below(1001) / 1000) * spreadMs * share);
}
