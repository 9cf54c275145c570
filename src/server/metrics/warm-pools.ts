// Metrics of warm pools: how many guests are ready, and how many claims found one. Sums over all pools: who reads metrics may know no names of
// projects.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { WarmPool } from '../../api/resources/warm-pool.ts';
import type { Cache } from '../../core/state/cache.ts';

type Read = (status: WarmPool['status']) => number;

export function measureWarmPools(registry: Registry, cache: Cache): void {
  const sumOf = (read: Read): number => {
    let sum = 0;
    for (const { value } of cache.list('warmPool')) sum += read(value.status);
    return sum;
  };
  const gauge = (name: string, help: string, read: Read): void =>
    registry.registerMetric(
      new Gauge({
        ...{ name: `berth_warm_pool_${name}`, help, registers: [] },
        collect() {
          this.set(sumOf(read));
        },
      }),
    );
  gauge('wanted', 'Guests that warm pools are to keep', ({ wanted }) => wanted);
  gauge('guests', 'Guests that wait in warm pools', ({ guests }) => guests);
  gauge('ready', 'Guests of warm pools that a claim would get', ({ ready }) => ready);
  const counter = (name: string, help: string, read: Read): void =>
    registry.registerMetric(
      new Counter({
        ...{ name: `berth_warm_pool_${name}_total`, help, registers: [] },
        collect() {
          this.reset();
          this.inc(sumOf(read));
        },
      }),
    );
  counter('hits', 'Claims of the present warm pools that got a ready guest', ({ hits }) => hits);
  counter('misses', 'Claims of the present warm pools that found no ready guest', ({ misses }) => misses);
}
