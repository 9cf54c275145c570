// Suite `edges`: what it costs that work comes in from other systems, and that news goes out to them.

import { measureBus } from './edges-bus.ts';
import { measureInventory } from './edges-inventory.ts';
import { measureSchedule } from './edges-schedule.ts';
import { measureWebhooks } from './edges-webhooks.ts';
import type { Emit } from './row.ts';

export async function run(emit: Emit): Promise<void> {
  for (const measure of [measureSchedule, measureWebhooks, measureBus, measureInventory]) await measure(emit);
}
