// The usage of the guests of this host, from all drivers that can measure it.

import { type GuestUsageReport, measuredGuestsMax } from '../../api/guests/guest-usage.ts';
import type { AgentParts } from './agent-parts.ts';

/** Undefined: no driver of this host can measure. */
export async function guestUsage({ options, recovery }: AgentParts): Promise<GuestUsageReport | undefined> {
  const measuring = options.drivers.filter((driver) => driver.usage !== undefined && recovery.isReady(driver));
  if (measuring.length === 0) return undefined;
  const sampledMs = Math.floor(options.clock.monotonicMs());
  const found = await Promise.all(measuring.map(async (driver) => (await driver.usage?.()) ?? []));
  return { sampledMs, guests: found.flat().slice(0, measuredGuestsMax) };
}
