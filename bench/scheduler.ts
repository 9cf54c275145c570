// Suite `scheduler`: decisions a second in process under the constraint mix M, their slowest, and what the fleet holds in memory; then
// what a create costs from HTTP to the watch event that shows it bound (submit.ts).

import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BenchRow, Emit } from './row.ts';
import type { CaseFigures } from './scheduler-case.ts';
import { runSubmit } from './submit.ts';

const suite = 'scheduler';

function measure(name: string, hosts: number, instances: number, decisions: number): CaseFigures {
  const output = execFileSync(
    process.execPath,
    [
      '--expose-gc',
      '--max-old-space-size=8192',
      fileURLToPath(new URL('scheduler-case.ts', import.meta.url)),
      name,
      String(hosts),
      String(instances),
      String(decisions),
    ],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  );
  return JSON.parse(output);
}

export async function run(emit: Emit): Promise<void> {
  const mix5k = measure('mix', 5_000, 50_000, 100_000);
  emit(rate('mix_5k_per_s', mix5k, 100_000));
  emit({
    suite,
    name: 'decision_p99_us_5k',
    value: mix5k.p99Us,
    unit: 'µs',
    better: 'lower',
    goal: 50,
    limit: 1e6 / mix5k.naivePerSecond,
    ratio: (mix5k.p99Us * mix5k.naivePerSecond) / 1e6,
  });
  emit(rate('affinity_5k_per_s', measure('affinity', 5_000, 50_000, 50_000), 50_000));
  emit(rate('unique_5k_per_s', measure('unique', 5_000, 50_000, 20_000), 10_000));
  const mix50k = measure('mix', 50_000, 500_000, 100_000);
  emit(rate('mix_50k_per_s', mix50k, 100_000));
  emit({ suite, name: 'memory_50k_mb', value: mix50k.rssMb, unit: 'MiB', better: 'lower', goal: 1000 });
  await runSubmit(emit);
}

/** The limit is a plain pass over as many hosts with nothing but two numbers each. */
function rate(name: string, { perSecond, naivePerSecond }: CaseFigures, goal: number): BenchRow {
  return {
    suite,
    name,
    value: Math.round(perSecond),
    unit: 'decisions/s',
    better: 'higher',
    goal,
    limit: Math.round(naivePerSecond),
    ratio: Number((perSecond / naivePerSecond).toFixed(2)),
  };
}
