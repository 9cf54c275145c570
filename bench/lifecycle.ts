// Suite `lifecycle`: what it costs to keep what was asked for.

import { measureLostHost } from './lifecycle-lost-host.ts';
import { measureWarmClaim } from './lifecycle-warm-claim.ts';
import { measureReconcile, measureScale } from './lifecycle-workloads.ts';
import { measureDrainPlan } from './lifecycle-drain-plan.ts';
import type { Emit } from './row.ts';

export async function run(emit: Emit): Promise<void> {
  measureReconcile(emit);
  measureDrainPlan(emit);
  await measureScale(emit);
  await measureLostHost(emit);
  await measureWarmClaim(emit);
}
