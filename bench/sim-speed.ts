// How many seeds of the simulator go through in an hour on two cores, checkers and all: small fleets, and fleets of 2,000 hosts.

import { availableParallelism } from 'node:os';
import { systemClock } from '../src/base/system.ts';
import { createSeedPool } from '../src/sim/batch/seed-pool.ts';
import type { Order } from '../src/sim/batch/seed-worker.ts';
import { createSum } from '../src/sim/batch/worked.ts';
import type { Emit } from './row.ts';

const hourMs = 3_600_000;
const jobs = Math.min(2, availableParallelism());

export async function run(emit: Emit): Promise<void> {
  const small = await seedsPerHour(60, 'small');
  emit(row('sim_small_seeds_per_h', small, 20_000));
  const fleet = await seedsPerHour(4 * jobs, 'fleet');
  emit(row('sim_fleet_seeds_per_h', fleet, 1000));
}

function row(name: string, value: number, goal: number) {
  return { suite: 'store', name, value: Math.round(value), unit: 'seeds/h', better: 'higher', goal } as const;
}

/** Processes that have run one seed already are what a long batch has. */
async function seedsPerHour(seeds: number, size: Order['size'] & string): Promise<number> {
  const pool = createSeedPool({ jobs });
  const runAll = async (count: number, order: Omit<Order, 'seed'>): Promise<void> => {
    const runs = Array.from({ length: count }, (_, i) => pool.run({ ...order, seed: 1 + i }));
    const sum = createSum();
    for (const result of await Promise.all(runs)) {
      const fault = result.violation?.message ?? sum.idleRun(result, true);
      if (fault !== undefined) throw new Error(`seed ${result.seed} of the ${order.size} size failed: ${fault}`);
    }
  };
  try {
    await runAll(jobs, { size });
    const startedAtMs = systemClock.monotonicMs();
    await runAll(seeds, { size });
    return (seeds * hourMs) / (systemClock.monotonicMs() - startedAtMs);
  } finally {
    pool.close();
  }
}
