// Opens the watchdog device that the agent's configuration names.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import { DeviceWatchdog } from './watchdog.ts';

export interface OpenWatchdog {
  readonly device: DeviceWatchdog;
  readonly timeoutMs: number;
}

/** Throws when how long it waits cannot be found out: the control plane must not rely on a guess. */
export async function openWatchdog(
  device: string,
  { dataDirectory, clock, log }: { readonly dataDirectory: string; readonly clock: Clock; readonly log: Logger },
): Promise<OpenWatchdog> {
  const watchdog = new DeviceWatchdog({ device, directory: dataDirectory, clock, log });
  const timeoutMs = await watchdog.timeoutMs();
  if (timeoutMs === undefined)
    throw new Error(`watchdog: /sys/class/watchdog does not say how long ${device} waits; is its driver loaded?`);
  await watchdog.start();
  log.info('the watchdog device is armed', { device, timeoutMs });
  return { device: watchdog, timeoutMs };
}
