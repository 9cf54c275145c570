// What the agent of a host is asked to do for the maintenance of the host: only what is durable, and only while a roll waits for its reboot.

import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';

/** The id of the order; undefined: there is none. */
export function maintenanceOrderFor(cache: Pick<Cache, 'committed'>, host: string): string | undefined {
  const roll = cache.committed('hostRoll', keys.hostRoll)?.value;
  if (roll === undefined || roll.endedAtMs !== undefined) return undefined;
  const found = roll.hosts.find((each) => each.host === host);
  if (found?.step !== 'maintenance' || !found.byCommand) return undefined;
  const bootId = cache.committed('host', keys.host(host))?.value.status.bootId;
  return bootId === found.bootId ? found.order : undefined; // it is not back from its reboot
}
