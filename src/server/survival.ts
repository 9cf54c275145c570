// Whether the fleet survives the loss of one host, for the metrics: computed in slices on demand, and kept for a while.

import type { Survival } from '../api/plans/host-plan.ts';
import type { Clock } from '../base/clock.ts';
import { survivalOf } from '../core/plans/n-minus-one.ts';
import type { Snapshot } from '../core/state/snapshot.ts';
import { inSlices } from './in-slices.ts';

/** Twice the usual time between two readings of metrics, so that several readers share an answer. */
const keptMs = 30_000;

export class FleetSurvival {
  readonly #snapshot: Snapshot;
  readonly #clock: Clock;
  #known: Promise<Survival> | undefined;
  #atMs = 0;

  constructor(parts: { readonly snapshot: Snapshot; readonly clock: Clock }) {
    this.#snapshot = parts.snapshot;
    this.#clock = parts.clock;
  }

  read(): Promise<Survival> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#known && nowMs - this.#atMs < keptMs) return this.#known;
    this.#atMs = nowMs;
    return (this.#known = inSlices(this.#clock, survivalOf(this.#snapshot)));
  }
}
